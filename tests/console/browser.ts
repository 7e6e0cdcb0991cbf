// Debian's Chromium, for tests of the console: its headless shell where that is installed. An error in its
// console, a violated policy and a file of another origin fail the test that caused it. Tests that need it
// are skipped where it is not installed. Screenshots are for people: `LETHE_SCREENSHOTS=1` writes them of
// every page and state, in the look of the test and on a wide page in both colour schemes; without it none
// is taken. The tests of a file share pages: a new one costs four seconds of a core, because it starts a
// process that compiles the console again. A page is used again without cookies and stored data.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type Browser,
  type BrowserContext,
  type ConsoleMessage,
  chromium,
  type Page,
  type Request,
} from 'playwright-core'
import { sessionOperations } from '../../contract/operations/sessions.ts'
import type { Role } from '../../contract/role.ts'
import type { Service, Tenant } from '../scenario/service.ts'
import { waitFor } from '../wait-for.ts'

/** Paths of the installed browsers. The headless shell has no windows, so a test takes a fifth less CPU. */
const browserPaths = ['chromium-headless-shell', 'chromium'].flatMap((program) => {
  const { status, stdout } = spawnSync('which', [program], { encoding: 'utf8' })
  return status === 0 ? [stdout.trim()] : []
})

export const hasChromium = browserPaths.length > 0

/** The path of the browser that people use; of the headless shell where only that is installed. */
export const usualBrowser = browserPaths.at(-1)

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** Each takes as long as an action of a person. No test compares them. */
const hasScreenshots = process.env.LETHE_SCREENSHOTS === '1'

export type Scheme = 'light' | 'dark'
const schemes: readonly Scheme[] = ['light', 'dark']

/** Wide enough for everything, and the smallest width that WCAG requires. */
const widths = { wide: 1280, narrow: 375 } as const

export interface Look {
  readonly scheme: Scheme
  readonly width: number
}

/** Both colour schemes and both widths in two runs of a flow. */
export const looks = [
  { scheme: 'light', width: widths.wide },
  { scheme: 'dark', width: widths.narrow },
] as const

/**
 * The looks of a flow of a person: one, or both where screenshots are made. The other flows of its file have
 * the other one, and all pages are seen in both by the test of the frame.
 */
export const flowLooks = (scheme: Scheme) => looks.filter((look) => hasScreenshots || look.scheme === scheme)

/** The schemes of a flow on a wide page, as `flowLooks`. */
export const flowSchemes = (scheme: Scheme) => schemes.filter((one) => hasScreenshots || one === scheme)

/** What 400 % zoom leaves of 1,280 px: nothing may be cut off. */
export const zoomedWidth = widths.wide / 4

/** Every page and state is drawn in these too where screenshots are made, so that they can be compared. */
const wideLooks = schemes.map((scheme) => ({ scheme, width: widths.wide }))

/** Returns a path in the folder that git ignores. */
function screenshotPath(name: string): string {
  const folder = join(root, 'screenshots')
  mkdirSync(folder, { recursive: true })
  return join(folder, `${name}.png`)
}

/** Names of the screenshots that this process has written. */
const taken = new Set<string>()
const shotName = (name: string, { scheme, width }: Look) => `${name}-${scheme}-${width}`

/** The look of the test and the wide ones, without those that this name has a screenshot of. */
function looksToTake(name: string, shown: Look): Look[] {
  return [shown, ...wideLooks].filter((look) => {
    const shot = shotName(name, look)
    if (taken.has(shot)) return false
    taken.add(shot)
    return true
  })
}

/**
 * A name of this machine that the browser does not treat as loopback, so that it denies what needs a secure
 * context.
 */
export const elsewhere = 'lethe.test'

/**
 * The list replaces that of Playwright, so the ones of it that matter here are repeated. The popups of the
 * address bar are pages too, which the browser would load in every new window, beside the page of the test.
 */
const featuresOff = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'],
  ...['HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable', 'PaintHolding', 'ThirdPartyStoragePartitioning'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose'],
  ...['OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch', 'MediaRouter'],
]

