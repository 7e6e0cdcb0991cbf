// The time range of the reading pages, kept in the address and carried by links.

import { Button, Menu } from '@mantine/core'
import { useLocation } from '@tanstack/react-router'
import { useAddress } from '../ui/address.ts'
import { dayText } from '../ui/instants.ts'
import { useZone } from '../ui/preferences.ts'
import { boundMs, presets, rangeOf, shifted, zoomedOut } from '../ui/time-range.ts'
import { hasTimeRange } from './places.ts'

export function RangePicker() {
  const { pathname } = useLocation()
  return hasTimeRange(pathname) ? <RangeMenu /> : null
}

function RangeMenu() {
  const [state, change] = useAddress()
  const zone = useZone()
  const range = rangeOf(state)
  const preset = presets.find(({ from, to }) => from === range.from && to === range.to)
  const day = (bound: string) => dayText(new Date(boundMs(bound)).toISOString(), zone)
  const label = preset?.label ?? `${day(range.from)} – ${day(range.to)}`
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" aria-label={`Time range: ${label}`}>
          {label}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {presets.map(({ from, label: name, to }) => (
          <Menu.Item key={name} onClick={() => change({ from, to }, { isStep: true })}>
            {name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => change({ ...shifted(range, -1) }, { isStep: true })}>Earlier [</Menu.Item>
        <Menu.Item onClick={() => change({ ...shifted(range, 1) }, { isStep: true })}>Later ]</Menu.Item>
        <Menu.Item onClick={() => change({ ...zoomedOut(range) }, { isStep: true })}>Zoom out z</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
