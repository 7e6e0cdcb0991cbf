// The test files that share a process. scripts/test.ts runs this file as one of its tests, and names them in
// LETHE_TEST_TOGETHER: their paths from the root, with commas between them.

import { join } from 'node:path'
import process from 'node:process'

const root = join(import.meta.dirname, '..')
const files = (process.env.LETHE_TEST_TOGETHER ?? '').split(',').filter((file) => file !== '')
for (const file of files) await import(join(root, file))
