// What it costs to have a copied folder of many small files hashed and on the disk: every file synced by
// itself, and one sync of the file system for all. By turns, on the same files written anew, so that each
// begins with nothing on the disk.
//
//   node bench/storage/seal.ts [--files 4000] [--bytes 8192] [--rounds 3] [--root /tmp]

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sealFolder } from '../../server/backup/files.ts'
import { syncFileSystem } from '../../server/disk/sync-file-system.ts'
import { provenance } from './bench-store.ts'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '4000' },
    bytes: { type: 'string', default: '8192' },
    rounds: { type: 'string', default: '3' },
    root: { type: 'string', default: '/tmp' },
  },
})
/** Of one part, in a folder of its own. */
const filesOfPart = 12

const folder = mkdtempSync(join(values.root, 'lethe-seal-'))

function write(): string {
  const place = join(folder, 'copy')
  rmSync(place, { recursive: true, force: true })
  const bytes = Buffer.alloc(Number(values.bytes), 7)
  for (let at = 0; at < Number(values.files); at++) {
    const part = join(place, `part-${Math.floor(at / filesOfPart)}`)
    mkdirSync(part, { recursive: true })
    writeFileSync(join(part, `file-${at}`), bytes)
  }
  return place
}

async function measure(syncAll: (folder: string) => Promise<boolean>): Promise<number> {
  const place = write()
  const startMs = performance.now()
  await sealFolder(place, new AbortController().signal, syncAll)
  return Math.round(performance.now() - startMs)
}

const rounds = []
for (let round = 0; round < Number(values.rounds); round++) {
  const oneByOneMs = await measure(async () => false)
  const atOnceMs = await measure(syncFileSystem)
  rounds.push({ oneByOneMs, atOnceMs, ratio: Number((oneByOneMs / atOnceMs).toFixed(1)) })
}
rmSync(folder, { recursive: true })
console.log(JSON.stringify({ ...provenance(), files: Number(values.files), rounds }, null, 2))
