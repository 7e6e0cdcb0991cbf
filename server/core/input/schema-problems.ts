// Converts Zod's issues to the validation error of the interface: every problem in one response, each with
// its location, the correction, a type in the vocabulary of Pydantic v2, the wrong input and its context.

import type { z } from 'zod'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { firstProblems, problem } from '../app-error.ts'
import { isRecord } from './is-record.ts'

type Issue = z.core.$ZodIssue

/** Creates a problem only where it will be shown: a body may have tens of thousands. */
type ProblemMaker = () => ValidationProblem

/**
 * Returns the problems of one part of a request, limited to the first ones; `part` is `body`, `path`, `query`
 * or `header`. A value of the wrong type has no other problem: a text in place of a list isn't too long a
 * list.
 */
export function problemsOf(part: string, issues: readonly Issue[], input: unknown): ValidationProblem[] {
  return firstProblems(part, makersOf(part, issues, input))
}

function* makersOf(part: string, issues: readonly Issue[], input: unknown): Generator<ProblemMaker> {
  const mistyped = new Locations()
  for (const { code, path } of issues) if (code === 'invalid_type') mistyped.add(path)
  for (const issue of issues) {
    if (issue.code === 'invalid_type' || !mistyped.has(issue.path)) yield* makersOfIssue([part], issue, input)
  }
}

/**
 * A set of locations in a value. It is a tree and not a set of texts: in texts each name would be copied for
 * every location below it, and names may be as long as the body.
 */
class Locations {
  readonly #root: LocationNode = { isMember: false }

  add(path: readonly PropertyKey[]): void {
    let node = this.#root
    for (const key of path) {
      node.below ??= new Map()
      const next = node.below.get(key) ?? { isMember: false }
      node.below.set(key, next)
      node = next
    }
    node.isMember = true
  }

  has(path: readonly PropertyKey[]): boolean {
    let node: LocationNode | undefined = this.#root
    for (const key of path) node = node?.below?.get(key)
    return node?.isMember === true
  }
}

interface LocationNode {
  isMember: boolean
  below?: Map<PropertyKey, LocationNode>
}

/** @param outer the location of `whole`, where the issue's path begins */
function* makersOfIssue(outer: readonly string[], issue: Issue, whole: unknown): Generator<ProblemMaker> {
  if (issue.code === 'unrecognized_keys') {
    for (const key of issue.keys) yield () => unknownField(outer, [...issue.path, key], whole)
  } else if (issue.code === 'invalid_union') {
    yield* makersOfUnion([...outer, ...issue.path.map(String)], issue, valueAt(whole, issue.path))
  } else {
    yield () => problemOfIssue([...outer, ...issue.path.map(String)], issue, whole)
  }
}

function unknownField(
  outer: readonly string[],
  path: readonly PropertyKey[],
  whole: unknown,
): ValidationProblem {
  const sentence = 'This field is not known; remove it or correct its spelling'
  return problem([...outer, ...path.map(String)], 'extra_forbidden', sentence, valueAt(whole, path))
}

function problemOfIssue(loc: string[], issue: Issue, whole: unknown): ValidationProblem {
  const input = valueAt(whole, issue.path)
  switch (issue.code) {
    case 'invalid_type':
      return typeProblem(loc, issue.expected, input, whole, issue.path)
    case 'invalid_value': {
      const expected = issue.values.map((value) => `'${String(value)}'`)
      const words =
        expected.length > 1
          ? `${expected.slice(0, -1).join(', ')} or ${expected.at(-1)}`
          : String(expected[0])
      if (input === undefined) return missing(loc, whole, issue.path)
      return problem(loc, 'enum', `Input should be ${words}`, input, { expected: words })
    }
    case 'too_small':
      return sizeProblem(loc, issue, 'min', Number(issue.minimum), input)
    case 'too_big':
      return sizeProblem(loc, issue, 'max', Number(issue.maximum), input)
    case 'custom': {
      const { type, ctx } = issue.params ?? {}
      const named = typeof type === 'string' ? type : 'value_error'
      return problem(loc, named, issue.message, input, isRecord(ctx) ? ctx : {})
    }
    default:
      return problem(loc, 'value_error', issue.message, input)
  }
}

const typeNames: Record<string, readonly [string, string]> = {
  string: ['string_type', 'a valid string'],
  number: ['float_type', 'a valid number'],
  int: ['int_type', 'a valid integer'],
  boolean: ['bool_type', 'a valid boolean'],
  object: ['dict_type', 'a valid object'],
  record: ['dict_type', 'a valid object'],
  array: ['list_type', 'a valid list'],
}

function typeProblem(
  loc: string[],
  expected: string,
  input: unknown,
  whole: unknown,
  path: readonly PropertyKey[],
): ValidationProblem {
  if (input === undefined) return missing(loc, whole, path)
  const [type, words] = typeNames[expected] ?? ['value_error', expected]
  return problem(loc, type, `Input should be ${words}`, input)
}

/** The input of a missing field is the value that should contain it. */
function missing(loc: string[], whole: unknown, path: readonly PropertyKey[]): ValidationProblem {
  return problem(loc, 'missing', 'Field required', valueAt(whole, path.slice(0, -1)) ?? null)
}

/** Type and context key of a size limit, by what was measured. */
const sizeNames = {
  text: { min: ['string_too_short', 'min_length'], max: ['string_too_long', 'max_length'] },
  list: { min: ['too_short', 'min_length'], max: ['too_long', 'max_length'] },
  number: { min: ['greater_than_equal', 'ge'], max: ['less_than_equal', 'le'] },
  exclusive: { min: ['greater_than', 'gt'], max: ['less_than', 'lt'] },
} as const

function sizeProblem(
  loc: string[],
  issue: { readonly origin: string; readonly message: string; readonly inclusive?: boolean | undefined },
  side: 'min' | 'max',
  bound: number,
  input: unknown,
): ValidationProblem {
  const isList = issue.origin === 'array' || issue.origin === 'set'
  const ofNumber = issue.inclusive === false ? 'exclusive' : 'number'
  const [type, key] = sizeNames[issue.origin === 'string' ? 'text' : isList ? 'list' : ofNumber][side]
  return problem(loc, type, issue.message, input, { [key]: bound })
}

/** Where the input has the type of one branch, the problems of that branch are returned. */
function* makersOfUnion(
  loc: readonly string[],
  { errors }: z.core.$ZodIssueInvalidUnion,
  input: unknown,
): Generator<ProblemMaker> {
  const isOfType = (branch: readonly Issue[]) =>
    !branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0)
  const [meant, ...others] = errors.filter(isOfType)
  if (meant !== undefined && others.length === 0) {
    for (const inner of meant) yield* makersOfIssue(loc, inner, input)
    return
  }
  yield () => {
    const expected = errors.flat().flatMap((inner) => (inner.code === 'invalid_type' ? [inner.expected] : []))
    const names = [...new Set(expected)].join(', ')
    return problem(loc, 'value_error', `Input should be one of: ${names}`, input)
  }
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)]
    else if (isRecord(value) && Object.hasOwn(value, key)) value = value[String(key)]
    else return undefined
  }
  return value
}
