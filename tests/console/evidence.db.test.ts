// A person reads the ledger and the audit log, searches them, and verifies a chain in the browser: a whole
// one, and one in which a line was changed on the way.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { Role } from '../../contract/tenancy.ts'
import { eraseCompletely, type Service, startService } from '../scenario/service.ts'
import { hasChromium, looks, openBrowser, type Scheme, schemes, type Visitor, visit } from './browser.ts'

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
  after(async () => {
    await browser.close()
    await service.stop()
  })

  interface Arrival {
    readonly scheme?: Scheme
    readonly width?: number
    readonly role?: Role
  }

  /** Opens a page of acme as somebody with this role. */
  async function arrive(path: string, { role = 'owner', ...more }: Arrival = {}): Promise<Visitor> {
    const visitor = await visit(browser, { address: service.address, ...more, expects: /status of 401/ })
    const { page } = visitor
    await page.goto(`${service.address}/console/acme/${path}`)
    await page.getByLabel('Access token').fill(service.secretOf(`acme/${role}`))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('#page').waitFor()
    return visitor
  }

  const entriesOf = (page: Page) => page.getByRole('button', { name: /^Entry \d+$/ })

  for (const { scheme, width } of looks) {
    test(`the audit log lists, filters and opens entries, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive('audit', { scheme, width })
      const { page } = visitor
      await entriesOf(page).first().waitFor()
      assert.equal(await entriesOf(page).count(), 50)
      await visitor.checkAccess()
      await visitor.shoot('audit')
      await page.getByRole('button', { name: 'Show older entries' }).click()
      await page.getByText('These are all.').waitFor()
      assert.ok((await entriesOf(page).count()) > 60)

      await page.getByLabel('What').selectOption('retention')
      await entriesOf(page).nth(1).waitFor({ state: 'detached' })
      assert.match(page.url(), /action=retention/)
      await entriesOf(page).first().click()
      const row = page.getByRole('row', { name: 'logs days' })
      assert.deepEqual(await row.getByRole('cell').allTextContents(), ['–', '30'])
      await visitor.checkAccess()
      await visitor.shoot('audit-open')

      await page.getByRole('button', { name: 'Clear filters' }).click()
      await page.getByLabel('Outcome').selectOption('refused')
      await page.getByRole('button', { name: 'deletion.requested' }).click()
      assert.match(page.url(), /action=deletion.requested/)
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

  for (const scheme of schemes) {
    test(`a whole chain is verified in the browser, ${scheme}`, async () => {
      const visitor = await arrive('ledger', { scheme })
      const { page } = visitor
      await page.getByRole('button', { name: 'Verify the chain' }).click()
      await page.getByText(/All \d+ entries follow each other/).waitFor()
      await visitor.checkAccess()
      await visitor.shoot('ledger-verified')
      const download = page.waitForEvent('download')
      await page.getByRole('link', { name: 'Export all entries' }).click()
      assert.equal((await download).suggestedFilename(), 'ledger-acme.ndjson')
      await page.getByRole('button', { name: requestId }).first().click()
      assert.match(page.url(), new RegExp(`request_id=${requestId}`))
      await page
        .getByRole('link', { name: `open ${requestId}` })
        .first()
        .click()
      await page.getByRole('heading', { name: requestId }).waitFor()
      await visitor.leave()
    })

    test(`the first line that was changed is named, ${scheme}`, async () => {
      const visitor = await arrive('ledger', { scheme })
      const { context, page } = visitor
      await context.route('**/ledger/export', async (route) => {
        const response = await route.fetch()
        const lines = (await response.text()).split('\n')
        const body = lines.with(1, lines[1]?.replace('"acme"', '"ecma"') ?? '')
        await route.fulfill({ response, body: body.join('\n') })
      })
      await page.getByRole('button', { name: 'Verify the chain' }).click()
      await page.getByText('Line 2 of the export: the entry does not match its hash').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('ledger-broken')
      await visitor.leave()
    })
  }

  test('a viewer is told which roles may read evidence', async () => {
    const visitor = await arrive('ledger', { role: 'viewer' })
    await visitor.page.getByText('Your role does not permit reading the ledger').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('ledger-forbidden')
    await visitor.leave()
  })
})
