// The entries of a chain, newest first: one line each, which expands to all its facts and hashes. Actor,
// action and target set the filter of their column.

import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { useMe } from '../../api/session.ts'
import { Instant } from '../../ui/instant.tsx'
import { shortActor } from '../../ui/short-ids.ts'
import { Table } from '../../ui/table.tsx'
import type { ChainEntry } from './entry.ts'
import { EntryDetails } from './facts.tsx'

interface EntryTableProps {
  readonly label: string
  readonly entries: readonly ChainEntry[]
  /** The number of the entry that is open. */
  readonly open: number | null
  readonly onOpen: (seq: number | null) => void
  readonly onActor: (actor: string) => void
  readonly onWhat: (filter: string) => void
  readonly onTarget: (target: string) => void
}

export function EntryTable({ entries, label, onOpen, open, ...filters }: EntryTableProps) {
  return (
    <Table
      label={label}
      className="entries"
      columns={[{ number: 'no.' }, 'when', 'who', 'what', 'about', 'hash']}
    >
      {entries.map((entry) => {
        const isOpen = entry.seq === open
        return (
          <Fragment key={entry.seq}>
            <Row
              entry={entry}
              isOpen={isOpen}
              onOpen={() => onOpen(isOpen ? null : entry.seq)}
              {...filters}
            />
            {isOpen && (
              <tr>
                <td colSpan={6}>
                  <EntryDetails entry={entry} />
                </td>
              </tr>
            )}
          </Fragment>
        )
      })}
    </Table>
  )
}

interface RowProps extends Pick<EntryTableProps, 'onActor' | 'onWhat' | 'onTarget'> {
  readonly entry: ChainEntry
  readonly isOpen: boolean
  readonly onOpen: () => void
}

function Row({ entry, isOpen, onActor, onOpen, onTarget, onWhat }: RowProps) {
  const { actor, at, filter, hash, isRefused, seq, target, what } = entry
  return (
    <tr>
      <th scope="row" className="number">
        <Button
          variant="subtle"
          size="compact-xs"
          aria-expanded={isOpen}
          data-opens
          aria-label={`Entry ${seq}`}
          onClick={onOpen}
        >
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {seq}
        </Button>
      </th>
      <td>
        <Instant at={at} />
      </td>
      <td>
        <FilterButton text={shortActor(actor)} filter={actor} onClick={() => onActor(actor)} />
      </td>
      <td>
        <FilterButton text={what} filter={filter} onClick={() => onWhat(filter)} />
        {isRefused && (
          <span className="status" data-kind="danger">
            refused
          </span>
        )}
      </td>
      <td>{target !== null && <Target target={target} onTarget={onTarget} />}</td>
      <td className="mono entry-hash" title={hash}>
        {hash.slice(0, 8)}…
      </td>
    </tr>
  )
}

interface FilterButtonProps {
  readonly text: string
  /** Whole, where the text is shorter. */
  readonly filter: string
  readonly onClick: () => void
}

function FilterButton({ filter, onClick, text }: FilterButtonProps) {
  return (
    <button type="button" className="cell-button" title={`Only this: ${filter}`} onClick={onClick}>
      {text}
    </button>
  )
}

/** A deletion request leads to its page; every target can be filtered by. */
function Target({
  onTarget,
  target,
}: {
  readonly target: string
  readonly onTarget: (target: string) => void
}) {
  const { tenant_id: organisation } = useMe()
  return (
    <>
      <button
        type="button"
        className="cell-button mono"
        title="Only about this"
        onClick={() => onTarget(target)}
      >
        {target}
      </button>{' '}
      {target.startsWith('del_') && (
        <Link
          to="/$organisation/erasures/$requestId"
          params={{ organisation, requestId: target }}
          className="cell-link"
        >
          open<span className="hidden-text"> {target}</span>
        </Link>
      )}
    </>
  )
}
