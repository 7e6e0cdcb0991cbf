// How far the local time of a zone is ahead of UTC. Asking the time zone database costs some microseconds an
// instant, and a formatter of a zone a hundred more and 30 kB, so what it said is remembered: the offsets of
// a zone in four weeks at a time, which are one or two. Their number is bounded, and those that were used
// longest ago are forgotten first: an organisation may name any number of zones, one after the other.

const dayMs = 86_400_000
const blockMs = 28 * dayMs

/**
 * Blocks of four weeks that are remembered, some 200 bytes each. Two hundred mutes (feedback-store.ts), each
 * with a zone of its own, need 1,400 for half a year.
 */
const blocksMax = 4096

/** Instants with the same offset, milliseconds since 1970; the end is exclusive. */
interface OffsetStretch {
  readonly startMs: number
  readonly endMs: number
  /** Positive where local time is ahead of UTC. */
  readonly offsetMs: number
}

type ReadOffset = (ms: number) => number

/** In order of use. */
const blocks = new Map<string, readonly OffsetStretch[]>()

/** Stretches in order of time that together cover the range; neighbours may have the same offset. */
export function offsetStretches(timeZone: string, fromMs: number, untilMs: number): OffsetStretch[] {
  const read = lazyReader(timeZone)
  const found: OffsetStretch[] = []
  for (let block = Math.floor(fromMs / blockMs); block * blockMs < untilMs; block++) {
    found.push(...stretchesOf(timeZone, block, read))
  }
  return found
}

/** Milliseconds by which the local time of a zone is ahead of UTC. Throws RangeError for an unknown zone. */
export function zoneOffsetMs(timeZone: string, ms: number): number {
  const stretches = stretchesOf(timeZone, Math.floor(ms / blockMs), lazyReader(timeZone))
  const stretch = stretches.find(({ endMs }) => ms < endMs) ?? stretches.at(-1)
  return stretch?.offsetMs ?? 0
}

function stretchesOf(timeZone: string, block: number, read: ReadOffset): readonly OffsetStretch[] {
  const key = `${block} ${timeZone}`
  const stretches = blocks.get(key) ?? readBlock(block * blockMs, read)
  blocks.delete(key)
  blocks.set(key, stretches)
  const [oldest] = blocks.size > blocksMax ? blocks.keys() : []
  if (oldest !== undefined) blocks.delete(oldest)
  return stretches
}

/** A day with the same offset at both ends is not searched: no zone leaves an offset for less than a day. */
function readBlock(startMs: number, read: ReadOffset): OffsetStretch[] {
  const stretches: OffsetStretch[] = []
  let fromMs = startMs
  let offsetMs = read(startMs)
  for (let nextMs = startMs + dayMs; nextMs <= startMs + blockMs; nextMs += dayMs) {
    const next = read(nextMs)
    for (let knownMs = nextMs - dayMs; offsetMs !== next; ) {
      let changedMs = nextMs
      while (changedMs - knownMs > 1) {
        const middleMs = Math.floor((knownMs + changedMs) / 2)
        if (read(middleMs) === offsetMs) knownMs = middleMs
        else changedMs = middleMs
      }
      stretches.push({ startMs: fromMs, endMs: changedMs, offsetMs })
      fromMs = changedMs
      knownMs = changedMs
      offsetMs = read(changedMs)
    }
  }
  if (fromMs < startMs + blockMs) stretches.push({ startMs: fromMs, endMs: startMs + blockMs, offsetMs })
  return stretches
}

function lazyReader(timeZone: string): ReadOffset {
  let read: ReadOffset | undefined
  return (ms) => {
    read ??= offsetReader(timeZone)
    return read(ms)
  }
}

/**
 * Returns a function that asks the time zone database, for a caller that does not need what is remembered.
 */
export function offsetReader(timeZone: string): ReadOffset {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
  return (ms) => {
    const parts = format.formatToParts(ms)
    const part = (type: string) => Number(parts.find((each) => each.type === type)?.value)
    const local = Date.UTC(
      part('year'),
      part('month') - 1,
      part('day'),
      part('hour'),
      part('minute'),
      part('second'),
    )
    return local - Math.floor(ms / 1000) * 1000
  }
}
