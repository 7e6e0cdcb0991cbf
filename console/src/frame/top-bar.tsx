// The bar over every page: organisation, command palette, time range, zone, colours, and who is signed in.

import { Button, Menu, useMantineColorScheme } from '@mantine/core'
import { signOut, useMe } from '../api/session.ts'
import { nowMs } from '../clock.ts'
import { zoneText } from '../ui/instants.ts'
import { setZone, useZone } from '../ui/preferences.ts'
import { Attention } from './attention.tsx'
import { Logo } from './logo.tsx'
import { RangePicker } from './range-picker.tsx'
import { schemes } from './schemes.ts'

interface TopBarProps {
  readonly onPalette: () => void
  readonly onRail: () => void
}

export function TopBar({ onPalette, onRail }: TopBarProps) {
  const { organisation_name, tenant_id } = useMe()
  return (
    <header className="bar">
      <Button variant="subtle" className="bar-rail" onClick={onRail} aria-label="Pages">
        ☰
      </Button>
      <span className="brand">
        <Logo /> Lethe
      </span>
      <span className="organisation" title={organisation_name}>
        {tenant_id}
      </span>
      <Button variant="default" className="bar-palette" onClick={onPalette} aria-keyshortcuts="Control+K">
        Go to … <kbd>Ctrl K</kbd>
      </Button>
      <span className="bar-space" />
      <Attention />
      {/* Together, so that a narrow bar breaks before all of them. */}
      <div className="bar-end">
        <RangePicker />
        <ZoneButton />
        <SchemeMenu />
        <AccountMenu />
      </div>
    </header>
  )
}

function ZoneButton() {
  const zone = useZone()
  const other = zone === 'utc' ? 'local' : 'utc'
  const text = zoneText(nowMs(), zone)
  return (
    <Button
      variant="subtle"
      onClick={() => setZone(other)}
      aria-label={`Time zone ${text}. Change to ${zoneText(nowMs(), other)}`}
      title={zone === 'utc' ? 'Times are in UTC' : 'Times are in the zone of this browser'}
    >
      {text}
    </Button>
  )
}

function SchemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" aria-label={`Colours: ${colorScheme}`}>
          ◐
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ scheme, text }) => (
          <Menu.Item key={scheme} onClick={() => setColorScheme(scheme)}>
            {colorScheme === scheme ? '● ' : '○ '}
            {text}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

function AccountMenu() {
  const { requester, role } = useMe()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" aria-label={`Signed in as ${role}`}>
          {role}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Signed in as <span className="break">{requester}</span>
        </Menu.Label>
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
