// The black-box run for a few seconds, with a kill, so that the command is known to work. So short a run is
// not expected to find anything; docs/jepsen.md has the long runs.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../fixtures.ts'

const out = temporaryFolder()
after(() => rmSync(out, { recursive: true, force: true }))

test('a run of some seconds with a kill finds no violation, and reports its acts', () => {
  const program = fileURLToPath(new URL('jepsen.ts', import.meta.url))
  const args = ['--minutes', '0.1', '--seed', '6', '--acts', 'kills', '--pairs', '1', '--out', out]
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, ...args],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, `${stdout}${stderr}`)
  const result = JSON.parse(readFileSync(join(out, 'result.json'), 'utf8'))
  assert.deepEqual(result.violations, {})
  assert.ok(result.counts.kills >= 1 && result.counts['rows acknowledged'] > 0, stdout)
  assert.ok(result.counts['searches of files'] >= 1, stdout)
})
