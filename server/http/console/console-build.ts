// The built files of the console. They are built by a process of its own when the sources have changed since
// the last build: a hash of their content names the folder, so that a restart builds nothing, and two
// services that start at once never see half a build.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newSecret } from '../../core/ids.ts'

/** The root of the project. */
const root = fileURLToPath(new URL('../../../', import.meta.url))

/**
 * In node_modules, like the compile cache of Node: removing that folder removes everything that can be
 * rebuilt.
 */
const cache = join(root, 'node_modules', '.cache', 'console')

/** All that a build reads: the console, the contract that it imports, and the versions of its libraries. */
const sources = ['console/**/*.{ts,tsx,css,html,json}', 'contract/**/*.ts', 'package-lock.json']

const isTest = (path: string) => path.endsWith('.test.ts')

/** Number of lines of the build's output that an error quotes. */
const outputLines = 30

/** A built file by its path, such as `assets/main-4f1c.js`. */
export type BuiltFiles = ReadonlyMap<string, Buffer>

/** Returns the files of the console, which are built first where the sources have changed. */
export async function buildConsole(): Promise<BuiltFiles> {
  const folder = join(cache, hashOfSources())
  if (!(await exists(folder))) await build(folder)
  return readFiles(folder)
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  const paths = globSync(sources, { cwd: root }).filter((path) => !isTest(path))
  for (const path of paths.sort()) {
    const content = createHash('sha256')
      .update(readFileSync(join(root, path)))
      .digest('hex')
    hash.update(`${path} ${content}\n`)
  }
  return hash.digest('hex').slice(0, 32)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** Builds into a folder of another name first. Older builds are removed: no process reads them again. */
async function build(folder: string): Promise<void> {
  const building = join(cache, `.building-${newSecret()}`)
  await mkdir(cache, { recursive: true })
  try {
    await run(process.execPath, [join(root, 'console', 'build.ts'), building])
    // Another process may have been faster with the same content.
    if (!(await exists(folder)))
      await rename(building, folder).catch((error) => throwUnlessDone(folder, error))
  } finally {
    await rm(building, { recursive: true, force: true })
  }
  for (const name of await readdir(cache)) {
    const path = join(cache, name)
    if (path !== folder && !name.startsWith('.')) await rm(path, { recursive: true, force: true })
  }
}

async function throwUnlessDone(folder: string, error: unknown): Promise<void> {
  if (!(await exists(folder))) throw error
}

function run(command: string, parameters: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, parameters, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) return resolve()
      const end = output.trim().split('\n').slice(-outputLines).join('\n')
      reject(new Error(`The console could not be built (exit code ${code}):\n${end}`))
    })
  })
}

async function readFiles(folder: string): Promise<BuiltFiles> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Map(
    await Promise.all(
      files.map(async (path) => [path.slice(folder.length + 1), await readFile(path)] as const),
    ),
  )
}
