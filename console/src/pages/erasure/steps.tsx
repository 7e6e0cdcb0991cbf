// The work of an erasure: a bar over its steps, what they did, and the list of them.

import { Button } from '@mantine/core'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { useAddress } from '../../ui/address.ts'
import { Instant } from '../../ui/instant.tsx'
import { Table } from '../../ui/table.tsx'
import { bytesText, countOf, countText } from '../../ui/units.ts'
import { numberIn } from './status-text.ts'

interface Step {
  readonly store: string
  readonly partition: string | null
  readonly action: string
  readonly rows: number
  readonly bytes: number
  readonly done_at: string | null
}

/** The steps in the free-form detail; one without a store is left out. */
function stepsIn({ detail: { steps } }: DeletionRequest): Step[] {
  if (!Array.isArray(steps)) return []
  return steps.filter((step): step is Step => typeof step?.store === 'string')
}

export function Steps({ request }: { readonly request: DeletionRequest }) {
  const [{ steps: shown }, change] = useAddress()
  const isOpen = shown === 'open'
  const [done, total] = [numberIn(request, 'steps_done'), numberIn(request, 'steps_total')]
  if (total === 0) return null
  const [dropped, rewritten] = [
    numberIn(request, 'partitions_dropped'),
    numberIn(request, 'partitions_rewritten'),
  ]
  const steps = stepsIn(request)
  return (
    <section className="section">
      <h2>Steps</h2>
      <progress className="progress" value={done} max={total} aria-label="Steps done" />
      <p>
        {done} of {countOf(total, 'step')}: {countOf(numberIn(request, 'rows_erased'), 'row')},{' '}
        {bytesText(numberIn(request, 'bytes_erased'))}. {countOf(dropped, 'partition')} dropped, {rewritten}{' '}
        rewritten.{' '}
        {steps.length > 0 && (
          <Button
            variant="subtle"
            size="compact-sm"
            aria-expanded={isOpen}
            onClick={() => change({ steps: isOpen ? undefined : 'open' })}
          >
            {isOpen ? 'Hide the steps' : 'Show the steps'}
          </Button>
        )}
      </p>
      {isOpen && <StepTable steps={steps} />}
    </section>
  )
}

function StepTable({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <Table
      label="Steps of the erasure"
      columns={['store', 'partition', 'what was done', { number: 'rows' }, { number: 'bytes' }, 'done']}
    >
      {steps.map(({ action, bytes, done_at, partition, rows, store }) => (
        <tr key={`${store} ${partition}`}>
          <th scope="row" className="mono nowrap">
            {store}
          </th>
          <td className="mono nowrap">{partition ?? '–'}</td>
          <td>{action.replaceAll('_', ' ')}</td>
          <td className="number">{countText(rows)}</td>
          <td className="number">{bytesText(bytes)}</td>
          <td>{done_at === null ? '–' : <Instant at={done_at} fraction />}</td>
        </tr>
      ))}
    </Table>
  )
}
