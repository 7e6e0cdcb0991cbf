// The service, or a restore, in its own process, for tests that kill it. It prints events as lines of JSON,
// and pauses at a named failpoint until it is killed.

import { restoreBackup } from '../../server/backup/restore.ts'
import { configOf, type NewOrganisations, openService, pausingAt } from './backup-service.ts'

export interface BackupChildOptions {
  /** Settings by their environment variable. */
  readonly settings: Readonly<Record<string, string>>
  readonly organisations: NewOrganisations
  /** Failpoint at which to pause. */
  readonly standStill: string | null
  /** Restores this backup instead of serving. */
  readonly restore: { readonly backup: string; readonly isControlReplaced: boolean } | null
}

const options: BackupChildOptions = JSON.parse(process.argv[2] ?? '')
const say = (fact: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(fact)}\n`)

const failpoint = pausingAt(options.standStill, () => {
  say({ standsAt: options.standStill })
  // A pending read of standard input keeps the process alive.
  return new Promise<void>((resolve) => process.stdin.once('data', () => resolve()))
})

async function serve(): Promise<void> {
  const { start } = await openService(options.settings, options.organisations, failpoint)
  await start((address) => say({ address }))
  say({ isReady: true })
}

async function restore({ backup, isControlReplaced }: { backup: string; isControlReplaced: boolean }) {
  const restored = await restoreBackup({
    ...configOf(options.settings),
    backup,
    isControlReplaced,
    isJournalLost: false,
    failpoint,
  })
  say({ restored: restored.manifest.backup_id })
  process.exit(0)
}

await (options.restore === null ? serve() : restore(options.restore))
