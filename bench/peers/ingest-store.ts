// A store under the load of bench/ingest/peers.ts: how it is opened on an empty folder, where its points are
// sent, and the size of its files after its own work has ended. All is measured from outside, in the same way
// for all stores.

import { setTimeout as sleep } from 'node:timers/promises'
import { bytesOf, filesUnder } from '../deletion/files.ts'
import type { Format } from '../ingest/peers/bodies.ts'
import type { Shape } from '../ingest/peers/points.ts'
import type { Program } from './server.ts'

/** A command whose standard input is statements. */
export type PsqlCommand = readonly [string, ...string[]]

/** Where bodies are sent: posted to an address, or copied into the table of points. */
export type Target =
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly psql: PsqlCommand; readonly folder: string }

export interface IngestStore extends Program {
  readonly format: Format
  /** What an acknowledged point survives, in a few words. */
  readonly durability: string
  readonly open: (options: { readonly folder: string; readonly shape: Shape }) => Promise<OpenStore>
}

export interface OpenStore {
  readonly version: string
  readonly pid: number
  readonly dataFolder: string
  readonly target: Target
  /** Number of points by the store's own count, after the merge. */
  readonly countPoints: () => Promise<number>
  /** Shortest time in which its own merges, compactions or snapshots begin. */
  readonly restMs: number
  /** Merges everything that can be merged; returns the bytes of the points and their index, without logs. */
  readonly merge: () => Promise<number>
  readonly stop: () => Promise<void>
}

export function folderBytes(folder: string): number {
  return bytesOf(filesUnder(folder))
}

/**
 * Waits until the files of a folder have not changed for ten seconds, at least `restMs` and at most a minute
 * more.
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
