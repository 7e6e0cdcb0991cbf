// The facts of an entry: a change of settings as the values before and after, and everything else by name.
// They are texts of the service about ids, counts and bounds; a page shows them only as text.

import { Table } from '../../ui/table.tsx'
import type { ChainEntry } from './entry.ts'

type Fields = Readonly<Record<string, unknown>>

export function EntryDetails({ entry }: { readonly entry: ChainEntry }) {
  const { before, after, ...rest } = entry.facts
  return (
    <div className="entry-details">
      {isObject(before) && isObject(after) && <Changed before={before} after={after} />}
      {Object.keys(rest).length > 0 && (
        <dl className="facts">
          {Object.entries(rest).map(([name, value]) => (
            <Fact key={name} name={name} value={value} />
          ))}
        </dl>
      )}
      <dl className="facts">
        <Fact name="who" value={entry.actor} />
        <Fact name="hash" value={entry.hash} />
        <Fact name="hash of the entry before" value={entry.prevHash} />
      </dl>
    </div>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <>
      <dt>{name.replaceAll('_', ' ')}</dt>
      <dd className="mono">{textOf(value)}</dd>
    </>
  )
}

function Changed({ after, before }: { readonly before: Fields; readonly after: Fields }) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return (
    <Table label="What was changed" columns={['setting', 'before', 'after']}>
      {names.map((name) => {
        const [was, is] = [textOf(before[name]), textOf(after[name])]
        return (
          <tr key={name}>
            <th scope="row">{name.replaceAll('_', ' ')}</th>
            <td className="mono">{was}</td>
            <td className="mono">
              {was === is ? <span className="muted">unchanged</span> : <strong>{is}</strong>}
            </td>
          </tr>
        )
      })}
    </Table>
  )
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '–'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
