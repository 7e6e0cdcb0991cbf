// Stored amounts by service, most bytes first, with growth; they cover everything that is stored,
// independently of the shown range.

import { nowMs } from '../../clock.ts'
import { agoText } from '../../ui/instants.ts'
import { Table } from '../../ui/table.tsx'
import { bytesText, countOf, shareText } from '../../ui/units.ts'
import { growthText, type ServiceUsage } from './usage-days.ts'

interface ServiceTableProps {
  readonly usage: ServiceUsage
  /** Whether it is of an earlier range, until this one is counted. */
  readonly isOld: boolean
  /** Of the whole organisation. */
  readonly totalBytes: number
}

const signals = ['metrics', 'logs', 'traces'] as const

export function ServiceTable({ isOld, totalBytes, usage: { others, services } }: ServiceTableProps) {
  return (
    <section className={isOld ? 'section dimmed' : 'section'} aria-busy={isOld}>
      <h2>By service</h2>
      <Table
        label="Stored telemetry by service"
        columns={[
          'service',
          ...[...signals, 'total', 'share', 'growth 7 d'].map((number) => ({ number })),
          'newest',
        ]}
      >
        {services.map((service) => (
          <ServiceRow key={service.service} service={service} totalBytes={totalBytes} />
        ))}
        {others.services > 0 && (
          <tr>
            <th scope="row">{countOf(others.services, 'other service')}</th>
            <td colSpan={3} />
            <td className="number">{bytesText(others.bytes)}</td>
            <td className="number">{shareText(others.bytes, totalBytes)}</td>
            <td colSpan={2} />
          </tr>
        )}
      </Table>
    </section>
  )
}

interface ServiceRowProps {
  readonly service: ServiceUsage['services'][number]
  readonly totalBytes: number
}

function ServiceRow({ service, totalBytes }: ServiceRowProps) {
  const { bytes, newest, service: name, signals: stored } = service
  return (
    <tr>
      <th scope="row">{name === '' ? '(no service)' : name}</th>
      {signals.map((signal) => {
        const found = stored.find((one) => one.signal === signal)
        return (
          <td key={signal} className="number">
            {found === undefined ? '–' : bytesText(found.bytes)}
          </td>
        )
      })}
      <td className="number">{bytesText(bytes)}</td>
      <td className="number">{shareText(bytes, totalBytes)}</td>
      <td className="number">{growthText(service)}</td>
      <td className="instant" title={newest}>
        {agoText(newest, nowMs())}
      </td>
    </tr>
  )
}
