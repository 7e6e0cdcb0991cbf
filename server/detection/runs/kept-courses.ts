// The courses that a thread keeps, by name of their series, within a limit of bytes. Where all together are
// too large, the organisation that has the most loses some, so one with many detectors never takes the
// memory from the others. No course of a run in progress is dropped: its run would fail.

import { stateBytes } from '../methods/copy-state.ts'
import type { SeriesCourse } from './series-course.ts'

interface Kept {
  readonly tenantId: string
  /** Of the detector. */
  readonly course: string
  readonly series: SeriesCourse
  bytes: number
  tasks: number
  /** Number of the last task, of all courses. */
  lastTask: number
  /** Whether its run has not reported yet. */
  isInRun: boolean
}

/** Some hundreds of series of minutes with the methods that keep most, such as `seasonal_band`. */
const usualBytesMax = 384 * 1024 * 1024
/** A series counts as unused if the others were used this many times since, on average. */
const longUnused = 4
/** Sizes grow slowly, so they are measured at the end of the first run and then once in this many tasks. */
const measuredEvery = 64

export class KeptCourses {
  private readonly bytesMax: number
  /** The one that was used longest ago is the first. */
  private readonly kept = new Map<string, Kept>()
  private readonly bytesOf = new Map<string, number>()
  private bytes = 0
  private tasks = 0

  constructor(bytesMax = usualBytesMax) {
    this.bytesMax = bytesMax
  }

  get size(): number {
    return this.kept.size
  }

  find(key: string): SeriesCourse | null {
    return this.kept.get(key)?.series ?? null
  }

  /** Keeps a new course in place of the one before. */
  begin(key: string, { course, series, tenantId }: Pick<Kept, 'course' | 'series' | 'tenantId'>): void {
    this.drop(key)
    this.kept.set(key, { tenantId, course, series, bytes: 0, tasks: 0, lastTask: 0, isInRun: true })
  }

  /** Counts a task of a course; `isLast`: its run has reported, so that courses may be dropped. */
  used(key: string, isLast: boolean): void {
    const kept = this.kept.get(key)
    if (kept === undefined) return
    kept.lastTask = ++this.tasks
    this.kept.delete(key)
    this.kept.set(key, kept)
    const isFirstRun = kept.bytes === 0
    kept.isInRun = !isLast
    kept.tasks++
    if (!isLast || !(isFirstRun || kept.tasks >= measuredEvery)) return
    kept.tasks = 0
    this.add(kept, stateBytes(kept.series) - kept.bytes)
    this.makeRoom(key, kept.tenantId)
  }

  drop(key: string): void {
    const kept = this.kept.get(key)
    if (kept === undefined) return
    this.kept.delete(key)
    this.add(kept, -kept.bytes)
  }

  /** Drops everything of an organisation. */
  dropOf(tenantId: string): void {
    for (const [key, kept] of this.kept) if (kept.tenantId === tenantId) this.drop(key)
  }

  /** Drops the series of one detector. */
  dropCourse(course: string): void {
    for (const [key, kept] of this.kept) if (kept.course === course) this.drop(key)
  }

  /**
   * Drops what was unused for long, then courses of the organisation that has the most. Where that is the one
   * that uses this course, drops this one: its detectors take turns, so dropping those that wait for theirs
   * would drop all.
   */
  private makeRoom(key: string, tenantId: string): void {
    while (this.bytes > this.bytesMax) {
      const dropped = this.longUnused() ?? this.firstOfLargest(tenantId) ?? key
      this.drop(dropped)
      if (dropped === key) return
    }
  }

  private longUnused(): string | null {
    const [oldest] = this.kept
    if (oldest === undefined) return null
    return this.tasks - oldest[1].lastTask > longUnused * this.kept.size ? oldest[0] : null
  }

  /**
   * The course of the organisation that has the most, unless it is this one, that was used longest ago and is
   * in no run.
   */
  private firstOfLargest(tenantId: string): string | null {
    let largest = tenantId
    let most = this.bytesOf.get(tenantId) ?? 0
    for (const [each, bytes] of this.bytesOf) if (bytes > most) [largest, most] = [each, bytes]
    if (largest === tenantId) return null
    for (const [key, kept] of this.kept) {
      if (kept.tenantId === largest && !kept.isInRun && kept.bytes > 0) return key
    }
    return null
  }

  private add(kept: Kept, bytes: number): void {
    kept.bytes += bytes
    this.bytes += bytes
    const all = (this.bytesOf.get(kept.tenantId) ?? 0) + bytes
    if (all > 0) this.bytesOf.set(kept.tenantId, all)
    else this.bytesOf.delete(kept.tenantId)
  }
}
