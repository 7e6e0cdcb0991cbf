// Runs test files one after the other in this process. Each is a suite, so that its hooks run around its own
// tests only, and a failure names it. All of them are loaded before the first test begins. scripts/test.ts
// imports this file with their paths from the root in the query of its URL.

import { join } from 'node:path'
import { describe } from 'node:test'

const root = join(import.meta.dirname, '..')

for (const file of new URL(import.meta.url).searchParams.getAll('file')) {
  describe(file, async () => {
    await import(join(root, file))
  })
}
