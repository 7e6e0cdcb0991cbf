// The service, or a restore, in its own process, for tests that kill it or inspect it before it is ready. It
// prints events as lines of JSON, and pauses at a named failpoint until it is continued or killed.

import { createApp } from '../../server/app.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { silent } from '../fixtures.ts'

export interface BackupChildOptions {
  /** Settings by their environment variable. */
  readonly settings: Readonly<Record<string, string>>
  /** Organisations to create, each with an owner token of this secret. */
  readonly organisations: readonly { readonly tenantId: string; readonly secret: string }[]
  /** Failpoint at which to pause, once, until standard input has a line. */
  readonly standStill: string | null
  /** Restores this backup instead of serving. */
  readonly restore: { readonly backup: string; readonly isControlReplaced: boolean } | null
}

const options: BackupChildOptions = JSON.parse(process.argv[2] ?? '')
const config = readConfig({
  LETHE_PORT: '0',
  LETHE_RESERVE_MB: '1',
  LETHE_COMMIT_DELAY_MS: '20',
  ...options.settings,
})
const say = (fact: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(fact)}\n`)

let hasStood = false
async function failpoint(point: string): Promise<void> {
  if (point !== options.standStill || hasStood) return
  hasStood = true
  say({ standsAt: point })
  await new Promise<void>((resolve) => process.stdin.once('data', () => resolve()))
  process.stdin.pause()
}

async function serve(): Promise<void> {
  const app = await createApp({ config, clock: systemClock, logger: silent, failpoint })
  for (const { tenantId, secret } of options.organisations) {
    await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('test') }, secret)
  }
  process.on('SIGTERM', () => void app.close().then(() => process.exit(0)))
  await app.start(async () => {
    const address = app.http.server.address()
    if (address === null || typeof address === 'string') throw new Error('The service has no port.')
    say({ address: `http://127.0.0.1:${address.port}` })
  })
  say({ isReady: true })
}

async function restore({ backup, isControlReplaced }: { backup: string; isControlReplaced: boolean }) {
  const restored = await restoreBackup({
    ...config,
    backup,
    isControlReplaced,
    isJournalLost: false,
    failpoint,
  })
  say({ restored: restored.manifest.backup_id })
  process.exit(0)
}

await (options.restore === null ? serve() : restore(options.restore))
