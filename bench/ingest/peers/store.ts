// A store under the load of this benchmark: how it is opened on an empty folder, where its
// points go, and what is on its disk once its own work has ended. What is seen is seen from
// outside, in the same way for all.

import { setTimeout as sleep } from 'node:timers/promises'
import { bytesOf, filesUnder } from '../../deletion/files.ts'
import type { Program } from '../../peers/server.ts'
import type { Format } from './bodies.ts'
import type { Door } from './load-child.ts'
import type { Shape } from './points.ts'

export interface IngestStore extends Program {
  readonly format: Format
  /** What an acknowledged point has survived, in a few words. */
  readonly durability: string
  readonly open: (options: { readonly folder: string; readonly shape: Shape }) => Promise<OpenStore>
}

export interface OpenStore {
  readonly version: string
  readonly pid: number
  readonly dataFolder: string
  readonly door: Door
  /** How many points it has, by its own count; asked after the merge. */
  readonly countPoints: () => Promise<number>
  /** Shortest time in which its own merges, compactions or snapshots begin. */
  readonly restMs: number
  /** Merges all that can be merged; answers the bytes of the points and their index, logs left out. */
  readonly merge: () => Promise<number>
  readonly stop: () => Promise<void>
}

export function folderBytes(folder: string): number {
  return bytesOf(filesUnder(folder))
}

/**
 * Waits until the files of a folder have not changed for ten seconds, at least `restMs`
 * and at most a minute more.
 */
export async function untilQuiet(folder: string, restMs: number): Promise<void> {
  const startMs = performance.now()
  let [last, sinceMs] = ['', startMs]
  for (;;) {
    const now = filesUnder(folder)
      .map(({ identity, bytes }) => `${identity}.${bytes}`)
      .join()
    const nowMs = performance.now()
    if (now !== last) [last, sinceMs] = [now, nowMs]
    if (nowMs - startMs > restMs + 60_000) return
    if (nowMs - sinceMs > 10_000 && nowMs - startMs > restMs) return
    await sleep(500)
  }
}
