// All SQL of feedback and mutes, together with `verdicts.ts` and `mute-rows.ts`. A verdict is stored in
// columns of its anomaly, so removing or hiding the anomaly does the same to the verdict. A verdict or a mute
// makes the detectors that it concerns due at once, and a run that read the state before it is not recorded.

import type { Selectable } from 'kysely'
import type { CreateMute, GiveFeedback, Mute } from '../../../contract/detection/feedback.ts'
import { administrators } from '../../../contract/role.ts'
import { formatInstant, type Ns } from '../../../contract/values/instant.ts'
import { appendAudit } from '../../audit/log.ts'
import { lockForAct } from '../../control/acting.ts'
import { actorTextIn, actorValues } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction, DetectorMutesTable } from '../../control/database.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError, InvalidInput, problem } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import { pageBytes } from '../../core/input/cursor.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { RaisingDetector } from './anomaly-rows.ts'
import { confirmedOf, type Tuning, wideningsOf } from './feedback.ts'
import { keepVersion, type ReadHolds, versionsMaxOf } from './held-anomalies.ts'
import { idsMax } from './id-list.ts'
import { endsTooEarly, type MuteRule, muteAt } from './mute.ts'
import { everyMute, muteRows, ruleOf } from './mute-rows.ts'
import { verdictsOf } from './verdicts.ts'

/** Each mute is compared with each series of each run. */
const mutesMax = 200
/**
 * A mute that has ended is kept as long as a detector's longest window, because it still says what was
 * muted there. After that it is forgotten: it is not listed and has no effect, and its row is deleted at
 * the next change of the mutes.
 */
const keptNs = 90n * 86_400_000_000_000n

interface MutePage {
  readonly limit: number
  readonly beforeId: string | null
  readonly detectorId: string | undefined
  readonly withExpired: boolean
}

