// Compares the responses of a service with the operations of the contract: an operation returns only statuses
// and refusals that it declares. Every response in the tests of the whole system is compared, so a refusal
// that a handler throws and its operation does not declare fails the test that provokes it.

import { errorCatalogue } from '../../contract/errors.ts'
import { refusalsByStatus, validatesInput } from '../../contract/openapi/refusals.ts'
import type { Operation } from '../../contract/operation.ts'
import { everyOperation } from '../../contract/operations/every.ts'

interface Declared {
  readonly operation: Operation
  readonly shape: RegExp
  readonly refusals: ReadonlyMap<number, readonly string[]>
}

/** Paths without parameters first, as the router prefers them. */
const declared: readonly Declared[] = [...everyOperation]
  .sort((one, other) => parametersIn(one) - parametersIn(other))
  .map((operation) => ({
    operation,
    shape: new RegExp(
      `^${operation.path
        .replace(/[.]/g, '\\.')
        .replace(/:[a-z_]+/g, '[^/]+')
        .replace('*', '.*')}$`,
    ),
    refusals: refusalsByStatus(operation),
  }))

function parametersIn({ path }: Operation): number {
  return path.match(/[:*]/g)?.length ?? 0
}

/**
 * Returns what an operation returned and does not declare, as a sentence; null where it declares it, or where
 * no operation has this address.
 */
export function undeclaredAnswer(
  method: string,
  path: string,
  answer: { readonly status: number; readonly text: string },
): string | null {
  const plain = path.split('?')[0] ?? path
  const found = declared.find(
    ({ operation, shape }) => operation.method === (method === 'HEAD' ? 'GET' : method) && shape.test(plain),
  )
  if (found === undefined) return null
  const { operation, refusals } = found
  const { status, text } = answer
  const name = `${operation.method} ${operation.path}`
  if (status in operation.results || (status === 422 && validatesInput(operation))) return null
  const codes = refusals.get(status)
  if (codes === undefined) return `${name} does not declare the status ${status}: ${text}`
  const code = /"code":"(\w+)"/.exec(text)?.[1]
  if (code === undefined || !(code in errorCatalogue) || codes.includes(code)) return null
  return `${name} does not declare the refusal ${code}`
}
