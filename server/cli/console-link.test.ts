// Opening the console's link: a program in PATH gets the link in a desktop session, and nowhere else. A named
// pipe returns what it got, so that nothing waits for a fixed time.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolders } from '../../tests/fixtures.ts'
import { openInBrowser } from './console-link.ts'

const newFolder = temporaryFolders()

const link = 'http://127.0.0.1:4318/console/sign-in#code=c-1_x'

/** A folder with an opener, and the link that it will get. */
function fakeOpener(): { readonly folder: string; readonly opened: () => Promise<string> } {
  const folder = newFolder()
  const pipe = join(folder, 'opened')
  execFileSync('mkfifo', [pipe])
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\nprintf '%s|%s' "$#" "$1" > '${pipe}'\n`, {
    mode: 0o755,
  })
  return { folder, opened: () => readFile(pipe, 'utf8') }
}

test('on a desktop the program that opens addresses gets the whole link', async () => {
  for (const desktop of [{ DISPLAY: ':0' }, { WAYLAND_DISPLAY: 'wayland-0' }]) {
    const { folder, opened } = fakeOpener()
    assert.equal(await openInBrowser(link, { PATH: `${folder}:/usr/bin:/bin`, ...desktop }, true), true)
    assert.equal(await opened(), `1|${link}`)
  }
})

test('without a desktop, or where the output is no terminal, nothing is opened', async () => {
  const { folder } = fakeOpener()
  const PATH = `${folder}:/usr/bin:/bin`
  assert.equal(await openInBrowser(link, { PATH }, true), false)
  assert.equal(await openInBrowser(link, { PATH, DISPLAY: '' }, true), false)
  assert.equal(await openInBrowser(link, { PATH, DISPLAY: ':0' }, false), false)
})

test('a desktop without such a program is no error', async () => {
  assert.equal(await openInBrowser(link, { PATH: newFolder(), DISPLAY: ':0' }, true), false)
})
