// The frame of the settings: their pages beside each other, the dangerous one last.

import { Link, Outlet } from '@tanstack/react-router'
import { useMe } from '../../api/session.ts'

const sections = [
  { to: '/$organisation/settings', label: 'Organisation' },
  { to: '/$organisation/settings/tokens', label: 'Access tokens' },
  { to: '/$organisation/settings/approval', label: 'Approval' },
  { to: '/$organisation/settings/keys', label: 'Signing keys' },
  { to: '/$organisation/settings/danger', label: 'Danger zone' },
] as const

export function SettingsFrame() {
  const { tenant_id: organisation } = useMe()
  return (
    <>
      <h1>Settings</h1>
      <nav aria-label="Settings" className="sections">
        {sections.map(({ label, to }) => (
          <Link
            key={to}
            to={to}
            params={{ organisation }}
            activeOptions={{ exact: true, includeSearch: false }}
            className="sections-link"
          >
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </>
  )
}
