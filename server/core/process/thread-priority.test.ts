// Priorities of threads, as the kernel reports them.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { getPriority, platform } from 'node:os'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

const program = `
  const { parentPort, workerData } = require('node:worker_threads')
  const threadId = () => require('node:path').basename(require('node:fs').readlinkSync('/proc/thread-self'))
  import(workerData).then(({ lowerThreadPriority }) => {
    lowerThreadPriority('computing')
    parentPort.on('message', () => parentPort.close())
    parentPort.postMessage(Number(threadId()))
  })
`

test('a thread that computes has a lower priority than the event loop, which keeps its own', {
  skip: platform() === 'linux' ? false : 'only Linux has a priority for each thread',
}, async () => {
  const before = getPriority()
  const workerData = new URL('./thread-priority.ts', import.meta.url).href
  const worker = new Worker(program, { eval: true, workerData })
  const threadId = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject)
  })
  assert.equal(getPriority(threadId), Math.min(19, before + 5))
  assert.equal(getPriority(), before)
  worker.postMessage('end')
  await new Promise((resolve) => worker.once('exit', resolve))
})

/** A process of its own, because a test must keep its priority. */
const raises = `
  const { getPriority, setPriority } = require('node:os')
  const tries = () => {
    try {
      setPriority(getPriority() - 1)
      return true
    } catch {
      return false
    }
  }
  import(process.argv[1]).then(({ mayRaisePriority }) =>
    process.stdout.write(JSON.stringify([mayRaisePriority(), tries()])))
`

test('it is known whether a priority that was lowered can be raised again', {
  skip: platform() === 'linux' ? false : 'only Linux has capabilities',
}, () => {
  const url = new URL('./thread-priority.ts', import.meta.url).href
  const flags = ['--disable-warning=ExperimentalWarning', '-e', raises, url]
  const { stdout } = spawnSync(process.execPath, flags, { encoding: 'utf8' })
  const [known, tried] = JSON.parse(stdout)
  assert.equal(known, tried)
})
