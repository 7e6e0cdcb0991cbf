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

const pages = [storage, erase, erasures, erasure, holds, retention, ledger, audit, send]

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
