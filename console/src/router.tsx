// The addresses of the console. A page loads its code when it is opened; what it shows is in the address.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { Home, NotFound } from './frame/home.tsx'
import { OrganisationFrame } from './frame/organisation-frame.tsx'
import { SignInPage } from './frame/sign-in.tsx'
import { parseSearch, stringifySearch } from './ui/address.ts'

const root = createRootRoute({ notFoundComponent: NotFound })
const home = createRoute({ getParentRoute: () => root, path: '/', component: Home })
const signIn = createRoute({ getParentRoute: () => root, path: '/sign-in', component: SignInPage })
const organisation = createRoute({
  getParentRoute: () => root,
  path: '/$organisation',
  component: OrganisationFrame,
})

const storage = createRoute({
  getParentRoute: () => organisation,
  path: '/storage',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/storage/storage-page.tsx')).StoragePage,
  })),
})
const erase = createRoute({
  getParentRoute: () => organisation,
  path: '/erase',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/erase/erase-page.tsx')).ErasePage,
  })),
})
const erasures = createRoute({
  getParentRoute: () => organisation,
  path: '/erasures',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/erasure/erasures-page.tsx')).ErasuresPage,
  })),
})
const erasure = createRoute({
  getParentRoute: () => organisation,
  path: '/erasures/$requestId',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/erasure/erasure-page.tsx')).ErasurePage,
  })),
})

const holds = createRoute({
  getParentRoute: () => organisation,
  path: '/holds',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/governance/holds-page.tsx')).HoldsPage,
  })),
})
const retention = createRoute({
  getParentRoute: () => organisation,
  path: '/retention',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/governance/retention-page.tsx')).RetentionPage,
  })),
})
const ledger = createRoute({
  getParentRoute: () => organisation,
  path: '/ledger',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/evidence/ledger-page.tsx')).LedgerPage,
  })),
})
const audit = createRoute({
  getParentRoute: () => organisation,
  path: '/audit',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/evidence/audit-page.tsx')).AuditPage,
  })),
})
const send = createRoute({
  getParentRoute: () => organisation,
  path: '/send',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/send/send-page.tsx')).SendPage,
  })),
})

const settings = createRoute({
  getParentRoute: () => organisation,
  path: '/settings',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/settings-frame.tsx')).SettingsFrame,
  })),
})
const facts = createRoute({
  getParentRoute: () => settings,
  path: '/',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/organisation-page.tsx')).OrganisationPage,
  })),
})
const tokens = createRoute({
  getParentRoute: () => settings,
  path: '/tokens',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/tokens-page.tsx')).TokensPage,
  })),
})
const approval = createRoute({
  getParentRoute: () => settings,
  path: '/approval',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/approval-page.tsx')).ApprovalPage,
  })),
})
const keys = createRoute({
  getParentRoute: () => settings,
  path: '/keys',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/keys-page.tsx')).KeysPage,
  })),
})
const danger = createRoute({
  getParentRoute: () => settings,
  path: '/danger',
  component: lazyRouteComponent(async () => ({
    default: (await import('./pages/settings/danger-page.tsx')).DangerPage,
  })),
})

const settingsPages = settings.addChildren([facts, tokens, approval, keys, danger])
const pages = [storage, erase, erasures, erasure, holds, retention, ledger, audit, send, settingsPages]

export const router = createRouter({
  routeTree: root.addChildren([home, signIn, organisation.addChildren(pages)]),
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
