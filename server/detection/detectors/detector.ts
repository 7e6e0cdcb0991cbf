// The rules of a detector, without I/O: which definitions are valid, the result of a partial update,
// what is fixed in a system detector, and how a client proves which version it read. Every path that
// makes a definition (create, patch, load) uses `readDraft`, so a detector with parameters that its
// method refuses cannot exist.

import { isDeepStrictEqual } from 'node:util'
import {
  CreateDetector,
  type Detector,
  type DetectorScope,
  type DetectorStatus,
  DraftWithStoredScope,
  type PatchDetector,
} from '../../../contract/detection/detectors.ts'
import { comparesPeers, MethodKey, methodParams } from '../../../contract/detection/methods.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { problem, problemsMax } from '../../core/app-error.ts'
import { instantText } from '../../core/clock.ts'
import { isRecord } from '../../core/input/is-record.ts'
import { type Parsed, readPart, type SentBody } from '../../core/input/parsed.ts'
import { problemsOf } from '../../core/input/schema-problems.ts'
import type { MethodChoice } from '../methods/catalogue.ts'

/** What a client decides about a detector. `params` is complete, with the defaults of the method. */
export interface DetectorDefinition {
  readonly name: string
  readonly metric_key: string
  readonly method_key: MethodKey
  readonly params: Readonly<Record<string, unknown>>
  readonly scope: DetectorScope
  readonly window_minutes: number
  readonly schedule_minutes: number
  readonly enabled: boolean
}

/** A detector as it is stored. */
export interface StoredDetector {
  readonly id: string
  readonly tenantId: string
  readonly definition: DetectorDefinition
  readonly isSystem: boolean
  readonly revision: number
  /** Incremented by each verdict and mute that concerns the detector. */
  readonly tuningRevision: number
  readonly lastRunAtMs: number | null
  readonly lastStatus: DetectorStatus | null
  readonly lastNote: string | null
  /** 0 where an erasure asks for a run at once. */
  readonly nextRunAtMs: number
  readonly createdAtMs: number
}

/** A definition before validation: any JSON. */
export type Draft = Readonly<Record<string, unknown>>

type DefinitionField = keyof DetectorDefinition

const fields = Object.keys(CreateDetector.shape) as DefinitionField[]

/** The identity of a system detector, which users and dashboards rely on. */
const fixedOnSystem: readonly DefinitionField[] = ['name', 'metric_key', 'method_key']

/** The sent body of a detector. */
export type SentDefinition<Body> = Pick<SentBody<Body>, 'body' | 'raw'>

/**
 * The whole definition with defaults filled in, or every problem of it, located in the body.
 *
 * @param isOldScope whether the scope is stored already: it may be longer than one that is set
 */
export function readDraft(draft: Draft, isOldScope = false): Parsed<DetectorDefinition> {
  const { value: body, problems } = readPart(
    'body',
    isOldScope ? DraftWithStoredScope : CreateDetector,
    draft,
  )
  const read = readCreation({ body, raw: draft })
  return 'value' in read ? read : { problems: [...problems, ...read.problems] }
}

/**
 * The definition that the body of a creation means, or what its schema can't see: problems inside `params`,
 * whose schema is the method's, and a group that the method needs.
 */
export function readCreation({ body, raw }: SentDefinition<CreateDetector>): Parsed<DetectorDefinition> {
  if (!isRecord(raw) || !isRecord(raw.params ?? {})) return { problems: [] }
  const params = readParams({ ...raw, params: raw.params ?? {} })
  const problems = [...params.problems, ...groupMissing(raw)]
  if (body === undefined || params.value === undefined || problems.length > 0) return { problems }
  const { enabled, method_key, metric_key, name, schedule_minutes, scope, window_minutes } = body
  return {
    value: {
      name,
      metric_key,
      method_key,
      params: params.value,
      scope,
      window_minutes,
      schedule_minutes,
      enabled,
    },
  }
}

/**
 * The parameters by the schema of the method, with their defaults. Returns no problem of them where the
 * method is unknown.
 */
function readParams(draft: Draft): {
  readonly value: DetectorDefinition['params'] | undefined
  readonly problems: readonly ValidationProblem[]
} {
  const key = MethodKey.safeParse(draft.method_key)
  if (!key.success) return { value: undefined, problems: [] }
  const result = methodParams[key.data].safeParse(draft.params)
  if (result.success) return { value: result.data, problems: [] }
  const issues = result.error.issues.map((issue) => ({ ...issue, path: ['params', ...issue.path] }))
  return { value: undefined, problems: problemsOf('body', issues, draft) }
}

/** A method that compares the series of a group needs `group_by`. */
function groupMissing({ method_key, scope = {} }: Draft): ValidationProblem[] {
  const key = MethodKey.safeParse(method_key)
  if (!key.success || !comparesPeers(key.data) || !isRecord(scope) || scope.group_by !== undefined) return []
  const message = `${key.data} compares the series of a group with each other; set scope.group_by, such as "host.name"`
  return [problem(['body', 'scope', 'group_by'], 'missing', message, scope)]
}

