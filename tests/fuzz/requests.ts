// Requests made from the OpenAPI document: most are valid and name existing resources, some are broken in one
// place, some are not requests of the API at all. The sender has any role, or none.

import { gzipSync } from 'node:zlib'
import { type Role, roles } from '../../contract/role.ts'
import { sampleExport } from '../scenario/telemetry.ts'
import type { Chance } from './chance.ts'
import type { Known } from './known.ts'
import type { Document, Operation, Parameter } from './operations.ts'
import { Values } from './values.ts'

/** The sender: a role of the organisation, nobody, or an unknown secret. */
export type Sender = Role | 'nobody' | 'stranger'

export interface Request {
  /** Null where the request belongs to no operation of the document. */
  readonly operation: Operation | null
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  readonly sender: Sender
}

const signalOf = /^\/v1\/(metrics|logs|traces)$/

export class Requests {
  readonly #operations: readonly Operation[]
  readonly #withParameters: readonly Operation[]
  readonly #tenantId: string
  readonly #chance: Chance
  readonly #known: Known
  readonly #values: Values

  constructor(
    document: Document,
    operations: readonly Operation[],
    tenantId: string,
    chance: Chance,
    known: Known,
  ) {
    this.#operations = operations
    this.#withParameters = operations.filter(({ path }) => path.includes('{'))
    this.#tenantId = tenantId
    this.#chance = chance
    this.#known = known
    this.#values = new Values(document, chance, (name) => this.#hint(name))
  }

