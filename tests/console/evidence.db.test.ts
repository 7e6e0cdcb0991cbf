// The ledger and the audit log in the console: a person reads and searches them, and verifies a chain in the
// browser: a complete one, and one in which a line was changed.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { systemClock } from '../../server/core/clock.ts'
import { eraseCompletely, type Service, startService } from '../scenario/service.ts'
import { sendSample } from '../scenario/telemetry.ts'
import {
  arrive,
  closeLeftOpen,
  elsewhere,
  flowLooks,
  flowSchemes,
  hasChromium,
  openBrowser,
  untilVerified,
  visit,
} from './browser.ts'
import { keyboardOf } from './keyboard.ts'

describe('evidence in the console', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  let requestId: string
  before(async () => {
    service = await startService()
    browser = await openBrowser()
    const retention = { metrics_days: 90, logs_days: 30, traces_days: null }
    assert.equal((await service.send('PUT', '/usage/storage/retention', { json: retention })).status, 200)
    const wrong = { scope: 'all', confirm: 'wrong' }
    assert.equal((await service.send('POST', '/usage/storage/deletions', { json: wrong })).status, 422)
    requestId = (await eraseCompletely(service, { scope: 'all', confirm: 'acme' })).request_id
    for (let i = 0; i < 60; i++) {
      const token = { name: `ci ${i}`, role: 'ingest' }
      assert.equal((await service.send('POST', '/tokens', { as: 'acme/admin', json: token })).status, 201)
    }
  })
  afterEach(() => closeLeftOpen(browser))
  after(async () => {
    await browser.close()
    await service.stop()
  })

  const entriesOf = (page: Page) => page.getByRole('button', { name: /^Entry \d+$/ })

  for (const { scheme, width } of flowLooks('light')) {
    test(`the audit log lists, filters and opens entries, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive(browser, service, 'audit', { scheme, width })
      const { page } = visitor
      await entriesOf(page).first().waitFor()
      assert.equal(await entriesOf(page).count(), 50)
      await visitor.shoot('audit')
      await page.getByRole('button', { name: 'Show older entries' }).click()
      await page.getByText('These are all.').waitFor()
      assert.ok((await entriesOf(page).count()) > 60)

      await page.getByLabel('What').selectOption('retention')
      await entriesOf(page).nth(1).waitFor({ state: 'detached' })
      assert.match(page.url(), /action=retention/)
      await entriesOf(page).first().click()
      const row = page.getByRole('row', { name: 'logs days' })
      await row.waitFor()
      assert.deepEqual(await row.getByRole('cell').allTextContents(), ['–', '30'])
      await visitor.checkAccess()
      await visitor.shoot('audit-open')

      await page.getByRole('button', { name: 'Clear filters' }).click()
      await page.getByLabel('Outcome').selectOption('refused')
      await page.getByRole('button', { name: 'deletion.requested' }).click()
      await page.waitForURL(/action=deletion.requested/)
      await page.getByLabel('Who').fill('nobody')
      await page.keyboard.press('Enter')
      await page.getByText('No entry matches the filters').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('audit-no-match')
      await page.goBack()
      await entriesOf(page).first().waitFor()
      await visitor.leave()
    })
  }

  test('no chain is downloaded where the browser was signed in to another organisation meanwhile', async () => {
    const visitor = await arrive(browser, service, 'settings/danger', { expects: /status of 409/ })
    const { context, page } = visitor
    const link = page.getByRole('link', { name: 'the ledger' })
    const download = page.waitForEvent('download')
    await link.click()
    assert.equal((await download).suggestedFilename(), 'ledger-acme.ndjson')
    const headers = { authorization: `Bearer ${service.secretOf('globex/owner')}`, origin: service.address }
    await context.request.post(`${service.address}/session`, { headers })
    await link.click()
    await page.getByText('signed in with another access token than the page shows').waitFor()
    await visitor.leave()
  })

  for (const scheme of flowSchemes('dark')) {
    test(`a chain is verified in the browser, and the first line that was changed is named, ${scheme}`, async () => {
      const visitor = await arrive(browser, service, 'audit', { scheme, expects: /status of 503/ })
      const { context, page } = visitor
      await entriesOf(page).first().waitFor()
      // The refusal of a busy service, with the time for a retry.
      const refusal = { code: 'overloaded', detail: 'The service is busy.' }
      const headers = { 'retry-after': '1', 'x-request-id': 'req_busy' }
      await context.route('**/ledger?*', (route) => route.fulfill({ status: 503, json: refusal, headers }), {
        times: 1,
      })
      await page.getByRole('link', { name: 'Ledger' }).click()
      const failure = page.getByRole('alert').filter({ hasText: 'The service is busy.' })
      await failure.getByText('req_busy').waitFor()
      await visitor.shoot('ledger-error')
      await failure.getByRole('button', { name: 'Retry', exact: true }).click()
      await entriesOf(page).first().waitFor()
      await failure.waitFor({ state: 'detached' })

      const verify = page.getByRole('button', { name: 'Verify the chain' })
      await verify.click()
      await page.getByText(/All \d+ entries follow each other/).waitFor()
      await visitor.checkAccess()
      await visitor.shoot('ledger-verified')
      const download = page.waitForEvent('download')
      await page.getByRole('link', { name: 'Export all entries' }).click()
      assert.equal((await download).suggestedFilename(), 'ledger-acme.ndjson')

      await context.route('**/ledger/export', async (route) => {
        const response = await route.fetch()
        const lines = (await response.text()).split('\n')
        const body = lines.with(1, lines[1]?.replace('"acme"', '"ecma"') ?? '')
        await route.fulfill({ response, body: body.join('\n') })
      })
      await verify.click()
      await page.getByText('Line 2 of the export: the entry does not match its hash').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('ledger-broken')

      await page.getByRole('button', { name: requestId }).first().click()
      await page.waitForURL(new RegExp(`request_id=${requestId}`))
      await page
        .getByRole('link', { name: `open ${requestId}` })
        .first()
        .click()
      await page.getByRole('heading', { name: requestId }).waitFor()
      await visitor.leave()
    })
  }

  test('a person with only a keyboard erases, opens the certificate, and verifies the ledger', async () => {
    await sendSample(service, 'globex/ingest', [systemClock.nowNs()])
    const visitor = await arrive(browser, service, 'storage', { tenant: 'globex' })
    const { page } = visitor
    const keys = keyboardOf(page)
    const chart = page.getByRole('application', { name: 'Stored bytes' })
    await chart.waitFor()
    await page.keyboard.press('Tab')
    await keys.tabTo(page.getByRole('link', { name: 'To the page' }))
    await keys.press('Enter')
    await keys.tabTo(chart)
    await keys.press('End')
    await keys.press('Shift+ArrowLeft')
    await keys.tabTo(page.getByRole('button', { name: 'Erase selection …' }))
    await keys.press('Enter')
    await page.getByText('Nobody else has to approve it.').waitFor()
    await keys.tabTo(page.getByLabel('Type globex to erase'))
    await keys.type('globe')
    await keys.press('Enter')
    await page.getByText('“globe” is not globex.').waitFor()
    await keys.type('x')
    await keys.press('Enter')
    await untilVerified(page)
    await page.getByText('checked in this browser').waitFor()
    const countAgain = page.getByRole('button', { name: 'Count again' })
    await keys.tabTo(countAgain)
    await keys.press('Enter')
    await page.getByText(/: 0 rows left in \d+ stores\./).waitFor()
    await keys.seeFocus()
    await keys.press('g')
    await keys.press('l')
    await page.getByRole('heading', { name: 'Ledger' }).waitFor()
    const verify = page.getByRole('button', { name: 'Verify the chain' })
    await keys.tabTo(verify)
    await keys.press('Enter')
    await page.getByText(/All \d+ entries follow each other/).waitFor()
    await keys.tabTo(verify)
    await visitor.leave()
  })

  test('over plain http from another host the page says why it can’t verify, and gives the command', async () => {
    const address = service.address.replace('127.0.0.1', elsewhere)
    // Without https the browser also ignores a policy of the page, and logs that.
    const expects = /status of 401|Cross-Origin-Opener-Policy header has been ignored/
    const visitor = await visit(browser, { address, expects })
    const { page } = visitor
    await page.goto(`${address}/console/acme/ledger`)
    await page.getByLabel('Access token').fill(service.secretOf('acme/owner'))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Browsers compute hashes and signatures only over https').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Verify the chain' }).isDisabled(), true)
    await page.getByText('./lethe ledger verify ledger-acme.ndjson --jwks lethe-jwks.json').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('ledger-plain-http')
    await page.goto(`${address}/console/acme/erasures/${requestId}`)
    await page.getByText('Browsers check signatures only over https').waitFor()
    await page.getByText(`./lethe certificate verify ${requestId}.certificate.json`).waitFor()
    await visitor.checkAccess()
    await visitor.leave()
  })

  test('a viewer sees which roles may read evidence', async () => {
    const visitor = await arrive(browser, service, 'ledger', { role: 'viewer' })
    await visitor.page.getByText('Your role does not permit reading the ledger').waitFor()
    await visitor.shoot('ledger-forbidden')
    await visitor.leave()
  })
})
