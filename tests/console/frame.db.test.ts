// A person signs in to the console, and sees every page of it in every state: loaded, empty, forbidden, after
// a refusal, and while it loads from a service that can't be reached. Each is seen in both schemes, on a
// phone and with 400 % zoom: axe finds nothing, nothing is cut off, and nothing has moved while it loaded.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Browser, Locator, Page } from 'playwright-core'
import { type Service, startService } from '../scenario/service.ts'
import {
  arrive,
  closeLeftOpen,
  flowLooks,
  hasChromium,
  hasScreenshots,
  type Look,
  looks,
  openBrowser,
  type Visitor,
  visit,
  zoomedWidth,
} from './browser.ts'
import { fillPages, type Sight } from './sights.ts'

/** A page is opened in the first look of a row, and then seen in the others. */
const [wide, narrow] = looks
const zoomed = { scheme: 'light', width: zoomedWidth } as const
const oneVisit: readonly Look[][] = [[narrow, zoomed]]
const twoVisits: readonly Look[][] = [[narrow], [wide, zoomed]]

/**
 * Whether the page is laid out in a way of its own. The others show a refusal, and that the service can't be
 * reached, with the same parts; they are seen too where screenshots are made.
 */
const isUnlike = ({ path }: Sight) => /^(?:storage|erase\?.*|erasures\/.*|audit)$/.test(path)

