// The preview of an erasure. It is requested again shortly after the selection changed, and the previous
// request is aborted. It is shown until the service reports that it is no longer valid.

import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { DeletionPreview } from '../../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { call } from '../../api/client.ts'
import { after } from '../../clock.ts'
import { type Selection, selectionBody } from './selection.ts'

/** After the last change; a person who drags changes the range many times a second. */
const settleMs = 400

export interface Preview {
  readonly data: DeletionPreview | undefined
  /** Whether `data` is of an earlier selection, or is being counted again. */
  readonly isOld: boolean
  readonly error: Error | null
  readonly countAgain: () => void
  /** Replaces it by the count of a refused erasure. */
  readonly replace: (preview: DeletionPreview) => void
}

export function usePreview(selection: Selection, isComplete: boolean): Preview {
  const client = useQueryClient()
  const body = selectionBody(selection)
  const wanted = JSON.stringify(body)
  const [settled, setSettled] = useState(wanted)
  useEffect(() => after(settleMs, () => setSettled(wanted)), [wanted])
  const key = ['preview', settled]
  const query = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => call(deletionOperations.preview, { body: JSON.parse(settled), signal }),
    enabled: isComplete && settled === wanted,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
  })
  const isOld = settled !== wanted || query.isPlaceholderData || query.isFetching
  return {
    data: isComplete ? query.data : undefined,
    isOld,
    error: isOld ? null : query.error,
    countAgain: () => void query.refetch(),
    replace: (preview) => client.setQueryData(key, preview),
  }
}
