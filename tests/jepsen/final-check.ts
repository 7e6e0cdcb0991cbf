// The end of a run: all faults are removed, all requests end, and every promise is checked once more, by
// every reader, by verification, in the certificates, in the files, and by the offline commands.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { signals } from '../../server/telemetry/schema/tables.ts'
import type { Client } from './clients.ts'
import type { SteppedClock } from './machine-faults.ts'
import type { Nemesis } from './nemesis.ts'
import type { Recorder } from './recorder.ts'
import { lethe } from './service-process.ts'

/** All requests have ended by then, also on a busy machine. */
const endWithinMs = 180_000

interface LastLookDeps {
  readonly nemesis: Nemesis
  readonly clients: readonly Client[]
  readonly recorder: Recorder
  readonly clock: SteppedClock
  readonly env: Readonly<Record<string, string>>
  readonly outFolder: string
}

export async function checkFinally(deps: LastLookDeps): Promise<void> {
  const { clients, clock, nemesis, recorder } = deps
  await nemesis.heal()
  recorder.note('all faults are removed; all requests must end')
  for (const client of clients) {
    await client.lookAtAll()
    for (const held of client.holds) if (held.isActive) await client.calls.release(held)
    // Half of the waiting requests are cancelled, the others become due.
    for (const [i, asked] of client.open.entries())
      if (asked.status === 'scheduled' && i % 2 === 0) await client.calls.cancel(asked)
  }
  clock.step(12 * 3600)
  // Erasing by date may wait until the operator confirms a clock that jumped.
  await lethe(deps.env, ['clock', 'confirm'])
  await awaitEnds(deps)
  recorder.note('the final check')
  const certified: string[] = []
  for (const client of clients) {
    for (const signal of signals) await client.readAll(signal)
    await client.calls.count({ startS: null, endS: null, signals: [...signals] })
    for (const asked of client.asked.filter(({ status }) => status === 'completed')) {
      await client.calls.verify(asked)
      const certificate = await client.certify(asked)
      if (certificate === null) {
        recorder.violate('no certificate', `${asked.key} is completed`)
        continue
      }
      const path = join(deps.outFolder, `${client.tenantId}-certificate.json`)
      writeFileSync(path, certificate.text)
      if (!certified.includes(path)) certified.push(path)
    }
    await client.keepLedger()
  }
  await nemesis.search()
  await checkOffline(deps, certified)
}

async function awaitEnds({ clients, nemesis, recorder }: LastLookDeps): Promise<void> {
  const untilMs = performance.now() + endWithinMs
  while (clients.some(({ open }) => open.length > 0) && performance.now() < untilMs) {
    await sleep(500)
    await nemesis.keepUp()
    for (const client of clients)
      for (const asked of client.open) {
        await client.calls.look(asked)
        if (asked.status === 'failed') await client.calls.retry(asked)
      }
  }
  for (const client of clients)
    for (const asked of client.open)
      recorder.violate('a deletion does not end', `${asked.key} (${asked.id}) is ${asked.status}`)
}

async function checkOffline(
  { clients, env, recorder }: LastLookDeps,
  certificates: readonly string[],
): Promise<void> {
  const checks: string[][] = [
    ['ledger', 'verify'],
    ['audit', 'verify'],
  ]
  for (const { exports } of clients)
    for (const path of new Set([exports[0], exports.at(-1)]))
      if (path !== undefined) checks.push(['ledger', 'verify', path, '--live'])
  for (const path of certificates) checks.push(['certificate', 'verify', path])
  for (const args of checks) {
    const { code, error, out } = await lethe(env, args)
    recorder.count('offline checks')
    if (code !== 0)
      recorder.violate(
        'a chain or certificate is not valid',
        `${args.join(' ')}: ${code} ${(out + error).slice(-500)}`,
      )
  }
}
