// What the stores that others run have in common here: the same points as the product's gauges and
// counters, as text that our engine writes, and the clients that measure what neighbours feel. Their
// servers are those of bench/peers.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Session } from 'chdb'
import type { Program } from '../../peers/server.ts'
import type { Erasure } from '../erasure.ts'
import type { Clients } from '../load.ts'
import { type History, historyDays, organisationCount, pointSelect, type Slice } from '../rows.ts'

interface PeerOptions {
  /** Empty; everything the store keeps goes below it. */
  readonly folder: string
  readonly history: History
}

export interface OpenPeer {
  readonly version: string
  readonly dataFolder: string
  readonly clients: Clients
  /** Ways of erasing an organisation, in the order in which they are tried. */
  readonly ways: readonly {
    readonly name: string
    readonly erase: (organisation: number, limitMs: number) => Promise<Erasure>
  }[]
  readonly stop: () => Promise<void>
}

export interface Peer extends Program {
  /** Starts it and loads every point of the history. */
  readonly open: (options: PeerOptions) => Promise<OpenPeer>
}

/**
 * Writes the points as text, one file after the other, each an organisation's whole history or, where `by`
 * says so, everybody's day, and hands each over while the next is written. `line` is an expression over the
 * columns of `pointSelect`. A file is removed when it was taken.
 */
export async function feed(
  { folder, history }: Pick<PeerOptions, 'folder' | 'history'>,
  line: string,
  by: 'organisation' | 'day',
  take: (file: string) => Promise<void>,
): Promise<void> {
  const session = new Session()
  let taken: Promise<void> = Promise.resolve()
  try {
    for (const [i, slices] of portions(by).entries()) {
      const file = join(folder, `points-${i % 2}-${i}.txt`)
      const points = slices.map((slice) => pointSelect(history, slice)).join(' UNION ALL ')
      await session.queryAsync(
        `INSERT INTO FUNCTION file('${file}', 'LineAsString', 'line String') SELECT ${line} FROM (${points})
          SETTINGS max_threads = 1`,
      )
      await taken
      taken = take(file).finally(() => rmSync(file, { force: true }))
      taken.catch(() => {})
    }
    await taken
  } finally {
    session.close()
  }
}

function portions(by: 'organisation' | 'day'): Slice[][] {
  const organisations = Array.from({ length: organisationCount }, (_, organisation) => organisation)
  if (by === 'organisation')
    return organisations.map((organisation) => [{ organisation, fromDay: 0, toDay: historyDays }])
  return Array.from({ length: historyDays }, (_, day) =>
    organisations.map((organisation) => ({ organisation, fromDay: day, toDay: day + 1 })),
  )
}

/** Labels as Prometheus and its kin write them. */
export const labelledMetric = `concat(replaceAll(metric, '.', '_'), '{tenant="', tenant, '",service="', service,
  '",host="', host, '",route="', route, '"}')`
