// Runs a benchmark by its name: `neighbours` is bench/neighbours/neighbours.ts, `ingest/http` is
// bench/ingest/http.ts. What follows the name are the benchmark's own arguments. A list of names without one.

import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = join(dirname(dirname(fileURLToPath(import.meta.url))), 'bench')
const [name = ''] = process.argv.slice(2)
const found = [join(root, `${name}.ts`), join(root, name, `${basename(name)}.ts`)].find((path) =>
  existsSync(path),
)
if (name === '' || found === undefined) {
  const names = globSync('*/*.ts', { cwd: root })
    .filter((path) => !/(?:-child|\.test)\.ts$/.test(path))
    .map((path) => path.slice(0, -'.ts'.length))
  process.stderr.write(
    `Name a benchmark: npm run bench -- NAME. Its file says what it takes.\n${names.join('\n')}\n`,
  )
  process.exit(2)
}
process.argv.splice(1, 2, found)
await import(pathToFileURL(found).href)
