// One run of a simulation: a seed determines the steps, and after every step the service is compared with the
// model. The same seed gives the same steps.

import assert from 'node:assert/strict'
import process from 'node:process'
import { after } from 'node:test'
import { sql } from 'kysely'
import type { App } from '../../server/app.ts'
import type { Control } from '../../server/control/database.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { backUp, restore } from './backups.ts'
import { chart } from './charts.ts'
import { certify, confirm, setClock } from './clocks.ts'
import { crash, finish, killedPass, pass, passWithoutFault, restart, wait } from './machine.ts'
import { ask, decide, hold, rule, verify } from './people.ts'
import { find, send } from './programs.ts'
import type { Subject } from './subject.ts'
import { type Organisation, World } from './world.ts'

/** Two organisations that share their placement, and one with its own. */
const placements = { acme: 3, globex: 3, initech: 8 } as const

const secretOf = (tenantId: string, person: string) => `${person}-of-${tenantId}`.padEnd(40, 'x')

export function newOrganisations(): Organisation[] {
  return Object.entries(placements).map(([tenantId, placement]) => ({
    place: { tenantId, placement },
    secrets: [secretOf(tenantId, 'ada'), secretOf(tenantId, 'grace')],
  }))
}

/** Error of the clock while each of the organisations is founded. */
const foundedMs = [40 * 86_400_000, -40 * 86_400_000, 0]

/**
 * Creates the organisations at the first start. Placements are assigned in order; here they are set, so that
 * two organisations share one. They are founded with a wrong clock, which is then set right; `setClock` does
 * nothing where the clock can't be set.
 */
export async function populate(
  app: App,
  control: Control,
  organisations: readonly Organisation[],
  setClock: (byMs: number) => Promise<void>,
): Promise<void> {
  for (const [i, { place, secrets }] of organisations.entries()) {
    const { tenantId, placement } = place
    await setClock(foundedMs[i] ?? 0)
    await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('simulation') }, secrets[0])
    const second = { tenantId, name: 'second owner', role: 'owner', secret: secrets[1] } as const
    await app.tenancy.createToken({ ...second, expiresAtMs: null, actor: operatorActor('simulation') })
    await sql`update organisations set placement = ${placement} where tenant_id = ${tenantId}`.execute(
      control,
    )
    await setClock(-(foundedMs[i] ?? 0))
  }
}

type Step = (world: World) => Promise<void>

/** A step takes a tenth of a second; one that takes this long is stuck. */
const stepMs = 120_000

const { LETHE_SIM_SEED: wanted = '1' } = process.env

/**
 * `LETHE_SIM_SEED` replays one run, `any` uses new seeds. Without it the seeds are the same each time, so
 * that a change is not blamed for what a new seed finds.
 */
export const firstSeed = wanted === 'any' ? Date.now() % 2 ** 31 : Number(wanted)

/**
 * For a test file: after a failed run a service may still be running, which would keep the file from ending.
 */
export function endSoonAfterAll(): void {
  after(() => setTimeout(() => process.exit(1), 30_000).unref())
}
type Weighted = readonly (readonly [weight: number, step: Step])[]

const peoplesSteps: Weighted = [
  [38, send],
  [14, ask],
  [12, decide],
  [4, verify],
  [6, hold],
  [5, find],
  [3, chart],
  [2, rule],
  [8, wait],
]

export const allSteps: Weighted = [
  ...peoplesSteps,
  [20, pass],
  [2, crash],
  [1, restart],
  [1.5, backUp],
  [0.8, restore],
  [1.5, setClock],
  [1.5, (world) => confirm(world, passWithoutFault)],
  [2, certify],
]

/** For a service in its own process: every pass ends with a kill. */
export const killingSteps: Weighted = [...peoplesSteps, [30, killedPass], [4, pass]]

function pickStep(world: World, steps: Weighted): Step {
  let left = world.random() * steps.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, step] of steps) {
    left -= weight
    if (left < 0) return step
  }
  return send
}

/** Runs until `isEnough`, then lets everything end. Fails with the seed, the step and the steps before it. */
export async function simulate(
  subject: Subject,
  seed: number,
  steps: Weighted,
  isEnough: (world: World) => boolean,
): Promise<World> {
  const world = new World(subject, newOrganisations(), seed)
  try {
    for (const { place, secrets } of world.organisations) {
      for (const secret of secrets) {
        const { body } = await subject.ask('GET', '/me', { secret })
        assert.equal(body.tenant_id, place.tenantId)
        world.names.set(secret, body.requester)
      }
    }
    while (!isEnough(world)) {
      world.counts.steps++
      // Two requests at the same millisecond have no order that a simulation could predict.
      await subject.advance(1)
      const step = pickStep(world, steps)
      await within(stepMs, async () => {
        await step(world)
        await world.check()
      })
    }
    await within(5 * stepMs, () => finish(world))
    return world
  } catch (cause) {
    const events = world.events.slice(-25).join('\n')
    const what = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`Seed ${seed}, step ${world.counts.steps}: ${what}\n${events}`, { cause })
  }
}

/** Real time, because the simulation has its own clock. */
async function within(ms: number, work: () => Promise<void>): Promise<void> {
  const done = new AbortController()
  const late = systemClock.sleep(ms, done.signal).then(() => {
    if (!done.signal.aborted) throw new Error(`The step was not done after ${ms / 1000} seconds.`)
  })
  await Promise.race([work(), late]).finally(() => done.abort())
}