/** @param path of the browser; absent: the installed one that takes the least CPU */
export async function openBrowser(path = browserPaths[0]): Promise<Browser> {
  if (path === undefined) throw new Error('No Chromium is installed.')
  return chromium.launch({
    executablePath: path,
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      // Without its optimising compilers, because no page runs long enough to win back what they take.
      '--js-flags=--max-opt=1',
      `--host-resolver-rules=MAP ${elsewhere} 127.0.0.1`,
      `--disable-features=${featuresOff.join(',')}`,
    ],
  })
}

/** As in Cumulative Layout Shift. */
interface LayoutShift {
  readonly score: number
  /** The elements, each with its place before and after, in CSS pixels. */
  readonly moved: readonly string[]
}

export interface Visitor {
  readonly page: Page
  readonly context: BrowserContext
  /** Shows the same page in another scheme and at another width. */
  look(look: Look): Promise<void>
  /**
   * Writes screenshots to the folder that git ignores, where they are wanted: as the page is shown, and on a
   * wide page in both colour schemes.
   */
  shoot(name: string): Promise<void>
  /** Returns what has moved since the page was loaded, without an input: none on a good page. */
  layoutShifts(): Promise<readonly LayoutShift[]>
  /** Fails where axe finds a violation of WCAG 2.2 AA. */
  checkAccess(): Promise<void>
  /** Fails where anything was logged as an error, or loaded from another origin. */
  leave(): Promise<void>
}

interface VisitOptions {
  readonly address: string
  readonly scheme?: Scheme
  readonly width?: number
  /** Errors that the test causes on purpose, such as a refusal. */
  readonly expects?: RegExp
}

/** A page that no test uses, by its browser. */
const free = new WeakMap<Browser, Page[]>()

