// Attacks through detectors: their computations are the most expensive effect of one small request.

import type { Attack, Attacker } from '../attack.ts'
import { attackerMetric, gaugeBody, instant, nowMs, protobuf } from '../rows.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

/** A draft of a detector with many series and a method that compares shapes. */
function draft(name: string, method: string) {
  return {
    name,
    metric_key: attackerMetric,
    method_key: method,
    params: {},
    scope: { group_by: 'route' },
    window_minutes: 1440,
    schedule_minutes: 15,
  }
}

const dearMethods = ['shape_discord', 'rcf', 'sub_pca', 'spectral_residual', 'auto']

/** A preview of the same over the last two weeks. */
export function previewOf(method: string) {
  const { name: _, ...body } = draft('', method)
  const range = { range_start: instant(nowMs() - 14 * dayMs), range_end: instant(nowMs() - 1000) }
  return { ...body, ...range }
}

async function createDetectors(attacker: Attacker, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const json = { ...draft(`run-${at}`, dearMethods[at % dearMethods.length] ?? 'rcf') }
    await attacker.call('POST', '/anomalies/detectors', { role: 'member', json })
  }
}

async function detectorIds(attacker: Attacker): Promise<string[]> {
  const { text } = await attacker.call('GET', '/anomalies/detectors?limit=40', { role: 'member' })
  const { items = [] }: { items?: { id: string }[] } = text.startsWith('{') ? JSON.parse(text) : {}
  return items.map(({ id }) => id)
}

/** Runs the detectors on so many connections, each again when it has ended. */
async function runInTurn(attacker: Attacker, connections: number): Promise<void> {
  const ids = await detectorIds(attacker)
  await attacker.loops(connections, (loop) =>
    attacker.call('POST', `/anomalies/detectors/${ids[loop % ids.length]}/run`, { role: 'member' }),
  )
}

/** Of a detector that alarms for each value above 500, and no longer. */
export const alarmingAbove500 = { upper: 500, violate_n: 1, window_m: 1, clear_n: 1, cooldown_minutes: 0 }

/** Creates detectors that alarm for each bucket above 500, and are due each minute. */
async function createAlarming(
  attacker: Attacker,
  count: number,
  of: { readonly metric_key: string; readonly window_minutes: number },
): Promise<void> {
  for (let at = 0; at < count; at++) {
    const json = {
      ...draft(`alarming-${at}`, 'threshold'),
      ...of,
      params: alarmingAbove500,
      schedule_minutes: 1,
    }
    await attacker.call('POST', '/anomalies/detectors', { role: 'member', json })
  }
}

/** A gauge that is above an edge every other minute, on as many series as a detector evaluates. */
const flappingMetric = 'attacker.flapping'
const flappingSeries = 50
const flappingMinutes = 2160

async function sendFlapping(attacker: Attacker): Promise<void> {
  const perBody = 180
  const untilMs = nowMs()
  for (let minute = flappingMinutes; minute > 0; minute -= perBody) {
    const points = Array.from({ length: perBody * flappingSeries }, (_, at) => {
      const ago = minute - Math.floor(at / flappingSeries)
      const attributes = { route: `/r/${at % flappingSeries}` }
      return { atMs: untilMs - ago * minuteMs, value: ago % 2 === 0 ? 1000 : 0, attributes }
    })
    const { bytes } = gaugeBody('load', flappingMetric, points)
    await attacker.call('POST', '/v1/metrics', { role: 'ingest', body: bytes, headers: protobuf })
  }
}

/** Creates detectors that alarm for each such minute, and as many mutes as are allowed, of other hours. */
async function watchFlapping(attacker: Attacker): Promise<void> {
  await createAlarming(attacker, 24, { metric_key: flappingMetric, window_minutes: flappingMinutes })
  for (const time_zone of Intl.supportedValuesOf('timeZone').slice(0, 200)) {
    const weekly = { days: ['mon'], from: '03:00', until: '03:01', time_zone }
    const json = { all_detectors: true, open_ended: true, range_start: instant(0), weekly }
    await attacker.call('POST', '/anomalies/mutes', { role: 'member', json })
  }
}

/** A flapping gauge with the longest texts that are accepted: its unit, and labels of half its series. */
const longMetric = 'attacker.long'
const longMinutes = 60
const longUnit = '{'.repeat(32_768)
const longLabel = 'l'.repeat(30_000)

async function sendLongTexts(attacker: Attacker): Promise<void> {
  const untilMs = nowMs()
  for (let ago = longMinutes; ago > 0; ago--) {
    const points = Array.from({ length: 20 }, (_, at) => ({
      atMs: untilMs - ago * minuteMs,
      value: ago % 2 === 0 ? 1000 : 0,
      attributes: { route: at < 10 ? `/r/${at}` : `${longLabel}${at}` },
    }))
    const { bytes } = gaugeBody('load', longMetric, points, longUnit)
    await attacker.call('POST', '/v1/metrics', { role: 'ingest', body: bytes, headers: protobuf })
  }
}

export const attacksByDetection: readonly Attack[] = [
  {
    name: 'previews',
    does: 'Sixteen connections preview detectors of 50 series over the last weeks.',
    run: (attacker) =>
      attacker.loops(16, (loop) => {
        const json = previewOf(dearMethods[loop % dearMethods.length] ?? 'rcf')
        return attacker.call('POST', '/anomalies/detectors/preview', { role: 'member', json })
      }),
  },
  {
    name: 'suggestions',
    does: 'Sixteen connections request suggestions for a detector.',
    run: (attacker) =>
      attacker.loops(16, () =>
        attacker.call('GET', `/anomalies/suggest?metric_key=${attackerMetric}&group_by=route`, {
          role: 'member',
        }),
      ),
  },
  {
    name: 'runs-now',
    does: 'Thirty-two connections run twenty-four expensive detectors, each again when it has ended.',
    prepare: (attacker) => createDetectors(attacker, 24),
    run: (attacker) => runInTurn(attacker, 32),
  },
  {
    name: 'many-findings',
    does: 'Eight connections run detectors that find 54,000 anomalies each, under mutes of 200 time zones.',
    prepare: async (attacker) => {
      await sendFlapping(attacker)
      await watchFlapping(attacker)
    },
    run: (attacker) => runInTurn(attacker, 8),
  },
  {
    name: 'long-texts',
    does: 'Eight connections run detectors of a gauge whose unit and labels have 30,000 characters.',
    prepare: async (attacker) => {
      await sendLongTexts(attacker)
      await createAlarming(attacker, 8, { metric_key: longMetric, window_minutes: longMinutes })
    },
    run: (attacker) => runInTurn(attacker, 8),
  },
  {
    name: 'many-detectors',
    does: 'Eight connections create detectors that are due each minute up to the limit, and delete them.',
    run: (attacker) => {
      let next = 0
      return attacker.loops(8, async () => {
        const json = { ...draft(`many-${next++}`, 'shape_discord'), schedule_minutes: 1 }
        const { status } = await attacker.call('POST', '/anomalies/detectors', { role: 'member', json })
        if (status !== 422) return
        for (const id of await detectorIds(attacker))
          await attacker.call('DELETE', `/anomalies/detectors/${id}`, { role: 'member' })
      })
    },
  },
]
