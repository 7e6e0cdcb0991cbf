// The engine over the rows of lifelike-rows.ts. A named folder is kept and used again by the next bench that
// names it, so that a change can be compared on the same rows; other folders are removed at the end.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { TelemetryEngine } from '../../server/telemetry/engine.ts'
import { say } from '../report.ts'
import { timed } from '../samples.ts'
import { fill } from './lifelike-rows.ts'

interface FilledStore {
  readonly engine: TelemetryEngine
  readonly folder: string
  readonly close: () => Promise<void>
}

export async function openFilled(rows: number, named: string | undefined): Promise<FilledStore> {
  const folder = named ?? mkdtempSync(join(tmpdir(), 'lethe-rows-'))
  const isFilled = existsSync(join(folder, 'filled'))
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
  const close = async () => {
    await engine.close()
    if (named === undefined) rmSync(folder, { recursive: true, force: true })
  }
  if (isFilled) return { engine, folder, close }
  try {
    const { ms, cpuS } = await timed(() => fill(engine, rows))
    writeFileSync(join(folder, 'filled'), String(rows))
    say(`filled in ${Math.round(ms / 1000)} s, ${Math.round(cpuS)} s of CPU`)
    return { engine, folder, close }
  } catch (error) {
    await close()
    throw error
  }
}
