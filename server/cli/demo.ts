// `lethe demo`: a fresh service in a folder of its own, two weeks of a small shop's telemetry sent over OTLP
// as any client would, the detectors run once over it, then what they found beside what happened, and a page
// of things to try while the shop lives on.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Role } from '../../contract/tenancy.ts'
import { type App, createApp } from '../app.ts'
import { ConfigError, readConfig } from '../config.ts'
import { operatorActor } from '../core/actor.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { pauseDetectors, runOverHistory } from '../demo/detectors.ts'
import { openProgressLine, renderGuide, storyOf } from '../demo/guide.ts'
import { runLive } from '../demo/live.ts'
import { loadHistory } from '../demo/load.ts'
import { openShop } from '../demo/shop.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { createLogger, stopOnSignal } from './serve.ts'

const tenantId = 'demo-shop'

/** Any seed tells a story; this one is told the same way every time. */
const seed = 7

const msPerDay = 86_400_000

/** Marks a folder as the demo's own, which it may empty at the next start. */
const marker = '.lethe-demo'

export async function demo(env: NodeJS.ProcessEnv): Promise<void> {
  const dataDir = freshFolder(resolve(env.LETHE_DATA_DIR || join('data', 'demo')))
  const config = readConfig({ LETHE_LOG_LEVEL: 'error', ...env, LETHE_DATA_DIR: dataDir })
  const logger = createLogger(config)
  const app = await createApp({ config, clock: systemClock, logger })
  const leaving = new AbortController()
  stopOnSignal(app, logger, () => leaving.abort())

  const ownerToken = newTokenSecret('owner')
  await app.createOrganisation({ tenantId, name: 'Demo shop', actor: operatorActor('demo') }, ownerToken)
  const ingestToken = await createToken(app, 'ingest')
  const endpoint = await app.start()
  const api = { endpoint, token: ownerToken }
  const nowNs = systemClock.nowNs()
  const output = {
    write: (text: string) => void process.stdout.write(text),
    isTerminal: process.stdout.isTTY === true,
  }
  let anomalies: Awaited<ReturnType<typeof runOverHistory>>
  let paused: readonly string[]
  try {
    paused = await pauseDetectors(api)
    await loadHistory({
      endpoint,
      token: ingestToken,
      seed,
      nowNs,
      clock: systemClock,
      onProgress: openProgressLine(output),
      signal: leaving.signal,
    })
    process.stdout.write('Running the detectors over it ...\n')
    anomalies = await runOverHistory(api, paused)
  } catch (error) {
    // The service is closed under whatever is under way.
    if (leaving.signal.aborted) return
    throw error
  }
  const shop = openShop({ seed, anchorNs: nowNs })
  const guide = renderGuide(
    {
      baseUrl: endpoint,
      tenantId,
      ownerToken,
      ingestToken,
      eraseBefore: weekAgo(),
      ...storyOf(shop, systemClock.nowMs(), anomalies),
      ...(paused[0] && { detectorId: paused[0] }),
    },
    { colour: output.isTerminal },
  )
  process.stdout.write(`\n${guide}\nThe shop goes on until you press Ctrl-C.\n`)
  await runLive({
    endpoint,
    token: ingestToken,
    seed,
    anchorNs: nowNs,
    clock: systemClock,
    signal: leaving.signal,
    onError: (err) => logger.warn({ err }, 'the demo could not send a slice and will repeat it'),
  })
}

/** Empties the folder only if an earlier demo made it. */
function freshFolder(path: string): string {
  if (existsSync(path) && !existsSync(join(path, marker))) {
    throw new ConfigError(
      `${path} holds something that isn't a demo; give the demo another folder with LETHE_DATA_DIR.`,
    )
  }
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true, mode: 0o700 })
  writeFileSync(join(path, marker), 'The demo empties this folder at its next start.\n')
  return path
}

async function createToken(app: App, role: Role): Promise<string> {
  const secret = newTokenSecret(role)
  await app.tenancy.createToken({
    tenantId,
    name: `demo ${role}`,
    role,
    secret,
    expiresAtMs: null,
    actor: operatorActor('demo'),
  })
  return secret
}

/** A midnight a week ago: a bound a person would choose. */
function weekAgo(): string {
  const nowMs = systemClock.nowMs()
  return instantText(nowMs - 7 * msPerDay - (nowMs % msPerDay))
}
