// Decides which waiting rows are in one commit, and in one insert of it. Pure.

import type { TenantPlace } from '../../telemetry/engine.ts'

interface WaitingSlice {
  readonly place: TenantPlace
  /** Size of the encoded rows. */
  readonly bytes: number
}

/**
 * A commit has no more than this, bytes of encoded rows. It limits what the engine has in memory
 * at once, and how long others wait for a commit: some four tenths of a second.
 */
export const groupBytes = 32 * 1024 * 1024

/** Bytes of encoded rows. Placements with less differ too little for a sender to notice. */
const smallBytes = 2 * 1024 * 1024
const similarTimes = 8

/**
 * Whether the waiting rows of two placements may be in one commit: a commit ends for all its placements at
 * once, so a placement with few rows would wait for one with many.
 */
export function mayShareCommit(bytes: number, otherBytes: number): boolean {
  const [less, more] = bytes < otherBytes ? [bytes, otherBytes] : [otherBytes, bytes]
  return more <= Math.max(smallBytes, less * similarTimes)
}

/**
 * From this size on the rows of a table are inserted by two inserts at once, bytes: most of an insert is
 * computed on one core, but each takes some 6 ms, however small it is. So logs and spans are divided, and the
 * tables of metrics are inserted at once.
 */
const halvedBytes = 16 * 1024 * 1024

/**
 * Returns as many slices as fit into a commit: the next one is always of the organisation that has the
 * fewest bytes in it.
 *
 * @param mostOf the most bytes of an organisation; it has at least one slice
 */
export function fairPart<Slice extends WaitingSlice>(
  slices: readonly Slice[],
  mostOf: (tenantId: string) => number,
): readonly Slice[] {
  const waiting = [...Map.groupBy(slices, ({ place }) => place.tenantId).values()].map((own) => ({
    own: own.values(),
    next: own[0],
    bytes: 0,
  }))
  for (const one of waiting) one.own.next()
  const part: Slice[] = []
  let bytes = 0
  for (;;) {
    let least: (typeof waiting)[number] | undefined
    for (const one of waiting) {
      if (one.next !== undefined && one.bytes < (least?.bytes ?? Number.POSITIVE_INFINITY)) least = one
    }
    const slice = least?.next
    if (least === undefined || slice === undefined) return part
    if (part.length > 0 && bytes + slice.bytes > groupBytes) return part
    if (least.bytes > 0 && least.bytes + slice.bytes > mostOf(slice.place.tenantId)) {
      least.next = undefined
      continue
    }
    part.push(slice)
    bytes += slice.bytes
    least.bytes += slice.bytes
    least.next = least.own.next().value
  }
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
