// Runs test files one after the other in this process. Each is a suite, so that its hooks run around its own
// tests only, and a failure names it. All of them are loaded before the first test begins. scripts/test.ts
// imports this file with their paths from the root in the query of its URL.

import asyncHooks, { type AsyncHook, createHook, type HookCallbacks } from 'node:async_hooks'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/**
 * The hook with which Node's runner finds the test that every promise belongs to. It needs that while files
 * are loaded, for suites and tests that are declared after an `await`. While tests run it would only name the
 * test of an uncaught error, which fails the run in any case, and would take a seventh of the time.
 */
const runnersHooks: AsyncHook[] = []

// The runner takes the function when it is loaded.
const keepHook = (callbacks: HookCallbacks) => {
  const hook = createHook(callbacks)
  runnersHooks.push(hook)
  return hook
}
Object.assign(asyncHooks, { createHook: keepHook })
const { describe } = await import('node:test')

const loading = new URL(import.meta.url).searchParams.getAll('file').map((file) => {
  const loaded = Promise.withResolvers<void>()
  describe(file, async () => {
    await import(join(root, file)).finally(loaded.resolve)
  })
  return loaded.promise
})
Object.assign(asyncHooks, { createHook })
await Promise.all(loading)
for (const hook of runnersHooks) hook.disable()