/** Converts a detector to the wire form. */
export function toDetector(stored: StoredDetector): Detector {
  const { params, scope, ...rest } = stored.definition
  return {
    id: stored.id,
    ...rest,
    params: { ...params },
    scope,
    is_system: stored.isSystem,
    last_run_at: stored.lastRunAtMs === null ? null : instantText(stored.lastRunAtMs),
    last_status: stored.lastStatus,
    created_at: instantText(stored.createdAtMs),
    last_note: stored.lastNote,
    next_run_at: nextRunAt(stored),
  }
}

function nextRunAt({ createdAtMs, definition, lastRunAtMs, nextRunAtMs }: StoredDetector): string | null {
  return definition.enabled ? instantText(Math.max(nextRunAtMs, lastRunAtMs ?? createdAtMs)) : null
}

/**
 * The method with its parameters for an evaluation; null where the method no longer accepts the parameters.
 */
export function methodChoiceOf(definition: DetectorDefinition): MethodChoice | null {
  const result = methodParams[definition.method_key].safeParse(definition.params)
  // The schema of this key produced the parameters, which the type of a lookup by key cannot express.
  return result.success ? ({ method_key: definition.method_key, params: result.data } as MethodChoice) : null
}

/** A patch, read against the detector that it is for. */
export interface DetectorChange {
  readonly before: StoredDetector
  readonly after: DetectorDefinition
  /**
   * Fields that the patch would change although they are fixed in a system detector; `after` is then the
   * definition as it was.
   */
  readonly refused: readonly DefinitionField[]
}

/**
 * The definition after a patch, or every problem of it that the schema of the body can't see. Without
 * `isMerge`, `params` and `scope` replace the old object whole; with it they merge (RFC 7396). Where the
 * schema refuses the body, only problems inside these two are returned, because the schema reports the
 * others.
 */
export function readPatch(
  before: StoredDetector,
  { body, raw }: SentDefinition<PatchDetector>,
  isMerge: boolean,
): Parsed<DetectorChange> {
  if (!isRecord(raw)) return { problems: [] }
  const { definition, isSystem } = before
  const refused = isSystem ? refusedOnSystem(definition, raw) : []
  if (refused.length > 0) return { value: { before, after: definition, refused } }
  if (changesMethodAlone(definition, raw)) return { problems: [paramsMissing(raw)] }
  const draft = draftOfPatch(definition, body ?? raw, isMerge)
  const read = readDraft(draft, isDeepStrictEqual(draft.scope, definition.scope))
  if ('value' in read) return { value: { before, after: read.value, refused } }
  if (body !== undefined) return read
  const parts = ['params', 'scope'].filter((part) => raw[part] === undefined || isRecord(raw[part]))
  return { problems: insideParts(read.problems, parts) }
}

/** Names of the fields that differ, in the order of the contract. */
export function changedFields(before: DetectorDefinition, after: DetectorDefinition): DefinitionField[] {
  return fields.filter((field) => !isDeepStrictEqual(before[field], after[field]))
}

/**
 * Fields that a patch would change although they are fixed in a system detector. A field with its
 * present value changes nothing.
 */
export function refusedOnSystem(before: DetectorDefinition, patch: Draft): DefinitionField[] {
  return fixedOnSystem.filter((field) => patch[field] !== undefined && patch[field] !== before[field])
}

/** RFC 7396: objects are merged member by member, null removes a member, and everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const merged = new Map(Object.entries(isRecord(target) ? target : {}))
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}

/** The entity tag of a revision. It changes with the definition, not with runs. */
export function etagOf(revision: number): string {
  return `"${revision}"`
}

/**
 * Whether `If-Match` (RFC 9110 section 13.1.1) allows a change of this revision. Without the header
 * every change is allowed.
 */
export function ifMatchAllows(ifMatch: string | undefined, revision: number): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true
  return ifMatch.split(',').some((tag) => tag.trim() === etagOf(revision))
}

function draftOfPatch(before: DetectorDefinition, body: Draft, isMerge: boolean): Draft {
  if (!isMerge) return { ...before, ...body }
  // The parameters of another method are no base for a merge.
  const isOtherMethod = body.method_key !== undefined && body.method_key !== before.method_key
  const bases = { params: isOtherMethod ? {} : before.params, scope: before.scope }
  const merged = (['params', 'scope'] as const).flatMap((part) =>
    isRecord(body[part]) ? [[part, mergePatch(bases[part], body[part])]] : [],
  )
  return { ...before, ...body, ...Object.fromEntries(merged) }
}

/**
 * Whether a patch changes the method without new params. Parameters of one method mean nothing to another,
 * and the defaults must not be chosen without the client asking for them.
 */
function changesMethodAlone(before: DetectorDefinition, body: Draft): boolean {
  const key = MethodKey.safeParse(body.method_key)
  return key.success && key.data !== before.method_key && body.params === undefined
}

function paramsMissing(body: unknown): ValidationProblem {
  return problem(
    ['body', 'params'],
    'missing',
    'A new method_key needs the params of that method; send {} for its defaults',
    body,
  )
}

/** Problems inside the named parts; the schema of the body reports those above. */
function insideParts(
  problems: readonly ValidationProblem[],
  parts: readonly string[],
): readonly ValidationProblem[] {
  const isInside = ({ loc }: ValidationProblem) => loc.length > 2 && parts.includes(loc[1] ?? '')
  const shown = problems.slice(0, problemsMax)
  // The number of problems that are not shown is that of the whole body. It is right for these parts if all
  // the others are inside them.
  return shown.every(isInside) ? problems : shown.filter(isInside)
}