describe('the frame of the console', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  before(async () => {
    service = await startService()
    browser = await openBrowser()
  })
  afterEach(() => closeLeftOpen(browser))
  after(async () => {
    await browser.close()
    await service.stop()
  })

  for (const { scheme, width } of flowLooks('dark')) {
    test(`a person signs in with a token, ${scheme} and ${width} wide`, async () => {
      const { address } = service
      const visitor = await visit(browser, { address, scheme, width, expects: /status of 401/ })
      const { page } = visitor
      await page.goto(address)
      await page.getByRole('heading', { name: 'Sign in to Lethe' }).waitFor()
      await visitor.checkAccess()
      await visitor.shoot('sign-in')
      await page.getByLabel('Access token').fill('wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('The access token is unknown').waitFor()
      await visitor.shoot('sign-in-wrong')
      await page.getByLabel('Access token').fill(service.secretOf('acme/owner'))
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('No telemetry has arrived yet').waitFor()
      assert.equal(new URL(page.url()).pathname, '/console/acme/storage')
      await visitor.shoot('storage-empty')
      await visitor.leave()
    })
  }

  test('a link with a one-time code signs in once, and leaves no code in the address', async () => {
    const code = await service.app.createSignInCode(service.secretOf('acme/owner'), {
      kind: 'operator',
      id: 'test',
      name: 'test',
    })
    const link = `${service.address}/console/sign-in#code=${code}`
    const first = await visit(browser, { address: service.address })
    await first.page.goto(link)
    await first.page.getByText('No telemetry has arrived yet').waitFor()
    assert.doesNotMatch(first.page.url(), /code/)
    await first.page.goBack()
    assert.doesNotMatch(first.page.url(), /code/)
    await first.leave()
    const second = await visit(browser, { address: service.address, expects: /status of 401/ })
    await second.page.goto(link)
    await second.page.getByText('This link was used before').waitFor()
    await second.shoot('sign-in-used-link')
    await second.leave()
  })

  let filled: Promise<readonly Sight[]> | null = null
  /** Pages of globex, which has something on each; acme has nothing. */
  const sights = () => {
    filled ??= fillPages(service, 'globex')
    return filled
  }

  interface Seen {
    readonly sight: Sight
    readonly state: string
    /** It is there when this is. */
    readonly shown: Locator
    readonly visits?: readonly Look[][]
  }

  async function see({ page, ...visitor }: Visitor, { shown, sight, state, visits = oneVisit }: Seen) {
    const organisation = new URL(page.url()).pathname.split('/')[2]
    const name = sight.path
      .replace(/\?.*/, '')
      .replace(/erasures\/.*/, 'erasure')
      .replace('/', '-')
    // A run of axe takes most of the time, so a page that is not loaded is checked in one of its looks.
    const index = (await sights()).indexOf(sight)
    const checked = visits === oneVisit ? [index % 2 === 0 ? narrow : zoomed] : visits.flat()
    for (const views of visits) {
      for (const view of views) {
        await visitor.look(view)
        if (view === views[0]) {
          await page.goto(`${service.address}/console/${organisation}/${sight.path}`)
          await shown.first().waitFor()
          assert.equal(await visitor.layoutShift(), 0, `${name} moves, ${state}, ${view.width} wide`)
          // It is as wide as the window also with what was loaded.
          await visitor.look(view)
        }
        if (checked.includes(view)) await visitor.checkAccess()
        await visitor.shoot(`${name}-${state}`)
      }
    }
  }

  test('every page is accessible when it is loaded', async () => {
    const visitor = await arrive(browser, service, 'settings', { tenant: 'globex' })
    for (const sight of await sights()) {
      const shown = visitor.page.locator('#page').getByText(sight.loaded)
      await see(visitor, { sight, state: 'loaded', shown, visits: twoVisits })
    }
    await visitor.leave()
  })

  test('every page says where there is nothing', async () => {
    const visitor = await arrive(browser, service, 'settings')
    for (const sight of await sights()) {
      if (sight.empty === null) continue
      await see(visitor, { sight, state: 'empty', shown: visitor.page.getByText(sight.empty) })
    }
    await visitor.leave()
  })

  test('every page says to a viewer what a role does not permit', async () => {
    const visitor = await arrive(browser, service, 'settings', { tenant: 'globex', role: 'viewer' })
    for (const sight of await sights()) {
      if (sight.forbidden === null) continue
      await see(visitor, { sight, state: 'forbidden', shown: visitor.page.getByText(sight.forbidden) })
    }
    await visitor.leave()
  })

  interface Answered {
    readonly state: string
    /** Whether this request is answered here, and by what. */
    readonly isAnswered: (pathname: string, sight: Sight) => boolean
    readonly answer: Parameters<Page['route']>[1]
    readonly shown: (page: Page) => Locator
    readonly expects: RegExp
  }

  async function seeAnswered({ answer, expects, isAnswered, shown, state }: Answered): Promise<void> {
    const visitor = await arrive(browser, service, 'settings', { tenant: 'globex', expects })
    const { context, page } = visitor
    for (const sight of await sights()) {
      if (sight.reads === null || !(hasScreenshots || isUnlike(sight))) continue
      await context.route(({ pathname }) => isAnswered(pathname, sight), answer)
      await see(visitor, { sight, state, shown: shown(page) })
      await context.unrouteAll({ behavior: 'ignoreErrors' })
    }
    await visitor.leave()
  }

  test('each kind of page shows a refusal with the id of the request', async () => {
    const json = { code: 'overloaded', detail: 'The service is busy.' }
    const headers = { 'retry-after': '900', 'x-request-id': 'req_busy' }
    await seeAnswered({
      state: 'refused',
      isAnswered: (pathname, { reads }) => pathname === reads,
      answer: (route) => route.fulfill({ status: 503, json, headers }),
      shown: (page) => page.getByRole('alert').filter({ hasText: 'req_busy' }),
      expects: /status of 503/,
    })
  })

  test('each kind of page keeps its frame while it loads, and tells where the service can’t be reached', async () => {
    await seeAnswered({
      state: 'offline',
      isAnswered: (pathname) => pathname !== '/me' && !pathname.startsWith('/console'),
      answer: (route) => route.abort('connectionrefused'),
      shown: (page) =>
        page.locator('main:has(.mantine-Skeleton-root)').getByText('The service can’t be reached.'),
      expects: /ERR_CONNECTION_REFUSED/,
    })
  })
})
