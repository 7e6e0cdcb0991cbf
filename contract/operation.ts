// How an operation of the HTTP interface is declared: once, as data. The server serves the declaration,
// clients build requests from it, and the OpenAPI document is made from it, so that these three cannot
// disagree.

import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { ResponseHeader } from './headers.ts'
import type { Role } from './role.ts'

/** Groups of operations, in the order of the reference. */
export const tags = {
  Deletion: 'Erase your organisation’s own telemetry and follow the erasure.',
  Evidence: 'The ledger of deletions and the audit log, each a hash chain.',
  Detection: 'Detectors and the anomalies they find.',
  Telemetry: 'Read stored telemetry.',
  Usage: 'How much is stored and sent.',
  Ingest:
    'OTLP/HTTP and Prometheus remote write; for OpenTelemetry SDKs, Collectors and Prometheus. OTLP/gRPC has its own port.',
  Organisation: 'Who you are, and access tokens.',
  Operations: 'For people who run the service.',
} as const
type Tag = keyof typeof tags

/** The roles that may call it, or `public` where no access token is required. */
export type Access = readonly Role[] | 'public'

/**
 * The rate limit of a costly operation, per organisation. Each operation is counted separately, and a part of
 * the rate stays for each branch of the organisation's tokens.
 */
export interface Rate {
  readonly perMinute: number
  /** How many requests may come at once after a pause. */
  readonly burst: number
  /** Absent: they begin when they arrive. */
  readonly pace?: OperationPace
}

/** How soon the requests of an organisation begin; beyond it they wait. */
export interface OperationPace {
  /** How many begin at once after a pause. */
  readonly atOnce: number
  readonly perSecond: number
}

/** The response with one status of success. */
export interface Success<Body extends z.ZodType> {
  /** `z.undefined()` where there is no body. */
  readonly body: Body
  /** What this status means. Where absent: the description of the body, or else the operation's summary. */
  readonly meaning?: string
  /** Headers in addition to those of every response. */
  readonly headers?: readonly ResponseHeader[]
  /** Media types of the body; JSON where absent. */
  readonly types?: readonly string[]
  /** Describes the page, where HTML is returned to clients that prefer it. */
  readonly page?: string
  readonly example?: z.output<Body>
}

/** The form of refusals of a protocol that has its own. */
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
  /** The name in the OpenAPI document. Generated clients use it, so it never changes. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path, with its parameters as `:name`. */
  readonly path: string
  readonly access: Access
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  readonly params?: Params
  /** No parameters where absent: a parameter that is sent is refused. */
  readonly query?: Query
  /** Request headers that the operation reads. */
  readonly headers?: Headers
  readonly body?: Body
  /** Media types of the body; JSON where absent. */
  readonly bodyTypes?: readonly string[]
  readonly bodyExample?: z.input<Body>
  /** Successful responses by status. */
  readonly results: Readonly<Record<number, Success<Result>>>
  /**
   * Codes that it may return in addition to those of openapi/refusals.ts, which follow from the declaration.
   */
  readonly refusals?: readonly ErrorCode[]
  /** Bodies of refusals that have more than `detail` and `code`. */
  readonly refusalBodies?: Readonly<Partial<Record<ErrorCode, z.ZodType>>>
  /**
   * The protocol that defines the bodies and the refusals of the operation; absent where this contract does.
   */
  readonly protocol?: 'OTLP/HTTP' | 'Prometheus remote write'
  /** The form of its refusals; `ErrorBody` as JSON where absent. */
  readonly refusalForm?: RefusalForm
  readonly rate?: Rate
  /** Whether a token may also be the password of Basic authentication, for senders without bearer tokens. */
  readonly takesBasic?: boolean
  /** Whether it accepts a one-time sign-in code in place of an access token. */
  readonly takesSignInCode?: boolean
  /**
   * Whether the rate limits don't apply. A probe may come from the same address as an attack and must still
   * get its response.
   */
  readonly isUnmetered?: boolean
  /** Whether the OpenAPI document leaves it out: pages and files that no client program needs. */
  readonly isHidden?: boolean
}

/** Declares an operation. A handler can read nothing from a part that is not declared. */
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

/** Returns the media types of the body that it accepts. */
export function bodyTypesOf({ bodyTypes }: Operation): readonly string[] {
  return bodyTypes ?? [jsonType]
}

/**
 * Returns the path and query of a request, such as `/tokens/tok_1?descendants=true`. Throws where a path
 * parameter is missing.
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