export class FeedbackStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #gate: TelemetryGate
  readonly #readHolds: ReadHolds

  constructor(control: Control, clock: Clock, gate: TelemetryGate, readHolds: ReadHolds) {
    this.#control = control
    this.#clock = clock
    this.#gate = gate
    this.#readHolds = readHolds
  }

  /**
   * The feedback and mutes that runs of these detectors of one organisation use, in the order of the
   * detectors; any number of them. The mutes are read once for all.
   */
  async tuningsOf(detectors: readonly RaisingDetector[], pace = new Pace()): Promise<Tuning[]> {
    const [first] = detectors
    if (first === undefined) return []
    const mutes = await this.#rulesOf(first.tenantId, new Set(detectors.map(({ id }) => id)), pace)
    const tunings: Tuning[] = []
    for (let i = 0; i < detectors.length; i += idsMax) {
      const some = detectors.slice(i, i + idsMax)
      for await (const { isOutdated, verdicts } of verdictsOf(this.#control, this.#gate, some)) {
        const id = detectors[tunings.length]?.id
        tunings.push({
          widenings: wideningsOf(verdicts),
          confirmed: confirmedOf(verdicts),
          mutes: mutes.flatMap(({ detectorId, rule }) => ((detectorId ?? id) === id ? [rule] : [])),
          isOutdated,
        })
      }
    }
    return tunings
  }

  /** The mutes of all detectors of the organisation and of these ones, oldest first. */
  async #rulesOf(
    tenantId: string,
    detectorIds: ReadonlySet<string>,
    pace: Pace,
  ): Promise<{ detectorId: string | null; rule: MuteRule }[]> {
    const rules: { detectorId: string | null; rule: MuteRule }[] = []
    const search = { ...everyMute, endsAfterNs: this.#clock.nowNs() - keptNs - 1n }
    for await (const row of muteRows(this.#control, tenantId, search, pace)) {
      const { detector_id: detectorId } = row
      if (detectorId === null || detectorIds.has(detectorId)) rules.push({ detectorId, rule: ruleOf(row) })
    }
    return rules.reverse()
  }

  /**
   * The caller has checked that the anomaly is visible. Throws `not_found` where it has been removed since,
   * and `held` where a legal hold keeps it and it has as many versions as the role may cause.
   */
  async giveFeedback(
    tenantId: string,
    anomalyId: string,
    given: GiveFeedback,
    { requester: actor, role }: Pick<Caller, 'requester' | 'role'>,
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const isAdministrator = administrators.some((one) => one === role)
      const versionsMax = versionsMaxOf[isAdministrator ? 'administrator' : 'member']
      await this.#keepVerdict(trx, { tenantId, id: anomalyId, by: actor, versionsMax })
      const anomaly = await trx
        .updateTable('anomalies')
        .set({
          verdict: given.verdict,
          verdict_note: given.note ?? null,
          ...actorValues('verdict_by', actor),
          verdict_at_ms: nowMs,
        })
        .where('tenant_id', '=', tenantId)
        .where('id', '=', anomalyId)
        .returning('detector_id')
        .executeTakeFirst()
      if (anomaly === undefined) throw new AppError('not_found')
      await makeDue(trx, tenantId, anomaly.detector_id, nowMs)
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'anomaly.judged',
        target: anomalyId,
        outcome: 'accepted',
        facts: { verdict: given.verdict },
      })
    })
  }

  /**
   * A verdict on an anomaly under a hold is evidence as well: a version of the anomaly is kept before the
   * verdict is replaced.
   */
  async #keepVerdict(
    trx: ControlTransaction,
    { by, id, tenantId, versionsMax }: { tenantId: string; id: string; by: Actor; versionsMax: number },
  ): Promise<void> {
    const holds = await this.#readHolds(trx, tenantId)
    if (holds.length === 0) return
    const row = await trx
      .selectFrom('anomalies')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('id', '=', id)
      .executeTakeFirst()
    if (row === undefined) return
    const change = { holds, nowMs: this.#clock.nowMs(), by, versionsMax, isActOfPerson: row.verdict !== null }
    if (await keepVersion(trx, row, change)) return
    throw new AppError('held', {
      sentence:
        versionsMax === versionsMaxOf.member
          ? `A legal hold keeps every version of this anomaly, and it has ${versionsMax} or more, the most that verdicts of members may cause. An owner or admin can still judge it; members can once the hold is released.`
          : `A legal hold keeps every version of this anomaly, and it has ${versionsMax}, the most allowed. It accepts another verdict once the hold is released.`,
    })
  }

  /** Throws InvalidInput for an unknown detector, and where there are too many mutes. */
  async createMute(tenantId: string, asked: CreateMute, actor: Actor): Promise<Mute> {
    const nowMs = this.#clock.nowMs()
    const fromNs = asked.range_start ?? this.#clock.nowNs()
    const untilNs = asked.range_end ?? null
    if (untilNs !== null && untilNs <= fromNs) throw new InvalidInput([endsTooEarly(null)])
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      await forgetOld(trx, tenantId, this.#clock.nowNs())
      await refuseTooMany(trx, tenantId)
      if (asked.detector_id !== undefined) await assertDetector(trx, tenantId, asked.detector_id)
      const row: Selectable<DetectorMutesTable> = {
        id: newId('mut', nowMs),
        tenant_id: tenantId,
        detector_id: asked.detector_id ?? null,
        group_key: asked.group === undefined ? null : JSON.stringify(asked.group),
        from_ns: fromNs.toString(),
        until_ns: untilNs?.toString() ?? null,
        weekly: asked.weekly === undefined ? null : JSON.stringify(asked.weekly),
        note: asked.note ?? null,
        ...actorValues('created_by', actor),
        created_at_ms: nowMs,
      }
      await trx.insertInto('detector_mutes').values(row).execute()
      await this.#changed(trx, row, 'mute.created', actor)
      return this.#onWire(row)
    })
  }

  /** Throws `not_found`. */
  async deleteMute(tenantId: string, id: string, actor: Actor): Promise<void> {
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, this.#clock.nowMs())
      await forgetOld(trx, tenantId, this.#clock.nowNs())
      const row = await trx
        .deleteFrom('detector_mutes')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()
      if (row === undefined) throw new AppError('not_found')
      await this.#changed(trx, row, 'mute.deleted', actor)
    })
  }

  /**
   * Newest first: fewer than `limit` where those have more bytes than a response may, but always one more
   * than the response has room for.
   */
  async listMutes(tenantId: string, page: MutePage, pace = new Pace()): Promise<Mute[]> {
    const nowNs = this.#clock.nowNs()
    const search = { ...page, endsAfterNs: page.withExpired ? nowNs - keptNs - 1n : nowNs }
    const mutes: Mute[] = []
    let bytes = 0
    for await (const row of muteRows(this.#control, tenantId, search, pace)) {
      mutes.push(this.#onWire(row))
      bytes += Buffer.byteLength(row.group_key ?? '')
      if (bytes > pageBytes && mutes.length > 1) break
    }
    return mutes
  }

  async #changed(
    trx: ControlTransaction,
    { detector_id, id, tenant_id }: Selectable<DetectorMutesTable>,
    action: string,
    actor: Actor,
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    await makeDue(trx, tenant_id, detector_id, nowMs)
    await appendAudit(trx, tenant_id, nowMs, {
      actor,
      action,
      target: id,
      outcome: 'accepted',
      facts: { detector_id },
    })
  }

  #onWire(row: Selectable<DetectorMutesTable>): Mute {
    const rule = ruleOf(row)
    const start = formatInstant(rule.fromNs)
    const end = rule.untilNs === null ? null : formatInstant(rule.untilNs)
    return {
      id: row.id,
      detector_id: row.detector_id,
      group: row.group_key === null ? null : JSON.parse(row.group_key),
      range_start: start,
      range_end: end,
      weekly: rule.weekly,
      note: row.note,
      is_active: muteAt([rule], this.#clock.nowNs()) !== null,
      created_by: actorTextIn('created_by', row),
      created_at: instantText(row.created_at_ms),
      from: start,
      until: end,
    }
  }
}

