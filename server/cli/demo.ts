// `lethe demo`: starts a fresh service in its own folder, sends two weeks of telemetry of a small shop over
// OTLP, runs the detectors once, prints what they found beside what happened, and then commands to try while
// live traffic continues.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Role } from '../../contract/role.ts'
import { type App, createApp } from '../app.ts'
import { ConfigError, readConfig } from '../config.ts'
import { operatorActor } from '../core/actor.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { pauseDetectors, runOverHistory } from '../demo/detectors.ts'
import { incidentFacts, openProgressLine, renderGuide } from '../demo/guide.ts'
import { runLive } from '../demo/live.ts'
import { loadHistory } from '../demo/load.ts'
import { openShop } from '../demo/shop.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { openInBrowser, signInLink } from './console-link.ts'
import { createLogger, prepareConsole, stopOnSignal } from './serve.ts'

const tenantId = 'demo-shop'

/** Any seed works; a fixed one gives the same incidents at each start. */
const seed = 7

const msPerDay = 86_400_000

/** Marks a folder that the demo created and may empty at the next start. */
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
  const preparing = prepareConsole(app, logger)
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
    // The service is being closed while work is in progress.
    if (leaving.signal.aborted) return
    throw error
  }
  const shop = openShop({ seed, anchorNs: nowNs })
  await preparing
  const consoleLink = await signInLink(app, endpoint, ownerToken, operatorActor('demo'))
  const guide = renderGuide(
    {
      baseUrl: endpoint,
      tenantId,
      consoleLink,
      ownerToken,
      ingestToken,
      eraseBefore: weekAgo(),
      ...incidentFacts(shop, systemClock.nowMs(), anomalies),
      ...(paused[0] && { detectorId: paused[0] }),
    },
    { colour: output.isTerminal },
  )
  process.stdout.write(`\n${guide}\nThe shop runs until you press Ctrl-C.\n`)
  void openInBrowser(consoleLink, env)
  await runLive({
    endpoint,
    token: ingestToken,
    seed,
    anchorNs: nowNs,
    clock: systemClock,
    signal: leaving.signal,
    onError: (err) => logger.warn({ err }, 'the demo could not send a slice and will retry'),
  })
}

/** Empties the folder only if an earlier demo created it. */
function freshFolder(path: string): string {
  if (existsSync(path) && !existsSync(join(path, marker))) {
    throw new ConfigError(
      `${path} contains data that is not from a demo; choose another folder with LETHE_DATA_DIR.`,
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

/** Midnight a week ago: a bound that a person might choose. */
function weekAgo(): string {
  const nowMs = systemClock.nowMs()
  return instantText(nowMs - 7 * msPerDay - (nowMs % msPerDay))
}
