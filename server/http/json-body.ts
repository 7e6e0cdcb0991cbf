// Reads a JSON body strictly. RFC 8259 leaves a repeated name to the reader's taste, and JSON.parse keeps the
// last one silently; here that would let the bound a person sees differ from the bound that is used, so a
// repeated name is a problem like any other, with its place.

import { type Node as JsonNode, parseTree } from 'jsonc-parser'
import type { ValidationProblem } from '../../contract/errors.ts'
import { problem } from '../core/app-error.ts'

/**
 * Arrays and objects within each other. Our bodies have four; the bound keeps whoever walks a body later, such as
 * the answer that quotes it as the offending input, off the end of the stack.
 */
const maxNesting = 64

export interface ReadBody {
  /** The last of repeated names counts; undefined where nothing could be read. */
  readonly value: unknown
  readonly problems: readonly ValidationProblem[]
}

/** An empty body reads as undefined, so that a required body answers `missing`. */
export function readJsonBody(bytes: Buffer): ReadBody {
  if (bytes.length === 0) return { value: undefined, problems: [] }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return {
      value: undefined,
      problems: [
        problem(['body'], 'json_invalid', 'The body is not valid UTF-8', null, { error: 'invalid UTF-8' }),
      ],
    }
  }
  try {
    const value: unknown = JSON.parse(text)
    return { value, problems: repeatedNames(parseTree(text)) }
  } catch (error) {
    const reason = error instanceof SyntaxError ? placeOf(error) : 'nested too deeply'
    return {
      value: undefined,
      problems: [
        problem(['body'], 'json_invalid', `The body is not valid JSON: ${reason}`, null, { error: reason }),
      ],
    }
  }
}

/** V8's message without the excerpt of the body that it quotes. */
function placeOf(error: SyntaxError): string {
  const position = /at position \d+(?: \(line \d+ column \d+\))?/.exec(error.message)
  return position === null ? 'it ends too early or is not JSON' : `unexpected character ${position[0]}`
}

function repeatedNames(root: JsonNode | undefined): ValidationProblem[] {
  const found: ValidationProblem[] = []
  const visit = (node: JsonNode, loc: readonly string[]): void => {
    if (node.children !== undefined && loc.length > maxNesting) throw new RangeError('nested too deeply')
    if (node.type === 'array')
      for (const [i, child] of (node.children ?? []).entries()) visit(child, [...loc, String(i)])
    if (node.type !== 'object') return
    const seen = new Set<string>()
    for (const property of node.children ?? []) {
      const [key, value] = property.children ?? []
      if (key === undefined) continue
      const name = String(key.value)
      if (seen.has(name)) {
        found.push(
          problem([...loc, name], 'value_error', 'This field is given more than once', value?.value ?? null),
        )
      }
      seen.add(name)
      if (value !== undefined) visit(value, [...loc, name])
    }
  }
  if (root !== undefined) visit(root, ['body'])
  return found
}
