// The supervisor with real processes: one that crashes, one that blocks, one that is only busy, and those
// that end by themselves. Checks and pauses take milliseconds here.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, test } from 'node:test'
import { createWatch, limitsFor, supervise, usualLimits } from './supervisor.mjs'

const quick = {
  tickMs: 20,
  asleepTicksMax: 5,
  silentTicksMax: 5000,
  pausesMs: [1, 1],
  recoveredMs: usualLimits.recoveredMs,
}

interface Course {
  readonly ended: readonly [code: number | null, signal: string | null]
  readonly said: readonly string[]
  readonly starts: number
}

/**
 * Supervises a program until it has ended for good. It gets the number of crashes and hangs as `crashed` and
 * `hung`; `alive(then)` sends a sign of life, and `die()` ends it by an abort, as native code does.
 */
function course(program: string, { limits = quick, onSay = () => {} } = {}): Promise<Course> {
  const text = `
    const crashed = Number(process.env.LETHE_RESTARTS_CRASHED), hung = Number(process.env.LETHE_RESTARTS_HUNG)
    const alive = (then) => process.send('alive', then), die = () => process.kill(process.pid, 'SIGABRT')
    ${program}`
  const said: string[] = []
  let starts = 0
  return new Promise((resolve) =>
    supervise({
      start(env) {
        starts++
        return spawn(process.execPath, ['-e', text], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      },
      say(sentence) {
        said.push(sentence)
        onSay()
      },
      onEnd: (code, signal) => resolve({ ended: [code, signal], said, starts }),
      limits,
    }),
  )
}

describe('a service', { concurrency: 2, timeout: 60_000 }, () => {
  test('that native code aborts is started again, and receives the number of crashes', async () => {
    const { ended, said, starts } = await course('if (crashed === 0) die(); process.exit(crashed + 6)')
    assert.deepEqual([ended, starts], [[7, null], 2])
    assert.match(
      said.join('\n'),
      /^the service failed after \d+ s: SIGABRT ended it\. It starts again in 0\.001 s\.$/,
    )
  })

  test('whose event loop is blocked is killed and started again', async () => {
    const { ended, said } = await course(`
      if (hung === 1) process.exit(0)
      alive(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))`)
    assert.deepEqual(ended, [0, null])
    assert.match(said.join('\n'), /^the service failed after \d+ s: its event loop was blocked for 5 s\./)
  })

  test('that computes for longer than it may be blocked is not restarted', async () => {
    const { ended, said } = await course(`
      alive(() => { const end = performance.now() + 500; while (performance.now() < end); process.exit(0) })`)
    assert.deepEqual([ended, said], [[0, null], []])
  })

  test('in an endless loop is killed and started again', async () => {
    const { said } = await course('if (hung === 1) process.exit(0); alive(() => { for (;;); })', {
      limits: { ...quick, silentTicksMax: 20 },
    })
    assert.match(said.join('\n'), /: its event loop was busy for 20 s\./)
  })

  test('that is still starting may be blocked', async () => {
    const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)'
    const { ended, said } = await course(`${wait}; process.exit(0)`)
    assert.deepEqual([ended, said], [[0, null], []])
  })

  test('that crashes again and again is not started any more: an error says so, and its signal is kept', async () => {
    const { ended, said, starts } = await course('die()')
    assert.deepEqual([ended, starts], [[null, 'SIGABRT'], 3])
    assert.equal(said.length, 3)
    assert.match(said[2] ?? '', /failed 3 times in a row \(SIGABRT ended it\) and is not started again/)
  })

  test('that ran for long before each crash is always started again', async () => {
    const { ended, starts } = await course('if (crashed < 4) die()', {
      limits: { ...quick, recoveredMs: 0 },
    })
    assert.deepEqual([ended, starts], [[0, null], 5])
  })

  test('that ends with an exit code, as for a wrong setting, is not started again', async () => {
    const { ended, said, starts } = await course('process.exit(1)')
    assert.deepEqual([ended, said, starts], [[1, null], [], 1])
  })
})

describe('a signal to stop', { timeout: 60_000 }, () => {
  test('is forwarded to the service, whose exit code is kept', async () => {
    // The program asks its parent, which is this process, to stop as a service manager does.
    const { ended, said, starts } = await course(`
      process.on('SIGTERM', () => process.exit(5))
      setInterval(() => {}, 1000)
      alive(() => process.kill(process.ppid, 'SIGTERM'))`)
    assert.deepEqual([ended, said, starts], [[5, null], [], 1])
  })

  test('ends supervision: a service that crashes while it stops is not started again', async () => {
    const { ended, said, starts } = await course(`
      process.on('SIGTERM', die)
      setInterval(() => {}, 1000)
      alive(() => process.kill(process.ppid, 'SIGTERM'))`)
    assert.deepEqual([ended, said, starts], [[null, 'SIGABRT'], [], 1])
  })

  test('in the pause before a restart ends the supervisor at once', async () => {
    const { ended, starts } = await course('die()', {
      limits: { ...quick, pausesMs: [2 ** 30] },
      onSay: () => process.kill(process.pid, 'SIGTERM'),
    })
    assert.deepEqual([ended, starts], [[0, null], 1])
  })
})

describe('a watch', () => {
  const limits = { asleepTicksMax: 3, silentTicksMax: 10 }
  const looks = (states: string, cpuOf: (look: number) => number = () => 0) => {
    const watch = createWatch(limits)
    return [...states].map((state, look) => {
      if (state === '!') watch.sign()
      return state === '!' ? null : watch.tick({ state, cpu: cpuOf(look) })
    })
  }

  test('counts from the last sign of life', () => {
    assert.deepEqual(new Set(looks('SS!SS!SS!SS')), new Set([null]))
    assert.match(looks('SS!SSS').at(-1) ?? '', /blocked/)
  })

  test('does not kill a process that was stopped by a debugger or SIGSTOP', () => {
    assert.deepEqual(new Set(looks('SSTTTTTTTTTTTTTt')), new Set([null]))
  })

  test('counts waiting for the disk and for the processor as work, for which the longer limit applies', () => {
    assert.deepEqual(looks('DRDRDRDRD').at(-1), null)
    assert.match(looks('DRDRDRDRDR').at(-1) ?? '', /busy/)
  })

  test('counts a thread that polls as sleeping, and one that computes between polls as working', () => {
    assert.match(looks('SSS', (look) => look).at(-1) ?? '', /blocked/)
    assert.equal(looks('SSSSSS', (look) => look * 50).at(-1), null)
  })
})

test('the setting limits how long a loop may be blocked, or disables supervision', () => {
  assert.equal(limitsFor(undefined), usualLimits)
  assert.equal(limitsFor(''), usualLimits)
  assert.deepEqual(limitsFor('20'), { ...usualLimits, asleepTicksMax: 20, silentTicksMax: 100 })
  assert.equal(limitsFor('off'), null)
})
