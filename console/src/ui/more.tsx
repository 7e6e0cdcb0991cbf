// The end of a list that is read page by page: leads to the next page, and says where there is none.

import { Button } from '@mantine/core'
import { Failure } from './states.tsx'

interface MoreProps {
  readonly pages: {
    readonly error: Error | null
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly fetchNextPage: () => unknown
  }
  /** Such as `tokens`. */
  readonly what: string
}

export function More({ pages: { error, fetchNextPage, hasNextPage, isFetchingNextPage }, what }: MoreProps) {
  const next = () => void fetchNextPage()
  if (error !== null) return <Failure error={error} what={`Older ${what} could not be read`} onRetry={next} />
  if (!hasNextPage) return <p className="muted">These are all.</p>
  return (
    <Button variant="default" loading={isFetchingNextPage} onClick={next}>
      Show older {what}
    </Button>
  )
}
