// A person looks at what is stored, selects days, erases them and holds a proof, in a real browser against
// the real service. Two colour schemes; the second person and the changed count are people of their own.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { Role } from '../../contract/tenancy.ts'
import type { Service } from '../scenario/service.ts'
import { hasChromium, openBrowser, type Scheme, schemes, type Visitor, visit, widths } from './browser.ts'
import { startShop } from './shop.ts'

describe('erasing in the console', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  before(async () => {
    service = await startShop()
    browser = await openBrowser()
  })
  after(async () => {
    await browser.close()
    await service.stop()
  })

  interface Arrival {
    readonly scheme?: Scheme
    readonly width?: number
    readonly role?: Role
    readonly expects?: RegExp
  }

  /** Opens a page of acme as somebody with this role. */
  async function arrive(path: string, { role = 'owner', ...more }: Arrival = {}): Promise<Visitor> {
    const expects = more.expects ?? /status of 401/
    const visitor = await visit(browser, { address: service.address, ...more, expects })
    const { page } = visitor
    await page.goto(`${service.address}/console/acme/${path}`)
    await page.getByLabel('Access token').fill(service.secretOf(`acme/${role}`))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('#page').waitFor()
    return visitor
  }

  const typeWord = (page: Page, word: string) => page.getByLabel('Type acme to erase').fill(word)

  /** Selects two days, the later one so many days before today, by keys. */
  async function selectDays(page: Page, daysAgo: number): Promise<void> {
    const chart = page.getByRole('application', { name: 'Stored bytes' })
    await chart.focus()
    await page.keyboard.press('End')
    for (let i = 0; i < daysAgo; i++) await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Shift+ArrowLeft')
  }

  for (const scheme of schemes) {
    test(`storage shows what is stored, ${scheme}`, async () => {
      for (const width of Object.values(widths)) {
        const visitor = await arrive('storage', { scheme, width })
        const { page } = visitor
        await page.getByRole('heading', { name: 'By signal' }).waitFor()
        await visitor.checkAccess()
        await visitor.shoot('storage')
        await page.getByRole('button', { name: 'As table' }).click()
        const rows = page.getByRole('region', { name: 'Stored bytes, as a table' }).getByRole('row')
        assert.ok((await rows.count()) > 4)
        await visitor.checkAccess()
        await visitor.leave()
      }
    })
  }

  test('a viewer sees what is stored, and which role may erase', async () => {
    const visitor = await arrive('storage', { role: 'viewer' })
    const { page } = visitor
    await page.getByText('Erasing is for owner or admin; you are signed in as viewer.').waitFor()
    await page.getByRole('link', { name: 'Erase', exact: false }).first().click()
    await page.getByText('Your role does not permit erasing telemetry').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('erase-forbidden')
    await visitor.leave()
  })

  for (const scheme of schemes) {
    test(`days are selected, erased and certified, ${scheme}`, async () => {
      const visitor = await arrive('storage', { scheme })
      const { page } = visitor
      await selectDays(page, scheme === 'light' ? 3 : 1)
      await visitor.shoot('storage-selected')
      await page.getByRole('button', { name: 'Erase selection …' }).click()
      await page.getByText('Nobody else has to approve it.').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erase')
      const erase = page.getByRole('button', { name: /^Erase [\d,]+ rows$/ })
      await typeWord(page, 'acne')
      await erase.click()
      await page.getByText('“acne” is not acme.').waitFor()
      await visitor.shoot('erase-wrong-word')
      await typeWord(page, 'acme')
      await erase.click()
      await page.getByText('Hidden, removed, and counted again: nothing of it is left.').waitFor()
      await page.getByText('checked in this browser').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erasure-completed')
      await page.getByRole('button', { name: 'Show the steps' }).click()
      await page.getByRole('button', { name: 'Count again' }).click()
      await page.getByText(/: 0 rows left in \d+ stores\./).waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erasure-steps')
      await page.getByRole('link', { name: 'Erasures' }).first().click()
      await page.getByRole('cell', { name: 'completed' }).first().waitFor()
      await visitor.checkAccess()
      await visitor.shoot('erasures')
      await page.getByRole('link', { name: 'Storage' }).first().click()
      await page.getByText('erased', { exact: true }).first().waitFor()
      await visitor.shoot('storage-erased')
      await visitor.leave()
    })
  }
})