async function takePage(browser: Browser): Promise<Page> {
  const known = free.get(browser)?.pop()
  if (known !== undefined) return known
  const context = await browser.newContext({ timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' })
  const page = await context.newPage()
  // The machine may be busy with other tests.
  page.setDefaultTimeout(60_000)
  return page
}

/** Clears the page for the next test. The program of the console ends, so it requests nothing any more. */
async function givePage(browser: Browser, page: Page): Promise<void> {
  const context = page.context()
  await context.unrouteAll({ behavior: 'ignoreErrors' })
  await context.setOffline(false)
  await page.evaluate('localStorage.clear(), sessionStorage.clear()')
  // Of the same origin, so that the browser keeps the process of the page. It names an icon, because the
  // browser would ask the service for one, and the next test would get its refusal. It
  // stays, because a test may go back to it.
  const blank = new URL('/blank', page.url()).href
  const body = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>blank</title>'
  await page.route(blank, (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto(blank)
  await context.clearCookies()
  free.set(browser, [...(free.get(browser) ?? []), page])
}

/** Closes pages that a failed test has left open, each with a screenshot of what it shows. */
export async function closeLeftOpen(browser: Browser): Promise<void> {
  const given = free.get(browser) ?? []
  for (const [i, context] of browser.contexts().entries()) {
    const [page] = context.pages()
    if (page !== undefined && given.includes(page)) continue
    await page?.screenshot({ path: screenshotPath(`left-open-${i}`), fullPage: true })
    await context.close()
  }
}

/** Runs axe in the page and returns a line for each violation and its elements. */
const findViolations = `axe
  .run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] })
  .then(({ violations }) =>
    violations.map(({ help, id, nodes }) =>
      id + ': ' + help + nodes.map((one) => '\\n  ' + one.html).join('')))`

/** Runs in the page. The observer is called only where there are shifts, which two frames show. */
const findLayoutShifts = `new Promise((resolve) => {
  const at = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ')
  const movedOf = ({ node, previousRect, currentRect }) =>
    (node?.outerHTML ?? node?.textContent ?? 'removed').slice(0, 120) +
    ' from ' + at(previousRect) + ' to ' + at(currentRect)
  new PerformanceObserver((list) => {
    const shifts = list.getEntries().filter((entry) => !entry.hadRecentInput)
    resolve(shifts.map(({ sources, value }) => ({ score: value, moved: sources.map(movedOf) })))
  }).observe({ type: 'layout-shift', buffered: true })
  requestAnimationFrame(() => requestAnimationFrame(() => resolve([])))
})`

/**
 * axe itself, without the package for Playwright: that one loads axe again for every check and joins what it
 * found in frames, which takes three times as long. The pages have no frames.
 */
const require = createRequire(import.meta.url)
const axeSource = readFileSync(
  createRequire(require.resolve('@axe-core/playwright')).resolve('axe-core/axe.min.js'),
  'utf8',
)

/** Shows a page without cookies or stored data, as a browser that was just opened. */
export async function visit(
  browser: Browser,
  { address, expects, scheme = 'light', width = widths.wide }: VisitOptions,
): Promise<Visitor> {
  const page = await takePage(browser)
  const context = page.context()
  await page.emulateMedia({ colorScheme: scheme })
  await page.setViewportSize({ width, height: 900 })
  const faults: string[] = []
  const onConsole = (message: ConsoleMessage) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return
    if (expects?.test(message.text()) !== true) faults.push(message.text())
  }
  const onError = (error: Error) => {
    faults.push(String(error))
  }
  const onRequest = (request: Request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith('data:')) faults.push(request.url())
  }
  page.on('console', onConsole).on('pageerror', onError).on('request', onRequest)
  let shown: Look = { scheme, width }
  const show = async (look: Look) => {
    shown = look
    await page.emulateMedia({ colorScheme: look.scheme })
    await page.setViewportSize({ width: look.width, height: 900 })
    await page.locator(`html[data-mantine-color-scheme=${look.scheme}]`).waitFor()
    // A chart measures its space again, and then the page does not scroll sideways.
    // Asked from here, because the policy of the page permits no polling inside it.
    await waitFor(
      () => page.evaluate('document.documentElement.scrollWidth - innerWidth'),
      (hidden) => Number(hidden) <= 0,
    )
  }
  return {
    page,
    context,
    look: show,
    async shoot(name) {
      if (!hasScreenshots) return
      const before = shown
      for (const look of looksToTake(name, before)) {
        await show(look)
        await page.screenshot({ path: screenshotPath(shotName(name, look)), fullPage: true })
      }
      await show(before)
    },
    async layoutShifts() {
      const shifts: unknown = await page.evaluate(findLayoutShifts)
      return shifts as readonly LayoutShift[]
    },
    async checkAccess() {
      // While a button loads, or an amount is counted again, its text has too little contrast.
      await page.locator('button[data-loading], .dimmed').first().waitFor({ state: 'detached' })
      if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axeSource)
      const found = await page.evaluate(findViolations)
      assert.deepEqual(found, [])
    },
    async leave() {
      page.off('console', onConsole).off('pageerror', onError).off('request', onRequest)
      await givePage(browser, page)
      assert.deepEqual(faults, [], 'errors in the console of the browser')
    },
  }
}

/** The engine removes old files when it comes to it, which takes minutes on a busy machine. */
export const erasingMs = 5 * 60_000

/** Waits until the page of an erasure shows that it is verified. */
export const untilVerified = (page: Page) =>
  page.getByText('Hidden, removed, and counted again: nothing of it is left.').waitFor({ timeout: erasingMs })

interface Arrival extends Omit<VisitOptions, 'address'> {
  readonly role?: Role
  readonly tenant?: Tenant
}

/** Cookies of sessions by service and token: each person signs in once. */
const sessions = new Map<string, Awaited<ReturnType<BrowserContext['cookies']>>>()

/** Opens a page of an organisation, acme where absent, as somebody of this role who has signed in before. */
export async function arrive(
  browser: Browser,
  service: Service,
  path: string,
  { role = 'owner', tenant = 'acme', ...options }: Arrival = {},
): Promise<Visitor> {
  const { address } = service
  const visitor = await visit(browser, { address, ...options })
  const { context, page } = visitor
  const secret = service.secretOf(`${tenant}/${role}`)
  const known = sessions.get(`${address} ${secret}`)
  if (known === undefined) {
    const headers = { authorization: `Bearer ${secret}`, origin: address }
    const answer = await context.request.post(`${address}${sessionOperations.signIn.path}`, { headers })
    assert.equal(answer.status(), 201, await answer.text())
    sessions.set(`${address} ${secret}`, await context.cookies())
  } else await context.addCookies(known)
  await page.goto(`${address}/console/${tenant}/${path}`)
  await page.locator('#page').waitFor()
  return visitor
}
