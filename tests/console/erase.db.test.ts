// The console's pages of storage and erasing, in a real browser against the real service: a person reads what
// is stored, selects days, erases them and gets a certificate. Other tests add a second person and a preview
// that is stale.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { LegalHold } from '../../contract/deletion/governance.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { systemClock } from '../../server/core/clock.ts'
import { checkCertificate } from '../../server/deletion/certificate/check.ts'
import { eraseCompletely, type Service } from '../scenario/service.ts'
import { waitFor } from '../wait-for.ts'
import {
  arrive,
  closeLeftOpen,
  erasingMs,
  flowLooks,
  flowSchemes,
  hasChromium,
  looks,
  openBrowser,
  type Scheme,
  untilVerified,
  type Visitor,
  zoomedWidth,
} from './browser.ts'
import { startShop } from './shop.ts'

const [msPerHour, msPerDay] = [3_600_000, 86_400_000]

describe('erasing in the console', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  before(async () => {
    service = await startShop()
    browser = await openBrowser()
  })
  afterEach(async () => {
    await closeLeftOpen(browser)
    await releaseHolds()
  })
  after(async () => {
    await browser.close()
    await service.stop()
  })

  /** Releases the hold of a failed test, because no later erasure would complete. */
  async function releaseHolds(): Promise<void> {
    const { items } = await service.read('/usage/storage/holds', pageOf(LegalHold))
    for (const { id, released_at } of items) {
      if (released_at === null) await service.send('POST', `/usage/storage/holds/${id}/release`)
    }
  }

  /** As with 400 % zoom on a screen: nothing is cut off, and axe finds nothing. */
  async function checkZoomed(visitor: Visitor, scheme: Scheme, name: string): Promise<void> {
    await visitor.look({ scheme, width: zoomedWidth })
    await visitor.checkAccess()
    await visitor.shoot(name)
    await visitor.look({ scheme, width: looks[0].width })
  }

  /**
   * The certificate as a page, on paper, and as a file that is valid with the file of the keys, both without
   * the service.
   */
  async function keepCertificate({ context, page }: Visitor): Promise<void> {
    const requestId = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const opens = async (act: Promise<void>) => {
      const [opened] = await Promise.all([context.waitForEvent('page'), act])
      await opened.getByText(requestId).first().waitFor()
      return opened
    }
    await (await opens(page.getByRole('link', { name: 'View' }).click())).close()
    await context.addInitScript(`window.print = () => { document.title = 'printed' }`)
    const printed = await opens(page.getByRole('button', { name: 'Print' }).click())
    // The policy of the page permits no polling inside it.
    await waitFor(
      () => printed.title(),
      (title) => title === 'printed',
    )
    await printed.close()
    const download = async (name: string) => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name }).click(),
      ])
      return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') }
    }
    const certificate = await download('Download (JSON)')
    const keys = await download('Download the keys')
    assert.deepEqual([certificate.name, keys.name], [`${requestId}.certificate.json`, 'lethe-jwks.json'])
    const checked = await checkCertificate(certificate.text, JSON.parse(keys.text))
    assert.equal(checked.certificate.request.request_id, requestId)
  }

  const typeWord = (page: Page, word: string) => page.getByLabel('Type acme to erase').fill(word)

  /** Selects two days by keys; the later one is this number of days before today. */
  async function selectDays(page: Page, daysAgo: number): Promise<void> {
    const chart = page.getByRole('application', { name: 'Stored bytes' })
    await chart.focus()
    await page.keyboard.press('End')
    for (let i = 0; i < daysAgo; i++) await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Shift+ArrowLeft')
  }

  for (const { scheme, width } of flowLooks('dark')) {
    test(`storage shows what is stored, by signal and by service, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive(browser, service, 'storage', { scheme, width })
      const { page } = visitor
      await page.getByRole('heading', { name: 'By signal' }).waitFor()
      await visitor.shoot('storage')
      await page.getByRole('button', { name: 'As table' }).click()
      const rows = page.getByRole('region', { name: 'Stored bytes, as a table' }).getByRole('row')
      await rows.nth(4).waitFor()
      await page.getByRole('rowheader', { name: 'checkout' }).waitFor()
      await page.getByText('by service', { exact: true }).click()
      await page.getByRole('columnheader', { name: 'others' }).waitFor()
      assert.match(page.url(), /by=service/)
      await visitor.checkAccess()
      await page.getByRole('button', { name: 'As chart' }).click()
      await visitor.shoot('storage-by-service')
      await visitor.leave()
    })
  }

  test('a viewer sees what is stored, and which role may erase', async () => {
    const visitor = await arrive(browser, service, 'storage', { role: 'viewer' })
    const { page } = visitor
    await page.getByText('Erasing is for owner or admin; you are signed in as viewer.').waitFor()
    await page.getByRole('link', { name: 'Erase', exact: false }).first().click()
    await page.getByText('Your role does not permit erasing telemetry').waitFor()
    await visitor.shoot('erase-forbidden')
    await visitor.leave()
  })

  /** The start of a UTC day, in the form of URLs and of the service. */
  const midnight = (daysAgo: number, hours = 0) => {
    const nowMs = systemClock.nowMs()
    return new Date(nowMs - (nowMs % msPerDay) - daysAgo * msPerDay + hours * msPerHour).toISOString()
  }

  test('days are selected by dragging over the chart, and nothing moves while the page loads; the command palette, the keys and the range of the bar navigate between pages', async () => {
    const visitor = await arrive(browser, service, 'storage')
    const { page } = visitor
    await page.getByRole('heading', { name: 'By service' }).waitFor()
    const chart = page.getByRole('application', { name: 'Stored bytes' })
    const box = (await chart.boundingBox()) ?? assert.fail('no chart')
    await page.mouse.move(box.x + box.width - 20, box.y + 100)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width - 120, box.y + 100, { steps: 5 })
    await page.mouse.up()
    await page.getByText(/^Selected: .* whole UTC days$/).waitFor()
    assert.match(page.url(), /first=\d{4}-\d\d-\d\d&last=\d{4}-\d\d-\d\d/)
    await chart.focus()
    await page.keyboard.press('ArrowLeft')
    await visitor.shoot('storage-dragged')
    await page.keyboard.press('Escape')
    await page.getByText('Drag over days').waitFor()
    const shifts = await visitor.layoutShifts()
    assert.ok(shifts.reduce((sum, { score }) => sum + score, 0) < 0.01, JSON.stringify(shifts))
    // Without dragging: two clicks, or two fields.
    await page.mouse.click(box.x + box.width - 120, box.y + 100)
    await page.keyboard.down('Shift')
    await page.mouse.click(box.x + box.width - 20, box.y + 100)
    await page.keyboard.up('Shift')
    await page.getByText(/^Selected: .* whole UTC days$/).waitFor()
    await page.getByLabel('First day to erase').fill('1999-01-01')
    await page.getByText(/^A day from /).waitFor()
    await page.getByLabel('First day to erase').fill(midnight(2).slice(0, 10))
    await page.getByLabel('Last day to erase').fill(midnight(1).slice(0, 10))
    await page.keyboard.press('Enter')
    await page.waitForURL(`**first=${midnight(2).slice(0, 10)}&last=${midnight(1).slice(0, 10)}`)

    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('era')
    await visitor.checkAccess()
    await visitor.shoot('palette')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByText('Nothing was ever erased').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByRole('button', { name: 'Time range: last 30 days' }).click()
    await visitor.checkAccess()
    await visitor.shoot('range')
    await page.getByRole('button', { name: 'last 7 days' }).click()
    await page.waitForURL(/from=now-7d&to=now/)
    // The range is kept on the way over a page that has none.
    await page.getByRole('link', { name: 'Retention' }).click()
    await page.getByRole('heading', { name: 'Retention' }).waitFor()
    await page.getByRole('link', { name: 'Storage' }).click()
    await page.getByRole('button', { name: 'Time range: last 7 days' }).click()
    await page.getByLabel('To', { exact: true }).fill(midnight(1))
    await page.keyboard.press('Enter')
    await page.waitForURL(/from=now-7d&to=\d{4}/)
    await page.keyboard.press('Escape')
    await page.getByLabel('To', { exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: /^Time range: \d/ }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await visitor.shoot('keys')
    await visitor.leave()
  })

  test('a refusal of the service is shown with its request id, until the selection is corrected', async () => {
    const visitor = await arrive(browser, service, 'erase?to=2200-01-01T00:00:00Z', {
      tenant: 'globex',
      expects: /status of 422/,
    })
    const { page } = visitor
    await page.getByText('It could not be counted').waitFor()
    await page.getByText('Input is outside what can be stored').waitFor()
    await page.getByText(/req_[0-9a-z]+/).waitFor()
    await visitor.shoot('erase-refused')
    await page.getByLabel('To', { exact: true }).fill(midnight(1))
    await page.keyboard.press('Enter')
    await page.getByText('Nothing that can be read is stored in this selection').waitFor()
    await visitor.shoot('erase-nothing')
    await visitor.leave()
  })

  test('a banner says that the service can’t be reached, until it responds again; a session that ends while somebody types is renewed in a dialog, and nothing is lost', async () => {
    const visitor = await arrive(browser, service, 'erase', {
      expects: /ERR_INTERNET_DISCONNECTED|status of 401/,
    })
    const { page } = visitor
    await page.getByText('Choose where the range ends.').first().waitFor()
    await visitor.context.setOffline(true)
    await page.getByLabel('To', { exact: true }).fill(midnight(1))
    await page.keyboard.press('Enter')
    const banner = page.getByRole('alert').filter({ hasText: 'The service can’t be reached.' })
    await banner.waitFor()
    assert.equal(await page.getByRole('button', { name: 'Erase', exact: true }).isDisabled(), true)
    await visitor.shoot('offline')
    await visitor.context.setOffline(false)
    await banner.waitFor({ state: 'hidden' })
    await page.getByText('Nobody else has to approve it.').waitFor()

    await page.getByLabel('Note').fill('Ticket 118')
    await visitor.context.clearCookies()
    await page.getByRole('button', { name: 'Count again' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await visitor.checkAccess()
    await visitor.shoot('session-ended')
    await dialog.getByLabel('Access token').fill(service.secretOf('acme/owner'))
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor({ state: 'hidden' })
    assert.equal(await page.getByLabel('Note').inputValue(), 'Ticket 118')
    await visitor.leave()
  })

  test('a legal hold is placed, defers its part of an erasure, and is released', async () => {
    const visitor = await arrive(browser, service, 'holds')
    const { page } = visitor
    await page.getByText('No legal hold was ever placed').waitFor()
    await page.getByRole('button', { name: 'Place the hold' }).click()
    await page.getByText('Name the case.').waitFor()
    await page.getByLabel('Case').fill('2026-17')
    await page.getByLabel('From', { exact: true }).fill(midnight(3, 6))
    await page.getByLabel('To', { exact: true }).fill(midnight(3, 7))
    await page.getByRole('button', { name: 'Place the hold' }).click()
    await page.getByRole('rowheader', { name: '2026-17' }).waitFor()
    await visitor.shoot('holds')
    await page.goto(`${service.address}/console/acme/erase?from=${midnight(3)}&to=${midnight(2)}`)
    await page.getByText(/The legal hold .* keeps what it covers/).waitFor()
    await visitor.shoot('erase-held')
    await page.getByRole('link', { name: /^hld_/ }).click()
    await page.locator('tr[aria-current]', { hasText: '2026-17' }).waitFor()
    await page.getByRole('button', { name: 'Release: 2026-17' }).click()
    await page.getByRole('button', { name: 'Release now: 2026-17' }).click()
    await page.getByText('released', { exact: false }).last().waitFor()
    await page.getByRole('button', { name: 'Release' }).waitFor({ state: 'detached' })
    await visitor.leave()
  })

  test('a shorter retention shows what it would erase and asks for the word; a longer one is saved', async () => {
    const visitor = await arrive(browser, service, 'retention')
    const { page } = visitor
    await page.getByLabel('Days of logs').fill('2')
    await page.getByText(/^logs: [\d,]+ rows, .* would go, everything before/).waitFor()
    await page.getByRole('button', { name: 'Save, and erase what is older' }).click()
    await page.getByText('Type acme here: a shorter rule erases at once.').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('retention')
    await page.getByLabel('Days of logs').fill('400')
    await page.getByText(/^logs: 0 rows/).waitFor()
    await page.getByLabel('Type acme to erase what is older').fill('acme')
    await page.getByRole('button', { name: 'Save, and erase what is older' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByRole('cell', { name: '400 UTC days' }).waitFor()
    await page.getByLabel('Days of logs').fill('')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('cell', { name: '400 UTC days' }).waitFor({ state: 'detached' })
    await visitor.leave()
  })

  test('telemetry that is hidden and not yet removed is visible again when the erasure is cancelled', async () => {
    const visitor = await arrive(
      browser,
      service,
      `erase?from=${midnight(2)}&to=${midnight(2, 6)}&delay=1440`,
    )
    const { page } = visitor
    await page.getByText('Nobody else has to approve it.').waitFor()
    await typeWord(page, 'acme')
    await page.getByRole('button', { name: /^Hide, and erase later, [\d,]+ rows$/ }).click()
    await page.getByText('Nobody can read it any more. It is removed later').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('erasure-scheduled')
    await page.getByRole('button', { name: 'Cancel this erasure' }).click()
    await page.getByText('It was cancelled before anything was removed.').waitFor()
    await visitor.shoot('erasure-cancelled')
    await visitor.leave()
  })

  test('a count that has changed is shown beside the new one, and confirmed again', async () => {
    const visitor = await arrive(browser, service, `erase?from=${midnight(1)}&to=${midnight(0)}`, {
      expects: /status of 412/,
    })
    const { page } = visitor
    await page.getByText('Nobody else has to approve it.').waitFor()
    const bounds = { range_start: midnight(1), range_end: midnight(1, 12) }
    await eraseCompletely(service, { scope: 'range', confirm: 'acme', ...bounds })
    await typeWord(page, 'acme')
    await page.getByRole('button', { name: /^Erase [\d,]+ rows$/ }).click()
    await page.getByText('The count has changed, so nothing was erased').waitFor()
    assert.equal(await page.getByLabel('Type acme to erase').inputValue(), 'acme')
    await visitor.checkAccess()
    await visitor.shoot('erase-changed')
    await page.getByRole('button', { name: /^Erase [\d,]+ rows$/ }).click()
    await untilVerified(page)
    await visitor.leave()
  })

  for (const scheme of flowSchemes('light')) {
    test(`days are selected, erased and certified, ${scheme}`, async () => {
      const visitor = await arrive(browser, service, 'storage', { scheme })
      const { page } = visitor
      await selectDays(page, scheme === 'light' ? 3 : 1)
      await visitor.shoot('storage-selected')
      await page.getByRole('button', { name: 'Erase selection …' }).click()
      await page.getByText('Nobody else has to approve it.').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erase')
      await checkZoomed(visitor, scheme, 'erase')
      const erase = page.getByRole('button', { name: /^Erase [\d,]+ rows$/ })
      await typeWord(page, 'acne')
      await erase.click()
      await page.getByText('“acne” is not acme.').waitFor()
      await visitor.shoot('erase-wrong-word')
      await typeWord(page, 'acme')
      await erase.click()
      await untilVerified(page)
      await page.getByText('checked in this browser').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erasure-completed')
      if (scheme === 'light') await keepCertificate(visitor)
      await page.getByRole('button', { name: 'Show the steps' }).click()
      await page.getByRole('button', { name: 'Count again' }).click()
      await page.getByText(/: 0 rows left in \d+ stores\./).waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erasure-steps')
      await checkZoomed(visitor, scheme, 'erasure-steps')
      await page.getByRole('link', { name: 'Erasures' }).first().click()
      await page.getByRole('cell', { name: 'completed' }).first().waitFor()
      await visitor.shoot('erasures')
      await page.getByRole('link', { name: 'Storage' }).first().click()
      await page.getByText('erased', { exact: true }).first().waitFor()
      await visitor.shoot('storage-erased')
      await visitor.leave()
    })
  }

  test('what needs a second person waits for one, and a hold that is placed meanwhile keeps its part until its release', async () => {
    const policy = { approval: 'every_deletion' }
    const set = await service.send('PUT', '/usage/storage/deletion-policy', { json: policy })
    assert.equal(set.status, 200, set.text)
    const asking = await arrive(browser, service, 'erase?scope=all')
    const { page } = asking
    await page.getByText('A second owner or admin must approve it; until then nothing is hidden.').waitFor()
    await asking.shoot('erase-all')
    await typeWord(page, 'acme')
    await page.getByRole('button', { name: /^Ask to erase [\d,]+ rows$/ }).click()
    await page.getByText('You asked for it, so somebody else has to decide.').waitFor()
    await asking.checkAccess()
    await asking.shoot('erasure-awaits')
    const requestId = new URL(page.url()).pathname.split('/').at(-1)
    const hold = { case_ref: '2026-18', signals: ['logs'] }
    const placed = await service.send('POST', '/usage/storage/holds', { json: hold })
    assert.equal(placed.status, 201, placed.text)
    const deciding = await arrive(browser, service, `erasures/${requestId}`, { role: 'admin' })
    await deciding.page.getByText(/^It would erase [\d,]+ rows/).waitFor()
    await deciding.page
      .getByText(/The legal hold hld_\w+ keeps what it covers: that part is erased after its release\./)
      .waitFor()
    await deciding.page.getByRole('button', { name: 'Reject' }).click()
    await deciding.page.getByText('Say why.').waitFor()
    await deciding.checkAccess()
    await deciding.shoot('erasure-to-approve')
    await deciding.page.getByRole('button', { name: 'Approve' }).click()
    for (const person of [deciding, asking]) {
      await person.page.getByText('A legal hold keeps a part of it.').waitFor({ timeout: erasingMs })
    }
    await asking.checkAccess()
    await asking.shoot('erasure-held')
    const readable = await service.read('/usage/storage', StorageUsage)
    assert.equal(readable.rows, 0, 'what a hold keeps is hidden too')
    await page.getByRole('link', { name: /^hld_/ }).click()
    await page.getByRole('button', { name: 'Release: 2026-18' }).click()
    await page.getByRole('button', { name: 'Release now: 2026-18' }).click()
    await untilVerified(deciding.page)
    await page.getByRole('link', { name: 'Storage' }).first().click()
    await page.getByText('Nothing is stored').waitFor()
    await asking.shoot('storage-all-erased')
    await deciding.leave()
    await asking.leave()
  })
})
