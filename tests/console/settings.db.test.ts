// Managing an organisation in the console: tokens, the rule of a second person, and the removal of the
// organisation. Pages offer only what the role may do.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { systemClock } from '../../server/core/clock.ts'
import { eraseCompletely, type Service, startService } from '../scenario/service.ts'
import { arrive, closeLeftOpen, flowLooks, hasChromium, openBrowser, visit } from './browser.ts'

const msPerDay = 86_400_000

describe('settings in the console', { skip: !hasChromium }, () => {
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

  /** The response of the service to a program that sends this secret. */
  const statusWith = async (secret: string) => {
    const response = await fetch(`${service.address}/me`, { headers: { authorization: `Bearer ${secret}` } })
    return response.status
  }

  async function makeWith(secret: string, name: string): Promise<string> {
    const response = await fetch(`${service.address}/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, role: 'ingest' }),
    })
    assert.equal(response.status, 201)
    const body = (await response.json()) as { readonly token: string }
    return body.token
  }

  const secretOn = async (page: Page) =>
    (await page.getByRole('region', { name: 'Secret' }).locator('code').textContent()) ??
    assert.fail('no secret is shown')

  /** Everything that the browser stores. */
  const keptBy = async (page: Page) =>
    JSON.stringify([
      page.url(),
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state])'),
      await page.context().cookies(),
    ])

  for (const { scheme, width } of flowLooks('dark')) {
    test(`a token is created, used, replaced, and revoked with its descendants, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive(browser, service, 'settings/tokens', { scheme, width })
      const { page } = visitor
      const name = `parent ${scheme}`
      await page.getByRole('button', { name: 'first owner' }).waitFor()
      await page.getByLabel('Name').fill(name)
      await page.getByLabel('Role').selectOption('admin')
      await page.getByLabel('Works for').selectOption('30')
      await page.getByRole('button', { name: 'Create the token' }).click()
      await page.getByText(`The secret of ${name}, shown once`).waitFor()
      const secret = await secretOn(page)
      assert.equal(await statusWith(secret), 200)
      assert.ok(!(await keptBy(page)).includes(secret))
      await visitor.shoot('tokens-made')
      const child = await makeWith(secret, `child ${scheme}`)
      await page.reload()
      await page.getByRole('button', { name }).waitFor()
      assert.ok(!(await page.content()).includes(secret))

      // By keys: the newest token is the child, the next one its parent.
      for (const key of ['j', 'j', 'k', 'j', 'Enter']) await page.keyboard.press(key)
      await page.getByRole('button', { name: 'Show 1 working token' }).waitFor()
      assert.match(page.url(), /open=tok_/)
      await page.getByRole('button', { name: `Replace ${name} …` }).click()
      await visitor.checkAccess()
      await visitor.shoot('tokens-open')
      await page.getByRole('button', { name: 'Create the new token' }).click()
      await page.getByText('Both tokens work now.').waitFor()
      const next = await secretOn(page)
      assert.deepEqual([await statusWith(secret), await statusWith(next)], [200, 200])

      const notice = page.locator('.notice')
      await notice.getByRole('button', { name: `Revoke ${name} …` }).click()
      await notice.getByText('1 working token was made with it').waitFor()
      await notice.getByText(`child ${scheme}`).waitFor()
      await page.getByLabel('revoke them too').check()
      await visitor.checkAccess()
      await visitor.shoot('tokens-revoke')
      await page.getByRole('button', { name: 'Revoke 2 tokens' }).click()
      await page.getByText(`${name} is revoked, with 1 token below it.`).waitFor()
      const statuses = await Promise.all([secret, child, next].map(statusWith))
      assert.deepEqual(statuses, [401, 401, 200])
      await page.getByRole('button', { name: 'I have stored it' }).click()
      await page.getByLabel('Tokens', { exact: true }).selectOption('ended')
      await page.getByRole('cell', { name: 'revoked' }).nth(1).waitFor()
      await visitor.shoot('tokens-ended')
      await visitor.leave()
    })
  }

  for (const { scheme, width } of flowLooks('light')) {
    test(`the settings can be read, and a list that could not be read shows the request id and is read again, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive(browser, service, 'settings', {
        ...{ scheme, width },
        expects: /status of 503/,
      })
      const { context, page } = visitor
      await page.getByText('You type it to confirm an erasure.').waitFor()
      await visitor.shoot('settings')
      const refused = { code: 'not_ready', detail: 'The service is starting or stopping.' }
      const headers = { 'x-request-id': 'req_test' }
      await context.route('**/tokens?*', (route) => route.fulfill({ status: 503, headers, json: refused }), {
        times: 1,
      })
      await page.getByRole('link', { name: 'Access tokens' }).click()
      await page.getByText('The tokens could not be read').waitFor()
      await page.getByText('req_test').waitFor()
      await visitor.shoot('tokens-error')
      await page.getByRole('button', { name: 'Retry' }).click()
      await page.getByRole('region', { name: 'Access tokens' }).waitFor()
      await page.getByRole('link', { name: 'Signing keys' }).click()
      await page
        .getByRole('link', { name: 'Open as JSON' })
        .or(page.getByText('Nothing was signed yet'))
        .waitFor()
      await visitor.shoot('settings-keys')
      await page.getByRole('link', { name: 'Approval' }).click()
      await page.getByLabel('for large erasures').check()
      await page.getByText('It is stricter').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('settings-rule')
      await page.getByRole('link', { name: 'Danger zone' }).click()
      await page.getByRole('button', { name: 'Remove acme' }).click()
      await page.getByText('Type acme here.').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('settings-danger')
      await visitor.leave()
    })
  }

  test('a lifetime beyond that of the own token is refused with an error at its field', async () => {
    const made = await service.send('POST', '/tokens', {
      json: { name: 'brief', role: 'admin', expires_in_days: 2 },
    })
    const visitor = await visit(browser, { address: service.address, expects: /status of 4(?:01|22)/ })
    const { page } = visitor
    await page.goto(`${service.address}/console/acme/settings/tokens`)
    await page.getByLabel('Access token').fill(JSON.parse(made.text).token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('Name').fill('long')
    assert.ok(!(await page.getByLabel('Role').textContent())?.includes('owner'))
    await page.getByLabel('Works for').selectOption('365')
    await page.getByRole('button', { name: 'Create the token' }).click()
    await page.getByText(/at most 1, or left out: a token lasts at most as long/).waitFor()
    assert.equal(await page.getByLabel('Name').inputValue(), 'long')
    await visitor.leave()
  })

  test('under a stricter rule an erasure waits for a second person, and every page shows that it does', async () => {
    const visitor = await arrive(browser, service, 'settings/approval')
    const { page } = visitor
    await page.getByText('In force: never').waitFor()
    await page.getByLabel('for every erasure').check()
    await page.getByText('It is stricter, so it is in force at once, also for erasures').waitFor()
    await page.getByRole('button', { name: 'Save the rule' }).click()
    await page.getByText('In force: for every erasure').waitFor()
    await page.getByRole('link', { name: 'Danger zone' }).click()
    await page.getByRole('link', { name: 'Choose everything on the page Erase' }).click()
    await page.getByText('Nothing that can be read is stored in this selection').waitFor()
    await page.getByLabel('Type acme to erase').fill('acme')
    await page.getByRole('button', { name: 'Ask to erase 0 rows' }).click()
    await page.getByText('A second person must approve it').waitFor()
    await page.getByRole('link', { name: '1 to approve' }).click()
    await page.getByRole('link', { name: 'Erasures 1 waiting for a second person' }).waitFor()
    await page.waitForURL(/status=awaiting_approval/)
    await visitor.shoot('to-approve')
    await page.goto(`${service.address}/console/acme/settings/approval`)
    await page.getByLabel('never').check()
    await page.getByRole('button', { name: 'Save the rule' }).click()
    await page.getByText('A looser rule waits: never').waitFor()
    await page.getByText('In force: for every erasure').waitFor()
    await visitor.shoot('settings-approval')
    await visitor.leave()
  })

  test('requests are listed page by page, and j and k move through them unless they are switched off', async () => {
    for (let days = 1; days <= 6; days++) {
      const time = new Date(systemClock.nowMs() - days * msPerDay).toISOString()
      const json = { scope: 'range', range_start: time, range_end: time.replace('Z', '1Z'), confirm: 'acme' }
      const { status, text } = await service.send('POST', '/usage/storage/deletions', { json })
      assert.equal(status, 202, text)
    }
    const visitor = await arrive(browser, service, 'storage')
    const { context, page } = visitor
    // Shorter pages than those of the console, which would need hundreds of requests.
    await context.route('**/usage/storage/deletions?limit=50*', (route) =>
      route.continue({ url: route.request().url().replace('limit=50', 'limit=5') }),
    )
    await page.getByRole('link', { name: 'Erasures' }).click()
    const rows = page.getByRole('region', { name: 'Deletion requests' }).getByRole('rowheader')
    await rows.nth(4).waitFor()
    assert.equal(await rows.count(), 5)
    await page.getByRole('button', { name: 'Show older requests' }).click()
    await page.getByText('These are all.').waitFor()
    assert.equal(await rows.count(), 7)
    const focused = () => page.evaluate('document.activeElement?.textContent')
    const second = await rows.nth(1).textContent()
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key)
    assert.equal(await focused(), second)
    await page.keyboard.press('?')
    await page.getByText('next and previous row of a list').waitFor()
    await visitor.checkAccess()
    await visitor.shoot('keys')
    await page.getByLabel('Single letters and signs are keys').uncheck()
    await page.keyboard.press('Escape')
    await page.getByText('next and previous row of a list').waitFor({ state: 'detached' })
    await rows.nth(1).getByRole('link').focus()
    await page.keyboard.press('j')
    assert.equal(await focused(), second)
    await page.keyboard.press('Enter')
    await page.getByText('A second person must approve it').waitFor()
    await visitor.leave()
  })

  test('the audit log is searched between two instants', async () => {
    const visitor = await arrive(browser, service, 'audit')
    const { page } = visitor
    await page
      .getByRole('button', { name: /^Entry/ })
      .first()
      .waitFor()
    await page.getByLabel('Time', { exact: true }).selectOption('between')
    await page.getByLabel('From').fill('2020-01-01')
    await page.getByLabel('To', { exact: true }).fill('2020-01-02 12:00')
    await page.keyboard.press('Enter')
    await page.getByText('No entry matches the filters').waitFor()
    assert.match(page.url(), /range_start=2019-12-31T23%3A00%3A00Z&range_end=2020-01-02T11%3A00%3A00Z/)
    await visitor.shoot('audit-between')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page
      .getByRole('button', { name: /^Entry/ })
      .first()
      .waitFor()
    await visitor.leave()
  })

  test('a viewer sees no form, and which role may use it', async () => {
    const visitor = await arrive(browser, service, 'settings/tokens', { role: 'viewer' })
    const { page } = visitor
    for (const [link, text] of [
      ['Access tokens', 'Your role does not permit reading access tokens'],
      ['Approval', 'Your role does not permit reading the approval rule'],
      ['Danger zone', 'Your role does not permit removing the organisation'],
    ] as const) {
      await page.getByRole('link', { name: link }).click()
      await page.getByText(text).waitFor()
      await page
        .getByText(/This is for owner.*; you are signed in as viewer\./)
        .first()
        .waitFor()
      assert.equal(await page.locator('#page').locator('form, input').count(), 0)
    }
    await visitor.checkAccess()
    await visitor.shoot('settings-viewer')
    await visitor.leave()
  })

  test('an admin reads the rule, and only an owner changes it', async () => {
    const visitor = await arrive(browser, service, 'settings/approval', { role: 'admin' })
    await visitor.page.getByText('Changing it is for owner; you are signed in as admin.').waitFor()
    assert.equal(await visitor.page.locator('#page form').count(), 0)
    await visitor.leave()
  })

  test('an organisation is removed after its erasure, and the page shows the checkpoints', async () => {
    const visitor = await arrive(browser, service, 'settings/danger', {
      tenant: 'globex',
      expects: /status of (?:401|409)/,
    })
    const { page } = visitor
    await page.getByLabel('Type globex to remove it').fill('globex')
    await page.getByRole('button', { name: 'Remove globex' }).click()
    await page.getByText('No erasure of all its telemetry is completed.').waitFor()
    await eraseCompletely(service, { scope: 'all', confirm: 'globex' }, 'globex/owner')
    await page.getByRole('button', { name: 'Remove globex' }).click()
    await page.getByText('globex is removed').waitFor()
    assert.match(
      (await page.getByRole('region', { name: 'Checkpoints' }).textContent()) ?? '',
      /"audit": "eyJ/,
    )
    assert.equal(await statusWith(service.secretOf('globex/owner')), 401)
    await visitor.checkAccess()
    await visitor.shoot('settings-removed')

    const other = await visitor.context.newPage()
    await other.goto(`${service.address}/console/sign-in`)
    await other.getByLabel('Access token').fill(service.secretOf('acme/viewer'))
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('button', { name: 'Signed in as viewer' }).waitFor()
    await other.close()
    assert.equal(await page.getByText('globex is removed').count(), 1, 'the checkpoints are shown once')
    await visitor.leave()
  })
})
