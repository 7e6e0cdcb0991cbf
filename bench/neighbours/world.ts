// The data folder with which each attack begins: an honest organisation and others, tokens of each role,
// histories, and detectors that are due each minute. The checkout under test makes it once; each attack gets
// a copy, so that none begins with leftovers of another.

import { cpSync, mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Role, roles } from '../../contract/role.ts'
import type { Organisation } from './attack.ts'
import {
  attackerHistory,
  type Body,
  honestHistory,
  honestHistoryMinutes,
  honestMetric,
  nowMs,
} from './rows.ts'
import { lethe, Service } from './service.ts'

export interface World {
  readonly tree: string
  /** Copied, never served itself after it is made. */
  readonly folder: string
  readonly honest: Organisation
  readonly attacker: Organisation
  /** They attack only together with the attacker. */
  readonly accomplices: readonly Organisation[]
  /** Start of the honest organisation's history. */
  readonly historyStartMs: number
}

const [honestId, attackerId] = ['honest', 'attacker']
const accompliceIds = ['accomplice-1', 'accomplice-2', 'accomplice-3']
/** A real service has others, which do nothing. */
const bystanderIds = ['bystander-1', 'bystander-2']
const honestSecret = 'bench-secret-of-the-honest-organisation-'.padEnd(48, 'x')

export async function makeWorld(tree: string, folder: string): Promise<World> {
  mkdirSync(folder, { recursive: true })
  const service = await Service.start(tree, folder, {
    LETHE_BOOTSTRAP_ORG: honestId,
    LETHE_BOOTSTRAP_TOKEN: honestSecret,
  })
  try {
    const create = (tenantId: string) =>
      lethe<{ token: string }>(tree, folder, ['org', 'create', tenantId]).token
    const join = async (tenantId: string, secret: string): Promise<Organisation> => ({
      tenantId,
      secrets: await tokensOf(service, secret),
    })
    const honest = await join(honestId, honestSecret)
    const attacker = await join(attackerId, create(attackerId))
    bystanderIds.map(create)
    const accomplices: Organisation[] = []
    for (const id of accompliceIds) accomplices.push(await join(id, create(id)))
    const untilMs = nowMs()
    await sendAll(service, honest, honestHistory(untilMs))
    for (const one of [attacker, ...accomplices]) await sendAll(service, one, attackerHistory(untilMs))
    await createDetectors(service, honest)
    const historyStartMs = untilMs - honestHistoryMinutes * 60_000
    return { tree, folder, honest, attacker, accomplices, historyStartMs }
  } finally {
    await service.stop()
  }
}

/** Starts a service on a copy of the world. */
export async function startCopy(world: World, folder: string): Promise<Service> {
  cpSync(world.folder, folder, { recursive: true })
  return Service.start(world.tree, folder)
}

async function ask<T>(service: Service, secret: string, path: string, json: object): Promise<T> {
  const answer = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path} returned ${answer.status}: ${text.slice(0, 300)}`)
  return JSON.parse(text) as T
}

async function tokensOf(service: Service, owner: string): Promise<Record<Role, string>> {
  const secrets: Partial<Record<Role, string>> = { owner }
  for (const role of roles.filter((one) => one !== 'owner')) {
    const json = { name: `bench ${role}`, role }
    secrets[role] = (await ask<{ token: string }>(service, owner, '/tokens', json)).token
  }
  return secrets as Record<Role, string>
}

async function sendAll(service: Service, to: Organisation, bodies: Iterable<Body>): Promise<void> {
  for (const body of bodies) {
    // A limit per organisation may refuse the history for a moment.
    while (!(await send(service, to, body))) await sleep(500)
  }
}

async function send(service: Service, { secrets }: Organisation, { signal, bytes }: Body): Promise<boolean> {
  const answer = await fetch(`${service.url}/v1/${signal}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secrets.ingest}`, 'content-type': 'application/x-protobuf' },
    body: new Uint8Array(bytes),
  })
  await answer.arrayBuffer()
  if (answer.ok) return true
  if (answer.status === 429 || answer.status === 503) return false
  throw new Error(`The service returned ${answer.status} for the history.`)
}

/** Detectors of a small shop, each due every minute. */
async function createDetectors(service: Service, { secrets }: Organisation): Promise<void> {
  const drafts = [
    { metric_key: honestMetric, method_key: 'robust_band', scope: { group_by: 'route' } },
    { metric_key: honestMetric, method_key: 'record_range', scope: {} },
    { metric_key: 'logs.rate', method_key: 'robust_band', scope: {} },
    { metric_key: 'spans.latency_p95', method_key: 'auto', scope: {} },
  ]
  for (const [at, draft] of drafts.entries()) {
    const json = { ...draft, name: `bench ${at}`, window_minutes: 120, schedule_minutes: 1 }
    await ask(service, secrets.member, '/anomalies/detectors', json)
  }
}
