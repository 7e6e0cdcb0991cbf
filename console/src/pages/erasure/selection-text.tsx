// What a request selects, as a line.

import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { Instant } from '../../ui/instant.tsx'

type Selected = Pick<DeletionRequest, 'scope' | 'range_start' | 'range_end' | 'signals'>

export function SelectionText({ range_end, range_start, scope, signals }: Selected) {
  const what = signals.length === 3 ? 'all signals' : signals.join(', ')
  if (scope === 'all' || range_end === null) return <>everything, {what}</>
  return (
    <>
      {range_start === null ? 'everything before ' : <Instant at={range_start} />}
      {range_start === null ? '' : ' to '}
      <Instant at={range_end} offset />, {what}
    </>
  )
}