function isForgotten({ until_ns }: Pick<Selectable<DetectorMutesTable>, 'until_ns'>, nowNs: Ns): boolean {
  return until_ns !== null && BigInt(until_ns) + keptNs < nowNs
}

/** A null id stands for every detector of the organisation. */
async function makeDue(
  trx: ControlTransaction,
  tenantId: string,
  detectorId: string | null,
  nowMs: number,
): Promise<void> {
  let query = trx
    .updateTable('detectors')
    .set((columns) => ({ next_run_at_ms: nowMs, tuning_revision: columns('tuning_revision', '+', 1) }))
    .where('tenant_id', '=', tenantId)
  if (detectorId !== null) query = query.where('id', '=', detectorId)
  await query.execute()
}

async function assertDetector(trx: ControlTransaction, tenantId: string, id: string): Promise<void> {
  const row = await trx
    .selectFrom('detectors')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (row !== undefined) return
  throw new InvalidInput([
    problem(['body', 'detector_id'], 'value_error', 'Your organisation has no detector with this id', id),
  ])
}

async function refuseTooMany(trx: ControlTransaction, tenantId: string): Promise<void> {
  const { count } = await trx
    .selectFrom('detector_mutes')
    .select((select) => select.fn.countAll<number | string>().as('count'))
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  if (Number(count) < mutesMax) return
  throw new InvalidInput([
    problem(
      ['body'],
      'value_error',
      `Your organisation has ${mutesMax} mutes, including those that ended in the last 90 days. Delete one first`,
      null,
      { limit: mutesMax },
    ),
  ])
}

async function forgetOld(trx: ControlTransaction, tenantId: string, nowNs: Ns): Promise<void> {
  const rows = await trx
    .selectFrom('detector_mutes')
    .select(['id', 'until_ns'])
    .where('tenant_id', '=', tenantId)
    .where('until_ns', 'is not', null)
    .execute()
  const old = rows.filter((row) => isForgotten(row, nowNs))
  if (old.length === 0) return
  await trx
    .deleteFrom('detector_mutes')
    .where('tenant_id', '=', tenantId)
    .where(
      'id',
      'in',
      old.map(({ id }) => id),
    )
    .execute()
}
