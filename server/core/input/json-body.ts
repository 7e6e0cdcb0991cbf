// Parses a JSON body strictly. RFC 8259 leaves the meaning of a repeated name to the reader, and JSON.parse
// keeps the last one without notice; the bound that a person sees could then differ from the bound that is
// used. So a repeated name is a problem like any other, with its location. So is text with a lone surrogate,
// which UTF-8 can't represent, so that no hash could be computed of it (RFC 8785 section 3.2.2.2). A body
// that would be expensive to parse, or to walk later, is refused before it is parsed.

import { type Node as JsonNode, parseTree } from 'jsonc-parser'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { firstProblems, problem } from '../app-error.ts'
import { excessSentence, type JsonBounds, jsonExcess } from './json-bounds.ts'

/**
 * What a body of a control operation may cost. Our bodies have four levels, and the largest has 366 holidays;
 * the bounds prevent a stack overflow and keep the making of problems within a few milliseconds.
 */
const bodyBounds: JsonBounds = { depth: 64, values: 2_048, containers: 2_048, shapes: 2_048 }

interface ReadBody {
  /** The last of repeated names counts; undefined where nothing could be parsed. */
  readonly value: unknown
  readonly problems: readonly ValidationProblem[]
}

/** An empty body is undefined, so that a required body is reported as `missing`. */
export function readJsonBody(bytes: Buffer, bounds: JsonBounds = bodyBounds): ReadBody {
  if (bytes.length === 0) return { value: undefined, problems: [] }
  const excess = jsonExcess(bytes, bounds)
  if (excess !== null) {
    const error = excessSentence[excess]
    return unreadable(`The body cannot be read: ${error}, the limit is ${bounds[excess]}`, error)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return unreadable('The body is not valid UTF-8', 'invalid UTF-8')
  }
  try {
    const value: unknown = JSON.parse(text)
    return { value, problems: faultsOf(parseTree(text)) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return unreadable(`The body is not valid JSON: ${positionOf(error)}`, positionOf(error))
  }
}

function unreadable(sentence: string, error: string): ReadBody {
  return { value: undefined, problems: [problem(['body'], 'json_invalid', sentence, null, { error })] }
}

/** Returns V8's message without the excerpt of the body that it quotes. */
function positionOf(error: SyntaxError): string {
  const position = /at position \d+(?: \(line \d+ column \d+\))?/.exec(error.message)
  return position === null ? 'it ends too early or is not JSON' : `unexpected character ${position[0]}`
}

function faultsOf(root: JsonNode | undefined): ValidationProblem[] {
  return root === undefined ? [] : firstProblems('body', faultsIn(root, ['body']))
}

function* faultsIn(node: JsonNode, loc: readonly string[]): Generator<() => ValidationProblem> {
  if (node.type === 'string') yield* halfPairs(node.value, loc)
  if (node.type === 'array') {
    for (const [i, child] of (node.children ?? []).entries()) yield* faultsIn(child, [...loc, String(i)])
  }
  if (node.type !== 'object') return
  const seen = new Set<string>()
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? []
    if (key === undefined) continue
    const location = [...loc, String(key.value)]
    if (seen.has(String(key.value))) {
      yield () => problem(location, 'value_error', 'This field is given more than once', value?.value ?? null)
    }
    seen.add(String(key.value))
    yield* halfPairs(String(key.value), location)
    if (value !== undefined) yield* faultsIn(value, location)
  }
}

/** The type of Pydantic v2 for text that is not valid Unicode. */
function* halfPairs(text: string, loc: readonly string[]): Generator<() => ValidationProblem> {
  if (text.isWellFormed()) return
  yield () => problem([...loc], 'string_unicode', 'Half of a surrogate pair stands alone in this text', text)
}
