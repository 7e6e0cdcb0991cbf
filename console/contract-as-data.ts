// Gives the console the contract without Zod, which is as large as half of the console. The console imports
// the modules of the contract with their types; the bundle gets their plain data: of an operation its method,
// its path and who may call it, and of anything else the values that JSON has. A schema is never bundled:
// importing one fails the build.

import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Plugin } from 'vite'

/** @param folder the absolute path of the contract */
export function contractAsData(folder: string): Plugin {
  /** It has functions that the client uses, and no import that remains at run time. */
  const asItIs = join(folder, 'operation.ts')
  return {
    name: 'contract-as-data',
    enforce: 'pre',
    async load(id) {
      if (!id.startsWith(folder + sep) || id === asItIs) return null
      const exported: Record<string, unknown> = await import(pathToFileURL(id).href)
      const lines = Object.entries(exported).flatMap(([name, value]) => {
        const data = dataOf(value)
        return data === undefined ? [] : [`export const ${name} = ${JSON.stringify(data)}`]
      })
      return { code: `${lines.join('\n')}\nexport {}`, map: null }
    },
  }
}

/** Returns the value as JSON has it; undefined where it has a part that is no data. */
function dataOf(value: unknown): unknown {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value
  if (Array.isArray(value)) return allOf(value.map(dataOf))
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return undefined
  if ('method' in value && 'path' in value && 'results' in value) return operationData(value)
  const entries = Object.entries(value).map(([name, part]) => [name, dataOf(part)] as const)
  return entries.some(([, part]) => part === undefined) ? undefined : Object.fromEntries(entries)
}

function allOf(values: readonly unknown[]): readonly unknown[] | undefined {
  return values.includes(undefined) ? undefined : values
}

function operationData(operation: object): object {
  const kept = ['id', 'method', 'path', 'access']
  return Object.fromEntries(Object.entries(operation).filter(([name]) => kept.includes(name)))
}
