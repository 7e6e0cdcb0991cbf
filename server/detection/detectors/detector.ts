// The rules of a detector, without I/O: which definitions are valid, the result of a partial update, what is fixed in a
// system detector, and how a client proves which version it read. Every path that makes a definition (create, patch,
// load) uses `readDraft`, so a detector with parameters that its method refuses cannot exist.

import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import {
  CreateDetector,
  type Detector,
  type DetectorScope,
  type DetectorStatus,
} from '../../../contract/detection.ts'
import { comparesPeers, MethodKey, methodParams } from '../../../contract/detection-methods.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { problem, problemsMax } from '../../core/app-error.ts'
import { instantText } from '../../core/clock.ts'
import { isRecord, problemsOf } from '../../http/validation.ts'
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
  readonly createdAtMs: number
}

/** A definition before validation: any JSON. */
export type Draft = Readonly<Record<string, unknown>>

type DefinitionField = keyof DetectorDefinition

const fields = Object.keys(CreateDetector.shape) as DefinitionField[]

/** The identity of a system detector, which users and dashboards rely on. */
const fixedOnSystem: readonly DefinitionField[] = ['name', 'metric_key', 'method_key']

const draftSchemas = {
  threshold: z.strictObject({ ...CreateDetector.shape, params: methodParams.threshold }),
  robust_band: z.strictObject({ ...CreateDetector.shape, params: methodParams.robust_band }),
  seasonal_band: z.strictObject({ ...CreateDetector.shape, params: methodParams.seasonal_band }),
  record_range: z.strictObject({ ...CreateDetector.shape, params: methodParams.record_range }),
  shape_discord: z.strictObject({ ...CreateDetector.shape, params: methodParams.shape_discord }),
  spectral_residual: z.strictObject({ ...CreateDetector.shape, params: methodParams.spectral_residual }),
  sub_pca: z.strictObject({ ...CreateDetector.shape, params: methodParams.sub_pca }),
  level_shift: z.strictObject({ ...CreateDetector.shape, params: methodParams.level_shift }),
  absence: z.strictObject({ ...CreateDetector.shape, params: methodParams.absence }),
  rate_test: z.strictObject({ ...CreateDetector.shape, params: methodParams.rate_test }),
  rcf: z.strictObject({ ...CreateDetector.shape, params: methodParams.rcf }),
  peer_outlier: z.strictObject({ ...CreateDetector.shape, params: methodParams.peer_outlier }),
  auto: z.strictObject({ ...CreateDetector.shape, params: methodParams.auto }),
} as const satisfies Record<MethodKey, z.ZodType>

/** Returns the whole definition with defaults filled in, or all problems with their locations in the body. */
export function readDraft(
  draft: Draft,
): { readonly definition: DetectorDefinition } | { readonly problems: ValidationProblem[] } {
  const key = MethodKey.safeParse(draft.method_key)
  const result = (key.success ? draftSchemas[key.data] : CreateDetector).safeParse(draft)
  const problems = [
    ...(result.success ? [] : problemsOf('body', result.error.issues, draft)),
    ...groupMissing(draft),
  ]
  return result.success && problems.length === 0 ? { definition: result.data } : { problems }
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
  }
}

/** The method with its parameters for an evaluation; null where the method no longer accepts the parameters. */
export function methodChoiceOf(definition: DetectorDefinition): MethodChoice | null {
  const result = methodParams[definition.method_key].safeParse(definition.params)
  // The schema of this key produced the parameters, which the type of a lookup by key cannot express.
  return result.success ? ({ method_key: definition.method_key, params: result.data } as MethodChoice) : null
}

/**
 * Problems that the schema of the creating body cannot find: those inside `params`, and a group that the method needs.
 */
export function createProblems(body: unknown): ValidationProblem[] {
  if (!isRecord(body) || !isRecord(body.params ?? {})) return []
  const result = readDraft({ ...body, params: body.params ?? {} })
  return [...insideParts(result, ['params']), ...groupMissing(body)]
}

/**
 * Problems that the schema of the patching body cannot find: those inside `params` and `scope` of the result. `body`
 * may be anything: parts of the wrong type are left to the schema, and fields that are fixed in a system detector to
 * the refusal of those.
 */
export function patchProblems(
  stored: { readonly definition: DetectorDefinition; readonly isSystem: boolean },
  body: unknown,
  isMerge: boolean,
): ValidationProblem[] {
  const before = stored.definition
  if (!isRecord(body)) return []
  if (stored.isSystem && refusedOnSystem(before, body).length > 0) return []
  if (changesMethodAlone(before, body)) return [paramsMissing(body)]
  const parts = ['params', 'scope'].filter((part) => isRecord(body[part] ?? {}))
  return insideParts(readDraft(draftOfPatch(before, body, isMerge)), parts)
}

/**
 * Applies a patch that `PatchDetector` accepts. Returns the definition, or all problems of the result. Without
 * `isMerge`, `params` and `scope` replace the old object as a whole; with it they are merged (RFC 7396).
 */
export function applyPatch(
  before: DetectorDefinition,
  patch: Draft,
  isMerge: boolean,
): { readonly definition: DetectorDefinition } | { readonly problems: ValidationProblem[] } {
  if (changesMethodAlone(before, patch)) return { problems: [paramsMissing(patch)] }
  return readDraft(draftOfPatch(before, patch, isMerge))
}

/** Names of the fields that differ, in the order of the contract. */
export function changedFields(before: DetectorDefinition, after: DetectorDefinition): DefinitionField[] {
  return fields.filter((field) => !isDeepStrictEqual(before[field], after[field]))
}

/**
 * Fields that a patch would change although they are fixed in a system detector. A field with its present value changes
 * nothing.
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
 * Whether `If-Match` (RFC 9110 section 13.1.1) allows a change of this revision. Without the header every change is
 * allowed.
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
 * Whether a patch changes the method without new params. Parameters of one method mean nothing to another, and the
 * defaults must not be chosen without the client asking for them.
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

/** Problems deeper than the named parts themselves; problems of the parts are left to the body schema. */
function insideParts(result: ReturnType<typeof readDraft>, parts: readonly string[]): ValidationProblem[] {
  if ('definition' in result) return []
  const isInside = ({ loc }: ValidationProblem) => loc.length > 2 && parts.includes(loc[1] ?? '')
  const shown = result.problems.slice(0, problemsMax)
  // The count of problems that are not shown is for the whole body. It applies to the parts only where all shown
  // problems are inside them.
  return shown.every(isInside) ? result.problems : shown.filter(isInside)
}
