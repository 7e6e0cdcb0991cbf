// Signing in to the console, navigating in it and signing out, in a real browser.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Service, startService } from '../scenario/service.ts'
import { hasChromium, looks, openBrowser, visit } from './browser.ts'

describe('the frame of the console', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  before(async () => {
    service = await startService()
    browser = await openBrowser()
  })
  after(async () => {
    await browser.close()
    await service.stop()
  })

  for (const { scheme, width } of looks) {
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
      await visitor.checkAccess()
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
})
