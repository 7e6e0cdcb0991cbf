// Loaded into the service and its commands before anything else: wall time has an offset in seconds from the
// machine's, which is read from a file every 200 ms. Monotonic time, timers and the engine keep the real
// time. Plain JavaScript without imports of ours, because it is loaded before the program.

import { readFileSync } from 'node:fs'

const path = process.env.LETHE_JEPSEN_CLOCK ?? ''
const MachineDate = Date
const rereadMs = 200
let offsetMs = 0
let readAtMs = Number.NEGATIVE_INFINITY

function now() {
  const at = performance.now()
  if (at - readAtMs > rereadMs) {
    readAtMs = at
    try {
      offsetMs = Number(readFileSync(path, 'utf8')) * 1000
    } catch {
      // The file is being replaced; the last value stays.
    }
  }
  return MachineDate.now() + offsetMs
}

globalThis.Date = new Proxy(MachineDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(
      target,
      given.length === 0 ? [now()] : given,
      newTarget === SteppedDate ? target : newTarget,
    ),
  apply: () => new MachineDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})
const SteppedDate = globalThis.Date
