// How an operation of the HTTP interface is declared: once, as data. The server serves the declaration,
// clients send requests by it, and the OpenAPI document is made from it, so that none of them can say
// anything else than the others.

import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { ResponseHeader } from './headers.ts'
import type { Role } from './tenancy.ts'

/** Groups of operations, in the order of the reference. */
export const tags = {
  Deletion: 'Erase your organisation’s own telemetry and watch it go.',
  Evidence: 'The ledger of deletions and the audit log, each a hash chain.',
  Detection: 'Detectors and the anomalies they find.',
  Telemetry: 'Read what is held.',
  Usage: 'What is stored, what is sent, and how much of it.',
  Ingest:
    'OTLP/HTTP and Prometheus remote write; point an OpenTelemetry SDK, a Collector or Prometheus here. OTLP/gRPC has a port of its own.',
  Organisation: 'Who you are, and access tokens.',
  Operations: 'For whoever runs the service.',
} as const
type Tag = keyof typeof tags

/** The roles that may call, or `public` where no access token is asked for. */
export type Access = readonly Role[] | 'public'

/** What an operation that is dear is limited to, per organisation. Each operation counts for itself. */
export interface Rate {
  readonly perMinute: number
  /** How many may come at once after a pause. */
  readonly burst: number
}

/** What one status of success answers. */
export interface Success<Body extends z.ZodType> {
  /** `z.undefined()` where there is no body. */
  readonly body: Body
  /** What this status means; the description of the body, or else the operation's summary, where absent. */
  readonly meaning?: string
  /** Headers beside those that every answer has. */
  readonly headers?: readonly ResponseHeader[]
  /** Media types of the body; JSON where absent. */
  readonly types?: readonly string[]
  /** What the page is, where HTML is answered to those who prefer it. */
  readonly page?: string
  readonly example?: z.output<Body>
}

/** The form in which a protocol of its own answers refusals. */
interface RefusalForm {
  readonly types: readonly string[]
  readonly body: z.ZodType
}

export interface Operation<
  Result extends z.ZodType = z.ZodType,
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Headers extends z.ZodType = z.ZodType,
> {
  /** The name in the OpenAPI document. Generated clients call it by this, so it never changes. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its parameters as `:name`. */
  readonly path: string
  readonly access: Access
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  readonly params?: Params
  /** No parameters where absent: one that is sent is refused. */
  readonly query?: Query
  /** Request headers that mean something to it. */
  readonly headers?: Headers
  readonly body?: Body
  /** Media types of the body; JSON where absent. */
  readonly bodyTypes?: readonly string[]
  readonly bodyExample?: z.input<Body>
  /** By status. */
  readonly results: Readonly<Record<number, Success<Result>>>
  /** Codes that it may answer beside those of `commonRefusals`. */
  readonly refusals?: readonly ErrorCode[]
  /** Refusals whose body says more than `detail` and `code`. */
  readonly refusalBodies?: Readonly<Partial<Record<ErrorCode, z.ZodType>>>
  /**
   * The protocol that the operation speaks, which then says what it takes and how it refuses; absent
   * where this contract does.
   */
  readonly protocol?: 'OTLP/HTTP' | 'Prometheus remote write'
  /** The form in which it answers refusals; `ErrorBody` as JSON where absent. */
  readonly refusalForm?: RefusalForm
  readonly rate?: Rate
  /**
   * Whether a token may also come as the password of Basic authentication, for senders that know no bearer.
   */
  readonly takesBasic?: boolean
  /**
   * Whether it answers also those who ask too often: a prober must not be told apart from an attacker beside
   * it.
   */
  readonly isUnmetered?: boolean
  /** Whether the OpenAPI document leaves it out: pages and files that are for nobody's program. */
  readonly isHidden?: boolean
}

/** Declares an operation. A part that is left out has no type that anything could be read as. */
export function operation<
  Result extends z.ZodType,
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Headers extends z.ZodType = z.ZodUndefined,
>(
  declared: Operation<Result, Params, Query, Body, Headers>,
): Operation<Result, Params, Query, Body, Headers> {
  return declared
}

export const jsonType = 'application/json'
/** RFC 7396. */
export const mergePatchType = 'application/merge-patch+json'

/** Media types of the body that it takes. */
export function bodyTypesOf({ bodyTypes }: Operation): readonly string[] {
  return bodyTypes ?? [jsonType]
}

/**
 * The path and query of a request, such as `/tokens/tok_1?descendants=true`. Throws where a parameter
 * of the path is not given.
 */
export function requestPath(
  { path }: Operation,
  params: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string>> = {},
): string {
  const filled = path.replace(/:([a-z_]+)/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`The path ${path} needs ${name}.`)
    return encodeURIComponent(value)
  })
  const search = new URLSearchParams(query).toString()
  return search === '' ? filled : `${filled}?${search}`
}