  next(): Request {
    const chance = this.#chance
    const operation = chance.pick(this.#operations)
    const sender = chance.is(0.06)
      ? chance.pick(['nobody', 'stranger'] as const)
      : chance.is(0.6)
        ? 'owner'
        : chance.pick(roles)
    if (chance.is(0.04)) return this.#misdirected(sender)
    const path = this.#pathOf(operation)
    const headers = this.#headersOf(operation)
    const content = this.#bodyOf(operation)
    return {
      operation,
      sender,
      method: operation.method,
      path,
      headers: { ...headers, ...content.headers },
      body: content.body,
    }
  }

  /** An address that does not exist, or one with a method that it does not support. */
  #misdirected(sender: Sender): Request {
    const chance = this.#chance
    const path = chance.pick([
      () => `/${encodeURIComponent(wellFormed(this.#values.text(40)))}`,
      () => `${chance.pick(this.#operations).path}/${'x'.repeat(chance.pick([1, 300, 6000]))}`,
      () => chance.pick(this.#withParameters).path.replace(/\{\w+\}/g, '%00'),
      () => '/docs/../healthz',
      () => `/${'a/'.repeat(chance.integer(1, 500))}`,
    ])()
    const method = chance.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'])
    return { operation: null, method, path, headers: {}, body: null, sender }
  }

  #pathOf({ parameters, path }: Operation): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const known = this.#chance.is(0.85) ? this.#known.pick(name) : undefined
      const text = wellFormed(known ?? (this.#values.text(30) || 'x'))
      // A client removes a segment of one or two dots before it sends the path, encoded or not.
      return /^\.{1,2}$/.test(text) ? 'x' : encodeURIComponent(text)
    })
    const query = new URLSearchParams()
    for (const parameter of parameters) {
      if (parameter.in === 'query')
        for (const value of this.#valuesOf(parameter)) query.append(parameter.name, value)
    }
    if (this.#chance.is(0.03)) query.append(this.#values.text(20), this.#values.text(20))
    return query.size === 0 ? filled : `${filled}?${query}`
  }

  #valuesOf({ name, required, schema }: Parameter): string[] {
    const chance = this.#chance
    // Old names of fields are accepted, but not together with the current ones.
    if (!required && !chance.is(name.startsWith('range') ? 0.5 : 0.25)) return []
    const value = this.#values.valid(schema, name)
    const sent = chance.is(0.08) ? this.#values.broken(value) : value
    return (Array.isArray(sent) ? sent.slice(0, 100) : [sent]).map((one) =>
      wellFormed(typeof one === 'object' ? JSON.stringify(one) : String(one)).slice(0, 3000),
    )
  }

  #headersOf({ parameters }: Operation): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const { in: place, name, schema } of parameters) {
      if (place !== 'header' || !this.#chance.is(0.5)) continue
      const value = String(this.#values.valid(schema, name)).replace(/[^\x21-\x7e]/g, '')
      if (value !== '') headers[name] = value
    }
    if (this.#chance.is(0.02)) headers['accept-encoding'] = this.#chance.pick(['gzip', 'br', '*;q=0', 'x'])
    return headers
  }

  #bodyOf({ bodies, path }: Operation): Pick<Request, 'headers' | 'body'> {
    const chance = this.#chance
    if (bodies.size === 0) {
      const isSent = chance.is(0.03)
      return {
        headers: isSent ? { 'content-type': 'application/json' } : {},
        body: isSent ? utf8('{}') : null,
      }
    }
    const [type, schema] = chance.pick([...bodies])
    if (!type.includes('json')) return { headers: { 'content-type': type }, body: this.#bytes() }
    const [, signal] = signalOf.exec(path) ?? []
    const value = signal === undefined ? this.#values.valid(schema) : this.#exportOf(signal)
    const sent = chance.is(0.3) ? this.#values.broken(value) : value
    const text = JSON.stringify(sent) ?? ''
    if (chance.is(0.94)) return { headers: { 'content-type': type }, body: utf8(text) }
    return chance.pick<() => Pick<Request, 'headers' | 'body'>>([
      () => ({
        headers: { 'content-type': type },
        body: utf8(text.slice(0, chance.integer(0, text.length))),
      }),
      () => ({ headers: { 'content-type': type }, body: utf8(`${text.slice(0, -1)},"confirm":"twice"}`) }),
      () => ({ headers: { 'content-type': 'text/plain' }, body: utf8(text) }),
      () => ({ headers: {}, body: utf8(text) }),
      () => ({ headers: { 'content-type': type, 'content-encoding': 'gzip' }, body: gzipSync(text) }),
      () => ({ headers: { 'content-type': type, 'content-encoding': 'br' }, body: utf8(text) }),
      () => ({
        headers: { 'content-type': `${type}; charset=latin1` },
        body: Uint8Array.of(0x22, 0xff, 0x22),
      }),
      () => ({ headers: { 'content-type': type }, body: utf8('['.repeat(chance.pick([65, 5000, 60_000]))) }),
      () => ({ headers: { 'content-type': type }, body: utf8(`"${'x'.repeat(70_000)}"`) }),
    ])()
  }

  #exportOf(signal: string): object {
    const nowNs = BigInt(Date.now()) * 1_000_000n
    const times = Array.from(
      { length: this.#chance.integer(1, 4) },
      (_, i) => nowNs - BigInt(i) * 60_000_000_000n,
    )
    return sampleExport(signal === 'metrics' || signal === 'logs' ? signal : 'traces', times)
  }

  #bytes(): Uint8Array {
    const chance = this.#chance
    return Uint8Array.from({ length: chance.pick([0, 1, 20, 300]) }, () => chance.integer(0, 255))
  }

  #hint(name: string): unknown {
    const chance = this.#chance
    if (name === 'confirm' || name === 'tenant_id') return this.#tenantId
    // A mute must say explicitly that it is for all detectors, or without an end.
    if (name === 'all_detectors' || name === 'open_ended') return true
    if (name === 'cursor' || name.endsWith('_id')) return this.#known.pick(name)
    if (name === 'if-match') return this.#known.pick('etag')
    if (name === 'metric_key' || name === 'metric')
      return this.#known.pick('metric_key') ?? chance.pick(['spans.rate', 'logs.rate', 'queue.length'])
    if (name === 'attribute') return chance.pick(['service.name=shop', 'a=b', 'http.route=/r'])
    if (name === 'group_by') return chance.pick(['service', 'host.name', 'a.b.c'])
    if (/^(?:range_start|range_end|start|end|from|until|review_at)$/.test(name)) return this.#instant()
    return undefined
  }

  #instant(): string {
    const chance = this.#chance
    if (chance.is(0.3)) return chance.pick(['-1h', 'now', '-15m', '-2d'])
    return new Date(Date.now() - chance.integer(-48, 24 * 60) * 3_600_000).toISOString()
  }
}

function utf8(text: string): Uint8Array {
  return Buffer.from(text)
}

/** Without halves of surrogate pairs, which a URL cannot contain. */
function wellFormed(text: string): string {
  return text.toWellFormed()
}
