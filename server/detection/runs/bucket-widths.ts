// The width of the buckets of each detector, chosen once a day from how dense its data was on the seven days
// before. A series that began later is looked at each hour, from its beginning. So the choice depends on the
// data and the time only. Where zero is the usual value, such as for error logs, few events do not mean few
// values: the width is the narrowest.

import { nsPerMinute, nsPerMs } from '../../../contract/values/instant.ts'
import { countsSomeEvents } from '../../series/event-series.ts'
import { densestWidth } from './bucket-width.ts'
import type { CourseRun } from './course-run.ts'
import { ingestLagMs, narrowestStep, type StepMinutes, spreadOf, stepsMinutes } from './run-plan.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const days = 7
/** Series whose arrivals are counted: half of them decide. */
const groupsLooked = 20

interface ChosenWidth {
  readonly tenantId: string
  readonly version: string
  readonly chosenMs: number
  /** The day that it was chosen for, and the hour where the series began on that day. */
  readonly day: number
  readonly hour: number | null
  readonly stepMinutes: StepMinutes
}

export class BucketWidths {
  readonly #chosen = new Map<string, ChosenWidth>()

  /** How many detectors it keeps the width of. */
  get size(): number {
    return this.#chosen.size
  }

  /** The width of the buckets of a run, in minutes. */
  async widthFor(run: CourseRun): Promise<StepMinutes> {
    const narrowest = narrowestStep(run.definition.window_minutes)
    if (narrowest === stepsMinutes.at(-1) || countsSomeEvents(run.definition.metric_key)) return narrowest
    const offsetMs = spreadOf(run.definition, 24) * hourMs
    const day = Math.floor((run.nowMs - offsetMs) / dayMs)
    const hour = Math.floor(run.nowMs / hourMs)
    const before = this.#chosen.get(run.detectorId)
    const isForNow = before?.day === day && (before.hour === null || before.hour === hour)
    if (isForNow && before.version === run.version) return before.stepMinutes
    const dayStartMs = day * dayMs + offsetMs
    const ofDays = await chooseFrom(run, narrowest, dayStartMs - days * dayMs, dayStartMs)
    const chosen =
      ofDays ?? (await chooseFrom(run, narrowest, dayStartMs, run.nowMs - ingestLagMs)) ?? narrowest
    const { share, version } = run
    this.#chosen.set(run.detectorId, {
      tenantId: share.tenantId,
      ...{ version, chosenMs: run.nowMs, day },
      hour: ofDays === null ? hour : null,
      stepMinutes: chosen,
    })
    return chosen
  }

  forgetDetector(detectorId: string): void {
    this.#chosen.delete(detectorId)
  }

  /** Drops the widths of other days, which no run uses: their detectors may be deleted. */
  forgetUnused(nowMs: number): void {
    for (const [id, { chosenMs }] of this.#chosen) if (nowMs - chosenMs > dayMs) this.#chosen.delete(id)
  }

  /** Drops the widths of an organisation, because they are computed from telemetry. */
  forget(tenantId: string): void {
    for (const [id, chosen] of this.#chosen) if (chosen.tenantId === tenantId) this.#chosen.delete(id)
  }
}

/** Null where nothing arrived. */
async function chooseFrom(
  { source }: CourseRun,
  narrowest: StepMinutes,
  fromMs: number,
  untilMs: number,
): Promise<StepMinutes | null> {
  const stepNs = BigInt(narrowest) * nsPerMinute
  const aligned = (ms: number) => ((BigInt(Math.max(0, ms)) * nsPerMs) / stepNs) * stepNs
  const [startNs, endNs] = [aligned(fromMs), aligned(untilMs)]
  if (startNs >= endNs) return null
  const set = await source.read({
    ...{ startNs, endNs },
    stepMinutes: narrowest,
    maxGroups: groupsLooked,
    isBorn: true,
  })
  const arrivals = set.groups
    .filter(({ volume }) => volume.some((events) => events > 0))
    .map(({ volume }) => ({ volume, stepMinutes: narrowest }))
  if (arrivals.length === 0) return null
  const widths = stepsMinutes.filter((step) => step >= narrowest)
  return densestWidth(arrivals, widths, 1) ?? narrowest
}
