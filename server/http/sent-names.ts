// Accepts fields and parameters under their old names. All other code uses the current names; a problem has
// the name that the client sent.

import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import { oldNamesOf } from '../../contract/values/old-names.ts'
import { problem } from '../core/app-error.ts'

/** The names of one request. */
export class SentNames {
  /** For each part with old names in it: what was sent, and the old name of each current one. */
  readonly #parts = new Map<string, { readonly input: unknown; readonly sent: ReadonlyMap<string, string> }>()

  /**
   * Returns the input under current names. Adds a problem for each field that came under both names with
   * different values; the value of the current name is then used.
   */
  rename(part: string, schema: z.ZodType, input: unknown, problems: ValidationProblem[]): unknown {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
    const given = new Map<string, unknown>(Object.entries(input))
    const old = Object.entries(oldNamesOf(schema)).filter(([name]) => given.has(name))
    if (old.length === 0) return input
    const sent = new Map<string, string>()
    for (const [name, current] of old) {
      if (!given.has(current)) sent.set(current, name)
      else if (!isDeepStrictEqual(given.get(name), given.get(current))) {
        problems.push(differing(part, name, current, given.get(name)))
      }
    }
    this.#parts.set(part, { input, sent })
    const renames = new Map(old)
    return Object.fromEntries(
      [...given].flatMap(([name, value]) => {
        const current = renames.get(name) ?? name
        return current !== name && given.has(current) ? [] : [[current, value]]
      }),
    )
  }

  /** Returns the problems at the locations that the client knows. */
  withSentNames(problems: readonly ValidationProblem[]): ValidationProblem[] {
    return problems.map((found) => {
      const [part = '', name = '', ...rest] = found.loc
      const renamed = this.#parts.get(part)
      if (renamed === undefined) return found
      const isOfPart = found.type === 'missing' && found.loc.length === 2
      const loc = found.loc.length < 2 ? found.loc : [part, renamed.sent.get(name) ?? name, ...rest]
      // An input that was shortened once must not be shortened again: it says how much is missing.
      return isOfPart ? problem(loc, found.type, found.msg, renamed.input, found.ctx) : { ...found, loc }
    })
  }
}

function differing(part: string, name: string, current: string, input: unknown): ValidationProblem {
  const sentence = `${name} is the old name of ${current}, and both are given with different values; send ${current} alone`
  return problem([part, name], 'value_error', sentence, input, { current_name: current })
}
