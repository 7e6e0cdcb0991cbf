// A store from which bench/deletion/erase.ts erases an organisation: the same points as the product's gauges
// and counters, written as text by our engine and loaded by the store's own means, and the clients that
// measure the effect on neighbours.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Session } from 'chdb'
import type { Erasure } from '../deletion/erasure.ts'
import type { Clients } from '../deletion/load.ts'
import {
  dayStart,
  type History,
  historyDays,
  organisationCount,
  pointSelect,
  type Slice,
} from '../deletion/rows.ts'
import type { Program } from './server.ts'

interface FillOptions {
  /** Empty; all data of the store is below it. */
  readonly folder: string
  readonly history: History
}

export interface OpenErasingStore {
  readonly version: string
  readonly dataFolder: string
  readonly clients: Clients
  /** Ways of erasing an organisation, in the order of the run. */
  readonly ways: readonly {
    readonly name: string
    readonly erase: (organisation: number, limitMs: number) => Promise<Erasure>
  }[]
  readonly stop: () => Promise<void>
}

export interface ErasingStore extends Program {
  /** Starts it and loads every point of the history. */
  readonly open: (options: FillOptions) => Promise<OpenErasingStore>
}

/**
 * Writes the points as text, one file after the other, each with an organisation's whole history or, where
 * `by` says so, a day of all, and passes each on while the next is written. `line` is an expression over the
 * columns of `pointSelect`. A file is removed after it was loaded.
 */
export async function feed(
  { folder, history }: Pick<FillOptions, 'folder' | 'history'>,
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

let sent = 0

/** 500 points of a neighbour, a second later than the last ones and after the history. */
export function freshLines(line: (i: number, ms: number) => string): string {
  const ms = dayStart(historyDays + 7).getTime() + 1000 * sent++
  return Array.from({ length: 500 }, (_, i) => line(i, ms)).join('\n')
}

/** Labels as Prometheus and similar stores write them. */
export const labelledMetric = `concat(replaceAll(metric, '.', '_'), '{tenant="', tenant, '",service="', service,
  '",host="', host, '",route="', route, '"}')`
