// The time range of the reading pages, kept in the address and in links: a preset, which stays relative to
// now, or two instants.

import { Button, Popover } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from '@tanstack/react-router'
import { type AddressState, useAddress } from '../ui/address.ts'
import { BoundField } from '../ui/bound-field.tsx'
import { dayText } from '../ui/instants.ts'
import { useZone } from '../ui/preferences.ts'
import { boundMs, presets, rangeOf, shifted, zoomedOut } from '../ui/time-range.ts'
import { hasTimeRange } from './page-links.ts'

export function RangePicker() {
  const { pathname } = useLocation()
  return hasTimeRange(pathname) ? <RangeMenu /> : null
}

function RangeMenu() {
  const [isOpen, { close, toggle }] = useDisclosure(false)
  const [state, change] = useAddress()
  const zone = useZone()
  const range = rangeOf(state)
  const preset = presets.find(({ from, to }) => from === range.from && to === range.to)
  const instant = (bound: string) => new Date(boundMs(bound)).toISOString()
  const day = (bound: string) => dayText(instant(bound), zone)
  const label = preset?.label ?? `${day(range.from)} – ${day(range.to)}`
  const choose = (next: AddressState) => {
    change(next, { isStep: true })
    close()
  }
  return (
    <Popover opened={isOpen} onChange={toggle} position="bottom-end" trapFocus returnFocus>
      <Popover.Target>
        <Button variant="default" aria-label={`Time range: ${label}`} onClick={toggle}>
          {label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="range-menu">
        {presets.map(({ from, label: name, to }) => (
          <Button
            key={name}
            variant="subtle"
            aria-pressed={name === preset?.label}
            onClick={() => choose({ from, to })}
          >
            {name}
          </Button>
        ))}
        <div className="range-steps">
          <Button variant="default" onClick={() => choose({ ...shifted(range, -1) })}>
            Earlier <kbd>[</kbd>
          </Button>
          <Button variant="default" onClick={() => choose({ ...shifted(range, 1) })}>
            Later <kbd>]</kbd>
          </Button>
          <Button variant="default" onClick={() => choose({ ...zoomedOut(range) })}>
            Longer <kbd>z</kbd>
          </Button>
        </div>
        <BoundField
          label="From"
          hint="any instant"
          value={instant(range.from)}
          onChange={(from) => change({ from: from ?? undefined, to: range.to }, { isStep: true })}
        />
        <BoundField
          label="To"
          hint="empty: now"
          value={range.to === 'now' ? null : instant(range.to)}
          onChange={(to) => change({ from: range.from, to: to ?? 'now' }, { isStep: true })}
        />
      </Popover.Dropdown>
    </Popover>
  )
}
