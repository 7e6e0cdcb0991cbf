// A person signs in to the console, and sees every page of it in every state: loaded, empty, forbidden, after
// a refusal, and while it loads from a service that can't be reached. Each is seen in both schemes, on a
// phone and with 400 % zoom: axe finds nothing, nothing is cut off, and nothing has moved while it loaded. A
// page reads and acts only as the token that it shows, whoever signs in to the browser meanwhile.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Browser, Locator, Page } from 'playwright-core'
import { AccessToken } from '../../contract/organisation/tenancy.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { type Service, startService, type Who } from '../scenario/service.ts'
import {
  arrive,
  closeLeftOpen,
  flowLooks,
  hasChromium,
  type Look,
  looks,
  openBrowser,
  type Visitor,
  visit,
  zoomedWidth,
} from './browser.ts'
import { fillPages, type PageCase } from './page-cases.ts'

const TokenPage = pageOf(AccessToken)

const [wide, narrow] = looks
const zoomed = { scheme: 'light', width: zoomedWidth } as const

/**
 * Whether the page has a layout of its own, so that it could move in its own way, and a state of it could
 * have its own violation.
 */
const isUnlike = ({ path }: PageCase) => /^(?:storage|erase\?.*|erasures\/.*|audit)$/.test(path)

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

  /** Signs in on the page that is shown. */
  async function signInOn(page: Page, who: Who): Promise<void> {
    await page.getByLabel('Access token', { exact: true }).fill(service.secretOf(who))
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  const tokenNames = async (who: Who) =>
    (await service.read('/tokens', TokenPage, who)).items.map(({ name }) => name)

  test('an act is refused where the browser was signed in to another organisation meanwhile, and the page shows that one', async () => {
    const visitor = await arrive(browser, service, 'settings/tokens', { expects: /status of 409/ })
    const { context, page } = visitor
    await page.getByRole('button', { name: 'first owner' }).waitFor()
    await page.getByLabel('Name').fill('by mistake')
    /** As another program of the browser could, which tells no window. */
    const signIn = async (who: Who) => {
      const headers = { authorization: `Bearer ${service.secretOf(who)}`, origin: service.address }
      const answer = await context.request.post(`${service.address}/session`, { headers })
      assert.equal(answer.status(), 201)
    }
    await signIn('globex/owner')
    await page.getByRole('button', { name: 'Create the token' }).click()
    await page.getByText('You are signed in to globex').waitFor()
    assert.equal(await page.locator('.organisation').textContent(), 'globex')
    await visitor.checkAccess()
    await visitor.shoot('signed-in-elsewhere')
    for (const who of ['acme/owner', 'globex/owner'] as const) {
      const names = await tokenNames(who)
      assert.deepEqual([names.includes('first owner'), names.includes('by mistake')], [true, false], who)
    }
    await signIn('acme/owner')
    await page.getByRole('button', { name: 'Signed in as owner' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'first owner' }).waitFor()
    await visitor.leave()
  })

  test('all windows of a browser show at once who signs in or out in one of them', async () => {
    // 409: a request of the window that reaches the service after the sign-in in the other one.
    const visitor = await visit(browser, { address: service.address, expects: /status of 4(?:01|09)/ })
    const { context, page } = visitor
    await page.goto(`${service.address}/console/acme/settings/danger`)
    await signInOn(page, 'acme/owner')
    await page.getByRole('button', { name: 'Remove acme' }).waitFor()
    const other = await context.newPage()
    await other.goto(page.url())
    await other.getByRole('button', { name: 'Signed in as owner' }).click()
    await other.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Lethe' }).waitFor()
    await signInOn(other, 'acme/owner')
    await page.getByRole('button', { name: 'Remove acme' }).waitFor()
    await other.goto(`${service.address}/console/sign-in`)
    await signInOn(other, 'globex/viewer')
    await page.getByText('You are signed in to globex').waitFor()
    await page.getByRole('button', { name: 'Signed in as viewer' }).waitFor()
    await other.close()
    await visitor.leave()
  })

  test('whoever signs in after a session has ended sees nothing that was read for the one before', async () => {
    // 409: a request of the page that reaches the service after the other sign-in.
    const visitor = await arrive(browser, service, 'settings/tokens', {
      expects: /status of (?:401|409|503)/,
    })
    const { context, page } = visitor
    await page.getByRole('button', { name: 'first owner' }).waitFor()
    await context.clearCookies()
    await page.getByLabel('Name').fill('by mistake')
    await page.getByRole('button', { name: 'Create the token' }).click()
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    const json = { code: 'overloaded', detail: 'The service is busy.' }
    await context.route('**/me', (route) => route.fulfill({ status: 503, json }))
    await signInOn(page, 'globex/viewer')
    await page.getByText('The console could not ask who you are').waitFor()
    assert.equal(await page.getByText(/acme|first owner/).count(), 0)
    await context.unroute('**/me')
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('You are signed in to globex').waitFor()
    await visitor.leave()
  })

  let filled: Promise<readonly PageCase[]> | null = null
  /** Pages of globex, which has something on each; acme has nothing. */
  const pages = () => {
    filled ??= fillPages(service, 'globex')
    return filled
  }

  const addressOf = (page: Page, { path }: PageCase) =>
    `/console/${new URL(page.url()).pathname.split('/')[2]}/${path}`

  /** As in the name of a screenshot. */
  const nameOf = ({ path }: PageCase) =>
    path
      .replace(/\?.*/, '')
      .replace(/erasures\/.*/, 'erasure')
      .replace('/', '-')

  /** A run of axe takes most of the time, so a page that is not loaded is checked in one of its looks. */
  const checkedLook = async (pageCase: PageCase) =>
    (await pages()).indexOf(pageCase) % 2 === 0 ? narrow : zoomed

  /**
   * A page with a layout of its own is loaded in the narrow look and in the wide one, the others are opened
   * inside the console. Each is checked in both, and fits the window in every look.
   */
  async function seeLoaded({ page, ...visitor }: Visitor, pageCase: PageCase): Promise<void> {
    const name = nameOf(pageCase)
    const load = async (view: Look) => {
      await visitor.look(view)
      await page.goto(`${service.address}${addressOf(page, pageCase)}`)
      await page.locator('#page').getByText(pageCase.loaded).first().waitFor()
      assert.deepEqual(await visitor.layoutShifts(), [], `${name} moves, loaded, ${view.width} wide`)
    }
    const open = async () => {
      await visitor.look(narrow)
      const before = await visitor.layoutShifts()
      await follow(page, addressOf(page, pageCase))
      const shown = page.locator('#page').getByText(pageCase.loaded)
      await shown.and(page.locator(':not([data-old])')).first().waitFor()
      assert.deepEqual(await visitor.layoutShifts(), before, `${name} moves, opened`)
    }
    if (isUnlike(pageCase)) {
      await load(wide)
      await load(narrow)
    } else await open()
    for (const view of [narrow, zoomed, wide]) {
      await visitor.look(view)
      if (view !== zoomed) await visitor.checkAccess()
      await visitor.shoot(`${name}-loaded`)
    }
  }

  test('every page is accessible when it is loaded', async () => {
    const visitor = await arrive(browser, service, 'settings', { tenant: 'globex' })
    for (const pageCase of await pages()) await seeLoaded(visitor, pageCase)
    await visitor.leave()
  })

  interface SeenAll {
    readonly state: string
    readonly isSeen: (pageCase: PageCase) => boolean
    /** What a page shows in this state. */
    readonly shown: (pageCase: PageCase) => Locator
    /** Pages that axe checks; absent: all. */
    readonly isChecked?: (pageCase: PageCase) => boolean
  }

  /**
   * Sees pages in a state in which they have nothing to show: all in one look, then all in the other. They
   * are opened inside the console, as by a link, so that its program is loaded once. A page with a layout of
   * its own is loaded again in the first look, and must not move.
   */
  async function seeAll(
    { page, ...visitor }: Visitor,
    { isChecked = () => true, ...all }: SeenAll,
  ): Promise<void> {
    const { isSeen, shown, state } = all
    const seen = (await pages()).filter(isSeen)
    for (const view of [narrow, zoomed]) {
      await visitor.look(view)
      for (const pageCase of seen) {
        const name = nameOf(pageCase)
        const isLoaded = view === narrow && isUnlike(pageCase)
        if (isLoaded) await page.goto(`${service.address}${addressOf(page, pageCase)}`)
        else await follow(page, addressOf(page, pageCase))
        await shown(pageCase).and(page.locator(':not([data-old])')).first().waitFor()
        if (isLoaded) assert.deepEqual(await visitor.layoutShifts(), [], `${name} moves, ${state}`)
        // It is as wide as the window also with what it shows.
        await visitor.look(view)
        if (isChecked(pageCase) && view === (await checkedLook(pageCase))) await visitor.checkAccess()
        await visitor.shoot(`${name}-${state}`)
      }
    }
  }

  /** Opens an address as a link does. Marks what the page before shows, which says nothing of this one. */
  async function follow(page: Page, address: string): Promise<void> {
    await page.evaluate(`for (const one of document.querySelectorAll('#page *')) one.dataset.old = ''
      history.pushState(null, '', ${JSON.stringify(address)})`)
  }

  /** A page that reads nothing. Of the organisation that has something on each page where none is named. */
  const arriveInSettings = (options: Parameters<typeof arrive>[3]) =>
    arrive(browser, service, 'settings/danger', { tenant: 'globex', ...narrow, ...options })

  test('every page says where there is nothing', async () => {
    await pages()
    const visitor = await arriveInSettings({ tenant: 'acme' })
    await seeAll(visitor, {
      state: 'empty',
      isSeen: ({ empty }) => empty !== null,
      shown: ({ empty }) => visitor.page.getByText(empty ?? ''),
    })
    await visitor.leave()
  })

  test('every page says to a viewer what a role does not permit', async () => {
    await pages()
    const visitor = await arriveInSettings({ role: 'viewer' })
    await seeAll(visitor, {
      state: 'forbidden',
      isSeen: ({ forbidden }) => forbidden !== null,
      shown: ({ forbidden }) => visitor.page.getByText(forbidden ?? ''),
    })
    await visitor.leave()
  })

  test('every page shows a refusal with the id of the request', async () => {
    const all = await pages()
    const visitor = await arriveInSettings({ expects: /status of 503/ })
    const { context, page } = visitor
    const json = { code: 'overloaded', detail: 'The service is busy.' }
    const headers = { 'retry-after': '900', 'x-request-id': 'req_busy' }
    await context.route(
      ({ pathname }) => all.some(({ reads }) => pathname === reads),
      (route) => route.fulfill({ status: 503, json, headers }),
    )
    // Nothing is known from before.
    await page.reload()
    await seeAll(visitor, {
      state: 'refused',
      isChecked: isUnlike,
      isSeen: ({ reads }) => reads !== null,
      shown: () => page.getByRole('alert').filter({ hasText: 'req_busy' }),
    })
    await visitor.leave()
  })

  test('every page keeps its frame while it loads, and tells where the service can’t be reached', async () => {
    await pages()
    const visitor = await arriveInSettings({ expects: /ERR_CONNECTION_REFUSED/ })
    const { context, page } = visitor
    await context.route(
      ({ pathname }) => pathname !== '/me' && !pathname.startsWith('/console'),
      (route) => route.abort('connectionrefused'),
    )
    await page.reload()
    await page.getByText('The service can’t be reached.').waitFor()
    await seeAll(visitor, {
      state: 'offline',
      isChecked: isUnlike,
      isSeen: ({ reads }) => reads !== null,
      shown: () => page.locator('#page .mantine-Skeleton-root'),
    })
    await page.getByText('The service can’t be reached.').waitFor()
    await visitor.leave()
  })
})
