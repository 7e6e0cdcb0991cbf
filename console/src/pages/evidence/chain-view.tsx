// The common part of both pages of evidence: filters, entries page by page, and the check of the whole chain.
// A filtered page of a long chain may be empty and still have a next one; then the search continues by
// itself.

import { Button } from '@mantine/core'
import {
  type InfiniteData,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query'
import { useEffect } from 'react'
import type { CursorPage } from '../../api/cursor-pages.ts'
import { chainQuery, newestQuery } from '../../api/evidence.ts'
import { useAddress } from '../../ui/address.ts'
import { Failure, Loading, Notice } from '../../ui/states.tsx'
import { countText } from '../../ui/units.ts'
import { type ChainFilter, ChainFilters } from './chain-filters.tsx'
import type { ChainEntry } from './entry.ts'
import { EntryTable } from './entry-table.tsx'
import { timeFilters } from './time-filter.tsx'
import { type ChainName, Verify } from './verify.tsx'

interface ChainViewProps {
  readonly chain: ChainName
  readonly filters: readonly ChainFilter[]
  /** The filters that a click on a cell of these columns sets. */
  readonly whatFilter: string
  readonly targetFilter: string
  readonly read: (page: Query) => Promise<EntryPage>
}

type Query = Readonly<Record<string, string | undefined>>

interface EntryPage extends CursorPage {
  readonly entries: readonly ChainEntry[]
}

export function ChainView({ chain, filters, read, targetFilter, whatFilter }: ChainViewProps) {
  const [state, change] = useAddress()
  const names = [...filters.map(({ name }) => name), ...timeFilters]
  const query: Query = Object.fromEntries(names.map((name) => [name, state[name]]))
  const found = useInfiniteQuery(chainQuery(chain, query, read))
  const newest = useQuery(newestQuery(chain, read))
  const total = newest.data?.entries[0]?.seq ?? 0
  const filter = (name: string) => (text: string) => change({ [name]: text }, { isStep: true })
  const entries = found.data?.pages.flatMap((page) => page.entries) ?? []
  return (
    <>
      <Verify key={chain} chain={chain} total={total} />
      <ChainFilters
        filters={filters}
        state={state}
        onChange={(changes) => change(changes, { isStep: true })}
      />
      {found.data === undefined ? (
        <First found={found} />
      ) : (
        <>
          {entries.length > 0 && (
            <EntryTable
              label={`Entries of the ${chain === 'ledger' ? 'ledger' : 'audit log'}`}
              entries={entries}
              open={Number(state.open ?? 0) || null}
              onOpen={(seq) => change({ open: seq === null ? undefined : String(seq) })}
              onActor={filter('actor')}
              onWhat={filter(whatFilter)}
              onTarget={filter(targetFilter)}
            />
          )}
          <End found={found} isEmpty={entries.length === 0} total={total} />
        </>
      )}
    </>
  )
}

type Found = UseInfiniteQueryResult<InfiniteData<EntryPage>>

function First({ found: { error, refetch } }: { readonly found: Found }) {
  return error === null ? (
    <Loading height={320} label="Reading the entries" />
  ) : (
    <Failure error={error} what="The entries could not be read" onRetry={() => void refetch()} />
  )
}

interface EndProps {
  readonly found: Found
  readonly isEmpty: boolean
  readonly total: number
}

function End({ found, isEmpty, total }: EndProps) {
  const { data, error, fetchNextPage, hasNextPage, isFetchingNextPage } = found
  const isSearching = hasNextPage && error === null && data?.pages.at(-1)?.entries.length === 0
  useEffect(() => {
    if (isSearching && !isFetchingNextPage) void fetchNextPage()
  }, [isSearching, isFetchingNextPage, fetchNextPage])
  if (error !== null) {
    return (
      <Failure error={error} what="Older entries could not be read" onRetry={() => void fetchNextPage()} />
    )
  }
  if (isSearching) return <p role="status">Searching older entries …</p>
  if (hasNextPage) {
    return (
      <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        Show older entries
      </Button>
    )
  }
  if (!isEmpty) return <p className="muted">These are all.</p>
  if (total === 0) return <Notice title="No entry yet">Entries appear here when somebody acts.</Notice>
  return (
    <Notice title="No entry matches the filters">
      All {countText(total)} entries were searched. Remove a filter to see more.
    </Notice>
  )
}
