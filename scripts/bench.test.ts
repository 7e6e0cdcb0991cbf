// The runner of benches in its own process.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import nodeFlags from './node-flags.json' with { type: 'json' }

const program = fileURLToPath(new URL('bench.ts', import.meta.url))

function list() {
  return spawn(process.execPath, [...nodeFlags, program], { stdio: ['ignore', 'pipe', 'pipe'] })
}

test('without a name it lists the benches', async () => {
  assert.match(await text(list().stdout), /^ingest\/decode +1 min {2}\S/m)
})

test('a reader that closes the list early, such as head, is not an error', async () => {
  const child = list()
  child.stdout.destroy()
  const said = text(child.stderr)
  const [code] = await once(child, 'close')
  assert.deepEqual([code, await said], [0, ''])
})
