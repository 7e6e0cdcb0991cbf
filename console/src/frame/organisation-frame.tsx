// The frame around every page of an organisation: bar, rail, banner and page. An address of another
// organisation than that of the session shows only a notice.

import { Drawer } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useMe } from '../api/session.ts'
import { useCopiedInstants } from '../ui/copied-instants.ts'
import { Notice } from '../ui/states.tsx'
import { Banner } from './banner.tsx'
import { useCarriedRange } from './carried-range.ts'
import { Gate } from './gate.tsx'
import { KeyHelp } from './key-help.tsx'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'
import { TopBar } from './top-bar.tsx'
import { useKeptFocus } from './use-kept-focus.ts'
import { useKeys } from './use-keys.ts'

/** Of the element that `To the page` leads to. */
const pageId = 'page'

export function OrganisationFrame() {
  return (
    <Gate>
      <Framed />
    </Gate>
  )
}

function Framed() {
  const me = useMe()
  const { organisation } = useParams({ strict: false })
  const navigate = useNavigate()
  const [isPaletteOpen, palette] = useDisclosure(false)
  const [isHelpOpen, help] = useDisclosure(false)
  const [isRailOpen, rail] = useDisclosure(false)
  const params = { organisation: me.tenant_id }
  const rangeFor = useCarriedRange()
  useKeptFocus(pageId)
  useCopiedInstants()
  useKeys({
    onPalette: palette.open,
    onHelp: help.open,
    onGo: (to) => void navigate({ to, params, search: rangeFor(to) as never }),
  })
  return (
    <div className="frame">
      <a href={`#${pageId}`} className="skip">
        To the page
      </a>
      <TopBar onPalette={palette.open} onRail={rail.open} />
      <nav className="rail" aria-label="Pages">
        <Rail rangeFor={rangeFor} />
      </nav>
      <Drawer
        opened={isRailOpen}
        onClose={rail.close}
        title="Pages"
        size={260}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <Rail rangeFor={rangeFor} onFollow={rail.close} />
      </Drawer>
      <main id={pageId} className="page" tabIndex={-1}>
        {organisation === me.tenant_id ? (
          <Outlet />
        ) : (
          <Notice title={`You are signed in to ${me.tenant_id}`}>
            This address belongs to {organisation}. Sign in with a token of that organisation to see it.
          </Notice>
        )}
        <Banner />
      </main>
      <Palette isOpen={isPaletteOpen} rangeFor={rangeFor} onClose={palette.close} onHelp={help.open} />
      <KeyHelp isOpen={isHelpOpen} onClose={help.close} />
    </div>
  )
}
