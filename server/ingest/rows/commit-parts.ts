// Decides which waiting rows are in one commit, and in one insert of it. Pure.

import type { TenantPlace } from '../../telemetry/engine.ts'
import { CommitCost, type CostedRows, costOfRows } from './commit-cost.ts'

interface WaitingSlice extends CostedRows {
  readonly place: TenantPlace
}

/** The waiting rows of a placement. */
interface WaitingPlacement {
  readonly cost: Pick<CommitCost, 'partitions' | 'value'>
}

/**
 * A commit costs no more than this, bytes of encoded rows (commit-cost.ts). It limits what the engine has in
 * memory at once, and how long others wait for a commit: some four tenths of a second.
 */
export const groupBytes = 32 * 1024 * 1024

/**
 * A commit that has so many partitions gets no further rows, because others wait for it: it takes almost a
 * second. So it has fewer than twice as many, since one request has no more.
 */
const groupPartitions = 128

/**
 * Rows of a placement in more partitions take a third of a second. They are in one of the commits that run at
 * once, so that the other one is for those who have few.
 */
const manyPartitions = 48

/**
 * Placements in one commit. An insert costs as much as several partitions before it writes the first, so with
 * few placements each row costs more; with many the first one written waits for the last
 * (docs/decisions/0022).
 */
const placementsMax = 8

/** Placements that cost less differ too little for a sender to notice. */
const smallBytes = 2 * 1024 * 1024
const similarTimes = 8

/**
 * Whether the waiting rows of two placements may be in one commit, by what they cost: a commit ends for all
 * its placements at once, so a placement with few rows would wait for one with many.
 */
function mayShareCommit(cost: number, otherCost: number): boolean {
  const [less, more] = cost < otherCost ? [cost, otherCost] : [otherCost, cost]
  return more <= Math.max(smallBytes, less * similarTimes)
}

/**
 * Returns the placements of the next commit: the first one that is due, and others that cost about as much.
 */
export function placementsOfCommit<Placement extends WaitingPlacement>(
  due: readonly Placement[],
): readonly Placement[] {
  const firstCost = due[0]?.cost.value ?? 0
  const similar = due.filter(({ cost }) => mayShareCommit(firstCost, cost.value))
  let [sum, partitions] = [0, 0]
  return similar.slice(0, placementsMax).filter(({ cost }, at) => {
    sum += cost.value
    partitions += cost.partitions
    return at === 0 || (sum <= groupBytes && partitions <= groupPartitions)
  })
}

/** Whether rows that wait for a placement have so many partitions that no other such commit may run. */
export function hasManyPartitions({ cost }: WaitingPlacement): boolean {
  return cost.partitions > manyPartitions
}

/**
 * From this size on the rows of a table are inserted by two inserts at once, bytes: most of an insert is
 * computed on one core, but each takes some 6 ms, however small it is. So logs and spans are divided, and the
 * tables of metrics are inserted at once.
 */
const halvedBytes = 16 * 1024 * 1024

/**
 * Returns as many slices as fit into a commit: the next one is always of the organisation that costs least in
 * it, and of several of these the smallest one.
 *
 * @param slices of one placement
 * @param mostOf the highest cost of an organisation; it has at least one slice
 */
export function fairPart<Slice extends WaitingSlice>(
  slices: readonly Slice[],
  mostOf: (tenantId: string) => number,
): readonly Slice[] {
  const waiting = [...Map.groupBy(slices, ({ place }) => place.tenantId)].map(([tenantId, own]) => ({
    tenantId,
    rest: own.slice(1).values(),
    next: own[0],
    cost: new CommitCost(),
  }))
  const part: Slice[] = []
  const all = new CommitCost()
  for (;;) {
    const least = leastOf(waiting)
    const slice = least?.next
    if (least === undefined || slice === undefined) return part
    if (part.length > 0 && (all.partitions >= groupPartitions || all.valueWith(slice) > groupBytes)) {
      return part
    }
    const isTooMuch =
      least.cost.valueWith(slice) > mostOf(least.tenantId) || all.partitionsWith(slice) > groupPartitions
    if (least.cost.bytes > 0 && isTooMuch) {
      least.next = undefined
      continue
    }
    part.push(slice)
    all.add(slice)
    least.cost.add(slice)
    least.next = least.rest.next().value
  }
}

interface Waiting {
  readonly cost: CommitCost
  readonly next: CostedRows | undefined
}

function leastOf<One extends Waiting>(waiting: readonly One[]): One | undefined {
  let [least, leastCost, leastNext]: [One | undefined, number, number] = [undefined, 0, 0]
  for (const one of waiting) {
    if (one.next === undefined) continue
    const [cost, next] = [one.cost.value, costOfRows(one.next)]
    if (least !== undefined && (cost > leastCost || (cost === leastCost && next >= leastNext))) continue
    ;[least, leastCost, leastNext] = [one, cost, next]
  }
  return least
}

/**
 * Returns the rows in the groups of single inserts: none, all at once, or many in two parts of about the same
 * size. Beside another commit they are not divided, because the second insert would take its core.
 */
export function insertsOf(rows: readonly Buffer[], isAlone: boolean): readonly (readonly Buffer[])[] {
  const bytes = rows.reduce((sum, { length }) => sum + length, 0)
  if (bytes < halvedBytes || rows.length < 2 || !isAlone) return rows.length === 0 ? [] : [rows]
  let [first, cut] = [0, 0]
  while (cut < rows.length - 1 && (cut === 0 || first < bytes / 2)) first += rows[cut++]?.length ?? 0
  return [rows.slice(0, cut), rows.slice(cut)]
}
