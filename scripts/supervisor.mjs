// Keeps the service running: starts it again after a crash, and kills and starts it where its event loop
// hangs. A program that ends with an exit code, or after a signal to stop, is never started again. Plain
// JavaScript, because it runs on the machine's own Node.

import { readFileSync } from 'node:fs'
import process from 'node:process'

/**
 * The limits in production. They count ticks of the supervisor and not seconds of a clock: where the whole
 * machine sleeps or is overloaded, the supervisor pauses together with the service.
 */
export const usualLimits = {
  /** Time between two checks of the service. */
  tickMs: 1000,
  /**
   * Ticks without a sign of life in which the main thread slept, before the service is killed. A statement of
   * the engine may take 30 s, and a locked database 5 s. LETHE_WATCHDOG_SECONDS sets it.
   */
  asleepTicksMax: 60,
  /**
   * Ticks without a sign of life in which it worked or waited for the disk. Much longer, because such work
   * ends by itself, unless it is an endless loop.
   */
  silentTicksMax: 300,
  /**
   * Pauses before the restart after the first, second and later failures in a row; after the last pause it
   * gives up.
   */
  pausesMs: [1000, 2000, 5000, 15_000, 30_000],
  /** A service that ran for this long has recovered, and its next failure is the first in a row. */
  recoveredMs: 600_000,
}

/** Signals with which people and service managers end a program. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Returns the limits for a value of LETHE_WATCHDOG_SECONDS, or null where the service is not supervised. A
 * service with an invalid value is not supervised either: it ends with an error about the value.
 */
export function limitsFor(setting) {
  if (setting === undefined || setting === '') return usualLimits
  if (!/^\d{1,4}$/.test(setting)) return null
  const asleepTicksMax = Number(setting)
  return { ...usualLimits, asleepTicksMax, silentTicksMax: asleepTicksMax * 5 }
}

/**
 * Distinguishes a hanging event loop from a busy one. A main thread that sleeps without a sign of life is
 * blocked. One that uses the processor, waits for it, or waits for the disk may be busy. One that was
 * stopped, by a debugger or SIGSTOP, is not restarted.
 */
export function createWatch({ asleepTicksMax, silentTicksMax }) {
  let silentTicks = 0
  let asleepTicks = 0
  let cpuAtSign = null
  return {
    sign() {
      silentTicks = 0
      asleepTicks = 0
      cpuAtSign = null
    },
    /** One check: the main thread's state in /proc, and its processor time in hundredths of a second. */
    tick({ state, cpu }) {
      if (state === 'T' || state === 't') return null
      cpuAtSign ??= cpu
      silentTicks++
      if (state === 'S') asleepTicks++
      // A thread that polls while it waits uses a little time too: a hundredth is allowed.
      const isIdle = cpu - cpuAtSign <= asleepTicks
      if (asleepTicks >= asleepTicksMax && isIdle) return `its event loop was blocked for ${asleepTicks} s`
      if (silentTicks >= silentTicksMax) return `its event loop was busy for ${silentTicks} s`
      return null
    },
  }
}

/** Without /proc a thread counts as working: the longer limit applies. */
function readMainThread(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], cpu: Number(fields[11]) + Number(fields[12]) }
  } catch {
    return { state: 'R', cpu: 0 }
  }
}

/**
 * Runs the service until it ends for good, then calls `onEnd(code, signal)`. `start(env)` starts its process
 * with a channel for messages; `say` receives messages for people.
 */
export function supervise({ start, say, onEnd, limits = usualLimits }) {
  const restarts = { crashed: 0, hung: 0 }
  let failures = 0
  let isStopping = false
  let child = null
  let pause = null

  const end = (code, signal) => {
    for (const name of stopSignals) process.removeListener(name, stop)
    onEnd(code, signal)
  }
  const stop = (signal) => {
    isStopping = true
    if (child !== null) return child.kill(signal)
    clearTimeout(pause)
    end(0, null)
  }
  const run = () => {
    const startedMs = performance.now()
    const watch = createWatch(limits)
    let isServing = false
    let hang = null
    child = start({
      LETHE_RESTARTS_CRASHED: String(restarts.crashed),
      LETHE_RESTARTS_HUNG: String(restarts.hung),
    })
    const look = () => {
      if (!isServing || isStopping || hang !== null) return
      hang = watch.tick(readMainThread(child.pid))
      if (hang !== null) child.kill('SIGKILL')
    }
    const looking = setInterval(look, limits.tickMs)
    // A start may take any time, so the service gives its first sign of life when it listens.
    child.on('message', () => {
      isServing = true
      watch.sign()
    })
    child.once('exit', (code, signal) => {
      clearInterval(looking)
      child = null
      if (isStopping || signal === null || stopSignals.includes(signal)) return end(code, signal)
      const ranMs = performance.now() - startedMs
      failures = ranMs >= limits.recoveredMs ? 1 : failures + 1
      const cause = hang ?? `${signal} ended it`
      const pauseMs = limits.pausesMs[failures - 1]
      if (pauseMs === undefined) {
        say(
          `the service failed ${failures} times in a row (${cause}) and is not started again. The lines above have the causes; docs/runbooks.md has what to do.`,
        )
        return end(code, signal)
      }
      restarts[hang === null ? 'crashed' : 'hung']++
      say(
        `the service failed after ${Math.round(ranMs / 1000)} s: ${cause}. It starts again in ${pauseMs / 1000} s.`,
      )
      pause = setTimeout(run, pauseMs)
    })
  }
  for (const signal of stopSignals) process.on(signal, stop)
  run()
}
