// The public interface of the service for one organisation; each call is an operation of the history. A
// refusal is `fail`; a call that may have had an effect without a response is `unknown`.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import type { NumberedRow, Outcome, Selected, Span } from './history.ts'
import type { NumberedRows } from './numbered-rows.ts'
import type { Recorder } from './recorder.ts'

/** Longer than a response takes on a busy machine, shorter than the longest pause. */
const patienceMs = 10_000

interface Answer {
  readonly status: number
  readonly text: string
}

export interface Organisation {
  readonly tenantId: string
  readonly secret: string
}

/** A deletion request as the harness made it; `id` is the service's. */
export interface Asked {
  readonly key: string
  readonly selected: Selected
  readonly delayMinutes: number
  id: string | null
  status: string
}

export interface Held {
  readonly key: string
  readonly selected: Selected
  id: string | null
  isActive: boolean
}

export class PublicCalls {
  readonly organisation: Organisation
  readonly #address: string
  readonly #recorder: Recorder
  readonly #rows: NumberedRows
  readonly #ids = new Map<string, string>()

  constructor(organisation: Organisation, address: string, recorder: Recorder, rows: NumberedRows) {
    this.organisation = organisation
    this.#address = address
    this.#recorder = recorder
    this.#rows = rows
  }

  get #org(): string {
    return this.organisation.tenantId
  }

  async send(signal: Signal, rows: readonly NumberedRow[], isProto: boolean): Promise<Outcome> {
    const message = this.#rows.body(signal, `service-${this.#org}`, rows)
    const body = isProto ? new Uint8Array(encodeProto(signal, message)) : JSON.stringify(message)
    const headers = { 'content-type': isProto ? 'application/x-protobuf' : 'application/json' }
    const [outcome] = await this.#recorder.run({ f: 'send', org: this.#org, signal, rows }, async () => {
      const { status, text } = await this.#call('POST', `/v1/${signal}`, { body, headers })
      // A complete success has an empty body; a partial one has the rejected rows in its body.
      const isWhole = status === 200 && (text === '' || text === '{}')
      return [isWhole ? 'ok' : status === 200 ? 'unknown' : 'fail', { note: `${status}` }]
    })
    if (outcome === 'ok') this.#recorder.count('rows acknowledged', rows.length)
    this.#recorder.count(`sends ${outcome}`)
    return outcome
  }

  /** Reads every row of a signal in a time range, page by page. */
  async read(signal: Signal, span: { readonly startS: number; readonly endS: number }): Promise<Outcome> {
    const path = { logs: 'logs', traces: 'spans', metrics: 'metrics' }[signal]
    const [outcome] = await this.#recorder.run({ f: 'read', org: this.#org, signal, span }, async () => {
      const seen: number[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const query: string = `${rangeQuery(span)}&limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
        let answer: Answer
        try {
          answer = await this.#call('GET', `/telemetry/${path}?${query}`)
        } catch (error) {
          return ['unknown', { seen, isWhole: false, note: String(error) }]
        }
        if (answer.status !== 200) return ['fail', { seen, isWhole: false, note: `${answer.status}` }]
        const page = JSON.parse(answer.text) as {
          items: Record<string, string>[]
          next_cursor: string | null
        }
        for (const item of page.items)
          seen.push(...this.#rows.numbersIn(item.body ?? item.metric ?? item.name ?? '').slice(0, 1))
        cursor = page.next_cursor
      }
      return ['ok', { seen, isWhole: true }]
    })
    this.#recorder.count(`reads ${outcome}`)
    return outcome
  }

  /** Searches for one row that should not exist. */
  async probe(
    signal: Signal,
    n: number,
    span: { readonly startS: number; readonly endS: number },
  ): Promise<void> {
    await this.#recorder.run({ f: 'probe', org: this.#org, n }, async () => {
      const name = this.#rows.text(n)
      const path = {
        logs: `/telemetry/logs?${rangeQuery(span)}&text=${name}`,
        traces: `/telemetry/traces/${this.#rows.traceId(n)}`,
        metrics: `/telemetry/series?${rangeQuery(span)}&metric_key=${name}&step_seconds=3600`,
      }[signal]
      const { status, text } = await this.#call('GET', path)
      if (status !== 200) return [status === 404 ? 'ok' : 'fail', { seen: [], note: `${status}` }]
      const isThere =
        signal === 'metrics' ? /"value":\s*[\d.-]/.test(text) : this.#rows.numbersIn(text).includes(n)
      return ['ok', { seen: isThere ? [n] : [] }]
    })
    this.#recorder.count('probes')
  }

  /** Counts what an erasure would remove, by a preview of it. */
  async count(selected: Selected): Promise<void> {
    await this.#recorder.run({ f: 'count', org: this.#org, selected }, async () => {
      const answer = await this.#call('POST', '/usage/storage/deletions/preview', {
        json: selectionBody(selected),
      })
      if (answer.status !== 200) return ['fail', { note: `${answer.status}` }]
      return ['ok', { rows: JSON.parse(answer.text).rows }]
    })
    this.#recorder.count('counts')
  }

  /** Requests an erasure; the same `asked` may be sent again and is the same request. */
  async erase(asked: Asked): Promise<Outcome> {
    const { key, selected, delayMinutes } = asked
    const [outcome] = await this.#recorder.run(
      { f: 'erase', org: this.#org, key, selected, delayMinutes },
      async () => {
        const json = {
          ...selectionBody(selected),
          confirm: this.#org,
          ...(delayMinutes > 0 && { delay_minutes: delayMinutes }),
        }
        const answer = await this.#call('POST', '/usage/storage/deletions', {
          json,
          headers: { 'idempotency-key': key },
        })
        const outcome = outcomeOf(answer)
        if (outcome !== 'ok') return [outcome, { note: noteOf(answer) }]
        const { request_id: id, status } = JSON.parse(answer.text)
        const first = this.#ids.get(id)
        // An open request has the same selection, so the service returned that one.
        if (first !== undefined && first !== key) return ['fail', { note: `the same as ${first}` }]
        this.#ids.set(id, key)
        asked.id = id
        asked.status = status
        return ['ok', { status, note: id }]
      },
    )
    this.#recorder.count(`erasures ${outcome}`)
    return outcome
  }

  async look(asked: Asked): Promise<void> {
    if (asked.id === null) return
    await this.#recorder.run({ f: 'look', org: this.#org, key: asked.key }, async () => {
      const answer = await this.#call('GET', `/usage/storage/deletions/${asked.id}`)
      if (answer.status === 404) {
        asked.status = 'unknown'
        return ['ok', { status: null }]
      }
      if (answer.status !== 200) return [outcomeOf(answer), { note: noteOf(answer) }]
      asked.status = JSON.parse(answer.text).status
      return ['ok', { status: asked.status }]
    })
  }

  async cancel(asked: Asked): Promise<void> {
    const [outcome] = await this.#recorder.run({ f: 'cancel', org: this.#org, key: asked.key }, async () => {
      const answer = await this.#call('POST', `/usage/storage/deletions/${asked.id}/cancel`)
      if (answer.status !== 200) return [outcomeOf(answer), { note: noteOf(answer) }]
      asked.status = JSON.parse(answer.text).status
      return ['ok', { status: asked.status }]
    })
    this.#recorder.count(`cancels ${outcome}`)
  }

  async retry(asked: Asked): Promise<void> {
    await this.#call('POST', `/usage/storage/deletions/${asked.id}/retry`).catch(() => null)
  }

  async verify(asked: Asked): Promise<void> {
    const [outcome] = await this.#recorder.run({ f: 'verify', org: this.#org, key: asked.key }, async () => {
      const answer = await this.#call('POST', `/usage/storage/deletions/${asked.id}/verify`)
      if (answer.status !== 200) return [outcomeOf(answer), { note: noteOf(answer) }]
      const { is_clean: isClean, remaining } = JSON.parse(answer.text)
      return ['ok', { isClean, remaining }]
    })
    this.#recorder.count(`verifies ${outcome}`)
  }

  /** The certificate as the service returned it; null where there was none. */
  async certificate(asked: Asked, backups: readonly string[]): Promise<{ text: string } | null> {
    let text: string | null = null
    const [outcome] = await this.#recorder.run(
      { f: 'certificate', org: this.#org, key: asked.key, backups },
      async () => {
        const answer = await this.#call('GET', `/usage/storage/deletions/${asked.id}/certificate?format=json`)
        if (answer.status !== 200) return [outcomeOf(answer), { note: noteOf(answer) }]
        text = answer.text
        const { certificate, jws } = JSON.parse(answer.text)
        const named = certificate.backups.map(({ backup_id }: { backup_id: string }) => backup_id)
        return ['ok', { backups: named, jti: certificate.jti, jws }]
      },
    )
    this.#recorder.count(`certificates ${outcome}`)
    return text === null ? null : { text }
  }

  async hold(held: Held): Promise<void> {
    const { key, selected } = held
    const [outcome] = await this.#recorder.run({ f: 'hold', org: this.#org, key, selected }, async () => {
      const { scope: _, ...selection } = selectionBody(selected)
      const answer = await this.#call('POST', '/usage/storage/holds', {
        json: { case_ref: key, ...selection },
      })
      if (answer.status !== 201) return [outcomeOf(answer), { note: noteOf(answer) }]
      held.id = JSON.parse(answer.text).hold_id
      held.isActive = true
      return ['ok', { note: held.id ?? '' }]
    })
    this.#recorder.count(`holds ${outcome}`)
  }

  async lookHold(held: Held): Promise<void> {
    await this.#recorder.run({ f: 'look-hold', org: this.#org, key: held.key }, async () => {
      const answer = await this.#call('GET', '/usage/storage/holds?limit=500')
      if (answer.status !== 200) return [outcomeOf(answer), { note: noteOf(answer) }]
      const { items } = JSON.parse(answer.text) as {
        items: { hold_id: string; case_ref: string; released_at: string | null }[]
      }
      const found = items.find(({ case_ref }) => case_ref === held.key)
      held.id = found?.hold_id ?? held.id
      held.isActive = found !== undefined && found.released_at === null
      return ['ok', { status: found === undefined ? null : held.isActive ? 'active' : 'released' }]
    })
  }

  async release(held: Held): Promise<void> {
    await this.#recorder.run({ f: 'release', org: this.#org, key: held.key }, async () => {
      const answer = await this.#call('POST', `/usage/storage/holds/${held.id}/release`)
      if (answer.status === 200) held.isActive = false
      return [outcomeOf(answer), { note: noteOf(answer) }]
    })
    this.#recorder.count('releases')
  }

  /** The ledger as a file; null where it could not be read completely. */
  async exportLedger(): Promise<string | null> {
    const answer = await this.#call('GET', '/ledger/export').catch(() => null)
    return answer?.status === 200 ? answer.text : null
  }

  async setRetention(days: number): Promise<void> {
    const json = { metrics_days: days, logs_days: days, traces_days: days }
    const answer = await this.#call('PUT', '/usage/storage/retention', { json })
    if (answer.status !== 200) throw new Error(`Retention returned ${noteOf(answer)}`)
  }

  async #call(
    method: string,
    path: string,
    sent: { json?: unknown; body?: string | Uint8Array; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const { json, headers } = sent
    const body = json === undefined ? sent.body : JSON.stringify(json)
    try {
      const answer = await fetch(`${this.#address}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.organisation.secret}`,
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: Buffer.from(body) }),
        signal: AbortSignal.timeout(patienceMs),
      })
      const text = await answer.text()
      this.#recorder.answered(`${method} ${path}`, answer.status, text)
      if (answer.status >= 400) await sleep(50)
      return { status: answer.status, text }
    } catch (error) {
      this.#recorder.count('no answer')
      await sleep(200)
      throw error
    }
  }
}

function outcomeOf({ status }: Answer): Outcome {
  if (status < 300) return 'ok'
  // Refusals with these statuses have no effect; any other error of the service may have one.
  return status < 500 || status === 503 || status === 507 ? 'fail' : 'unknown'
}

function noteOf({ status, text }: Answer): string {
  return `${status} ${text.slice(0, 160)}`
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}

function rangeQuery({ startS, endS }: { readonly startS: number; readonly endS: number }): string {
  return `range_start=${instant(startS)}&range_end=${instant(endS)}`
}

/** The selection of a request body; everything where there are no bounds. */
function selectionBody({ startS, endS, signals }: Selected & Span) {
  const isAll = startS === null && endS === null
  return {
    scope: isAll ? 'all' : 'range',
    ...(startS !== null && { range_start: instant(startS) }),
    ...(endS !== null && { range_end: instant(endS) }),
    ...(signals.length < 3 && { signals: [...signals] }),
  }
}
