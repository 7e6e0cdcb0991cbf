// `lethe migrate control`: moves the control plane of a stopped service to another database. The data folder
// is locked meanwhile, so that no service starts on it; a service that does waits.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readFolderSecret } from '../../app/instance.ts'
import { instanceFile } from '../../backup/manifest.ts'
import { type Config, ConfigError, readConfig } from '../../config.ts'
import {
  type ControlAddress,
  mayHaveControl,
  nameOfControl,
  openControlAt,
} from '../../control/control-address.ts'
import { folderSecretIn } from '../../control/data-folder.ts'
import type { Control } from '../../control/database.ts'
import type { ControlPlace } from '../../control/left-planes.ts'
import { migrationsIn } from '../../control/migration-history.ts'
import { instanceOf } from '../../core/process/instance.ts'
import { moveControl } from '../../move/move.ts'
import { lockFolder } from '../../telemetry/folder-lock.ts'
import { type JsonOption, print, printJson, say } from '../print.ts'

type Environment = Readonly<Record<string, string | undefined>>

interface MigrateOptions extends JsonOption {
  readonly from?: string
  readonly to: string
  readonly withBrokenChains?: boolean
}

export async function migrateControl(env: Environment, options: MigrateOptions): Promise<void> {
  const config = options.from === undefined ? readConfig(env) : configAt(env, '--from', options.from)
  const to = configAt(env, '--to', options.to).control
  const [fromName, toName] = [nameOfControl(config.control), nameOfControl(to)]
  if (fromName === toName) throw new ConfigError(`Source and target are the same database, ${toName}.`)
  if (!mayHaveControl(config.control))
    throw new ConfigError(`${fromName} does not exist; see LETHE_DATA_DIR.`)
  if (!existsSync(join(config.dataDir, instanceFile))) {
    throw new ConfigError(
      `${config.dataDir} is not the data folder of a service, which must be locked meanwhile; see LETHE_DATA_DIR.`,
    )
  }
  const lock = lockFolder(join(config.dataDir, 'telemetry'), { command: 'lethe migrate control' })
  const handles: Control[] = []
  const open = (address: ControlAddress) => {
    const control = openControlAt(address)
    handles.push(control)
    return control
  }
  try {
    const secret = readFolderSecret(config.dataDir)
    const source = { ...placeOf(config.control), control: open(config.control), reader: open(config.control) }
    await assertOfFolder(source, secret, config.dataDir)
    const { chains, entries, tables, wasComplete } = await moveControl({
      source,
      target: { ...placeOf(to), control: open(to) },
      installation: instanceOf(secret).certificateIssuer,
      withBrokenChains: options.withBrokenChains === true,
      // With --json the transcript is beside the document.
      say: options.json ? say : print,
      failpoint: async () => {},
    })
    if (options.json) {
      printJson({ from: fromName, to: toName, was_complete: wasComplete, tables, chains, entries })
    } else print(`Set LETHE_CONTROL_URL to ${toName} and start the service.`)
  } finally {
    for (const handle of handles) await handle.destroy()
    lock.close()
  }
}

function placeOf(address: ControlAddress): ControlPlace {
  const file = address.kind === 'sqlite' ? resolve(address.path) : null
  return { name: nameOfControl(address), file }
}

/** The settings with another control plane. A problem with its address names the option. */
function configAt(env: Environment, option: string, url: string): Config {
  try {
    return readConfig({ ...env, LETHE_CONTROL_URL: url })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.message.replaceAll('LETHE_CONTROL_URL', option))
  }
}

/** Otherwise a service of another data folder, which is not locked, may use the source. */
async function assertOfFolder(
  { control, name }: { readonly control: Control; readonly name: string },
  secret: string,
  dataDir: string,
): Promise<void> {
  if ((await migrationsIn(control)).length === 0) return
  const found = await folderSecretIn(control)
  if (found === undefined || found === secret) return
  throw new ConfigError(`${name} belongs to another data folder than ${dataDir}; see LETHE_DATA_DIR.`)
}
