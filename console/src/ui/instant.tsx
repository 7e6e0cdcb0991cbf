// An instant in the zone of the reader; hovering and copying give it in UTC, exactly.

import { instantText, offsetText } from './instants.ts'
import { useZone } from './preferences.ts'

interface InstantProps {
  readonly at: string
  readonly fraction?: boolean
  /** Adds the offset, where something is bounded by it. */
  readonly offset?: boolean
}

export function Instant({ at, fraction = false, offset = false }: InstantProps) {
  const zone = useZone()
  const text = instantText(at, zone, { fraction })
  return (
    <time dateTime={at} title={at} className="instant">
      {offset ? `${text} ${offsetText(Date.parse(at), zone)}` : text}
    </time>
  )
}
