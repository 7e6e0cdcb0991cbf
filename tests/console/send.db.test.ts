// A person sends the first telemetry with what the console shows, and finds out there why something was
// refused. The snippet is run as it is.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { type Service, startService } from '../scenario/service.ts'
import { hasChromium, looks, openBrowser, visit } from './browser.ts'

const run = promisify(execFile)

describe('sending, as the console shows it', { skip: !hasChromium }, () => {
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
    test(`the snippet of curl stores a record, and a refusal is explained, ${scheme} and ${width} wide`, async () => {
      const { address } = service
      const visitor = await visit(browser, { address, scheme, width, expects: /status of 401/ })
      const { page } = visitor
      await page.goto(`${address}/console/acme/send`)
      await page.getByLabel('Access token').fill(service.secretOf('acme/admin'))
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('waiting for data').waitFor()
      await page.getByRole('button', { name: 'Create an ingest token' }).click()
      await page.getByText('It is shown once').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('send-waiting')
      const snippet =
        (await page.getByRole('region', { name: 'Snippet' }).locator('code').textContent()) ?? ''

      const wrong = await run('bash', ['-c', snippet.replace('/v1/logs', '/v1/logs/v1/logs')])
      assert.match(wrong.stdout, /404/)
      await page.getByRole('cell', { name: 'POST /v1/logs/v1/logs' }).first().waitFor()

      const { stdout } = await run('bash', ['-c', snippet])
      assert.match(stdout, /200/)
      await page.getByText('1 row since this page was opened').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('send-arrived')
      for (const sender of ['SDK', 'Collector', 'Prometheus']) {
        await page.getByText(sender, { exact: true }).click()
        const text = await page.getByRole('region', { name: 'Snippet' }).locator('code').textContent()
        assert.match(text ?? '', /lethe_ingest_/)
        assert.ok(text?.includes(address))
      }
      await visitor.leave()
    })
  }

  test('a viewer sees what arrives, and which roles read refusals', async () => {
    const { address } = service
    const visitor = await visit(browser, { address, expects: /status of 401/ })
    const { page } = visitor
    await page.goto(`${address}/console/acme/send`)
    await page.getByLabel('Access token').fill(service.secretOf('acme/viewer'))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Your role does not permit reading refusals').waitFor()
    await page.getByText('Creating a token is for owner or admin').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('send-viewer')
    await visitor.leave()
  })
})
