// Which file may import which. The rooms are in layers, lowest first; a file imports its own room and any
// lower layer, never a sibling in the same one, so that a room can be read, tested and replaced with
// knowledge of the lower layers only. Tests and the support files named here may import anything, and
// production code imports none of them.

import type { Program } from 'oxc-parser'
import type { Import, SourceFile, Violation } from './source-file.ts'

/** Layers, lowest first; rooms of one layer are siblings. */
const layers: readonly (readonly string[])[] = [
  ['contract'],
  ['console', 'core'],
  ['control', 'telemetry', 'http', 'disk'],
  ['audit', 'deploys', 'series', 'worker'],
  ['tenancy', 'ingest', 'query', 'usage', 'deletion', 'detection', 'backup', 'move', 'demo'],
  ['config', 'metrics'],
  ['app'],
  ['cli'],
]

/** Rooms inside a room, lowest first; '' means the files of the room itself. */
const innerLayers: Readonly<Record<string, readonly (readonly string[])[]>> = {
  contract: [
    ['', 'values'],
    ['deletion', 'telemetry'],
    ['organisation', 'detection'],
    ['examples'],
    ['operations'],
    ['openapi'],
  ],
  core: [[''], ['input', 'process', 'turns']],
  http: [['limits'], [''], ['pages'], ['console']],
  ingest: [['rows'], ['otlp', 'prometheus'], ['']],
  deletion: [['requests'], ['governance'], ['attempt'], ['preview', 'retention', 'certificate'], ['']],
  detection: [
    ['scoring'],
    ['methods'],
    ['alarms'],
    ['anomalies'],
    ['detectors'],
    ['incidents', 'runs'],
    [''],
  ],
}

/** Maximum number of source files in one folder; tests and test support don't count. */
const sourcesMax = 25

/** Files beside production code that only tests and benchmarks use. */
export const testSupport: readonly string[] = [
  'server/control/sqlite/two-handles-fixture.ts',
  'server/core/actor-fixture.ts',
  'server/core/formatter-count-fixture.ts',
  'server/core/manual-clock.ts',
  'server/demo/otlp-reference.ts',
  'server/deletion/attempt/slow-read-fixture.ts',
  'server/deletion/deletion-fixture.ts',
  'server/deletion/governed-fixture.ts',
  'server/deletion/requests/repeated-fixture.ts',
  'server/detection/anomalies/mute-fixture.ts',
  'server/detection/detection-fixture.ts',
  'server/detection/scoring/seeded-noise.ts',
  'server/detection/methods/scorer-fixture.ts',
  'server/http/operation-fixture.ts',
  'server/telemetry/fences-contract.ts',
  'server/telemetry/placement-locks-contract.ts',
  'server/telemetry/row-fixture.ts',
  'server/telemetry/schema/older-tables-fixture.ts',
  'server/tenancy/tenancy-fixture.ts',
]

/** Modules of the browser, and those that build for it. */
const browserModules = /^(?:react|react-dom|@mantine\/.*|@tanstack\/.*|vite|@vitejs\/.*)(?:\/|$)/

/** Modules that only some files may import, and why. */
const moduleRules: readonly { module: RegExp; files: RegExp; reason: string }[] = [
  {
    module: /^node:sqlite$/,
    files: /^server\/(?:control\/sqlite\/[\w-]+|telemetry\/folder-lock)\.ts$/,
    reason:
      'the driver of the control plane belongs to control/sqlite/ (and to the lock in telemetry/folder-lock.ts)',
  },
  {
    module: /^pg(?:$|[-/])/,
    files: /^server\/control\/postgres\/[\w-]+\.ts$/,
    reason: 'the driver of PostgreSQL belongs to control/postgres/',
  },
  {
    module: /^chdb$/,
    files: /^server\/telemetry\/(?:chdb|sessions\/clean-session)\.ts$/,
    reason: 'the embedded engine is reached through the port in telemetry/engine.ts',
  },
  {
    module: /^(?:fastify|@fastify\/.*|@scalar\/fastify.*|fastify-.*)$/,
    files: /^server\/(?:http\/.*|app(?:\/wire-[a-z]+)?|[a-z]+\/(?:[a-z]+\/|[a-z]+-)?routes)\.ts$/,
    reason: 'only routes.ts, http/ and app.ts know HTTP (a type-only import of FastifyBaseLogger is free)',
  },
  {
    module: /^node:http2$/,
    files: /^server\/ingest\/grpc(?:-sessions)?\.ts$/,
    reason: 'only ingest/grpc.ts and its connections know HTTP/2',
  },
  {
    module: browserModules,
    files: /^console\//,
    reason: 'only the console runs in a browser',
  },
  {
    module: /^(?:node:)?timers(?:\/promises)?$/,
    files: /^$/,
    reason: 'waiting goes through the Clock (setImmediate alone is free)',
  },
  {
    module: /^(?:node:test|node:assert|fast-check)$/,
    files: /^$/,
    reason: 'test tools are for tests (assertions in production come from node:assert/strict)',
  },
]

export function isTest(path: string): boolean {
  return /^(?:tests|bench|scripts)\//.test(path) || path.endsWith('.test.ts') || testSupport.includes(path)
}

/** The room of a production file: `core` of `server/core/ids.ts`, `app` of `server/app.ts`. */
function roomOf(path: string): string {
  const [top, second = ''] = path.split('/')
  return top === 'server' ? second.replace(/\.ts$/, '') : (top ?? '')
}

/** Imports against the layers, in production files. */
export function findWrongDirections(sources: readonly SourceFile[]): Violation[] {
  return production(sources).flatMap(({ path, imports }) =>
    imports
      .filter(({ isOwn }) => isOwn)
      .flatMap((edge) => {
        const reason = whyNot(path, edge.target)
        return reason === null ? [] : [{ path: `${path}:${edge.line} -> ${edge.target}`, reason }]
      }),
  )
}

function whyNot(from: string, to: string): string | null {
  if (isTest(to)) return 'what runs in production imports nothing that is only for tests'
  const [room, other] = [roomOf(from), roomOf(to)]
  if (room === other) return whyNotInside(room, from, to)
  if (other === 'console') return 'the service knows the console only as built files'
  const [layer, otherLayer] = [layerOf(room), layerOf(other)]
  if (layer < 0) return `the room ${room} has no layer yet; give it one in tests/tidy/import-rules.ts`
  if (otherLayer < 0) return `the room ${other} has no layer yet; give it one in tests/tidy/import-rules.ts`
  if (layer === otherLayer) return `${room} and ${other} are siblings; let app.ts pass what is needed`
  if (layer < otherLayer) return `${room} lies below ${other}; imports only point down`
  return null
}

function whyNotInside(room: string, from: string, to: string): string | null {
  const inner = innerLayers[room]
  if (inner === undefined) return null
  const [own, other] = [innerRoomOf(from), innerRoomOf(to)]
  if (own === other) return null
  const [layer, otherLayer] = [own, other].map((name) => inner.findIndex((rooms) => rooms.includes(name)))
  if (layer === undefined || otherLayer === undefined || layer < 0 || otherLayer < 0)
    return `a room in ${room} has no layer yet; give it one in tests/tidy/import-rules.ts`
  if (layer === otherLayer) return `${own} and ${other} of ${room} are siblings`
  if (layer < otherLayer)
    return `${own} lies below ${other || 'the rest'} of ${room}; imports only point down`
  return null
}

/**
 * The room inside a room: `scoring` of `server/detection/scoring/series.ts`, '' of
 * `server/detection/routes.ts`.
 */
function innerRoomOf(path: string): string {
  const folders = path.split('/').slice(0, -1)
  return folders.slice(folders[0] === 'server' ? 2 : 1).join('/')
}

function layerOf(room: string): number {
  return layers.findIndex((rooms) => rooms.includes(room))
}

/** Folders of what runs in production that have too many source files. */
export function findCrowdedFolders(sources: readonly SourceFile[]): Violation[] {
  const folders = production(sources)
    .map(({ path }) => path.slice(0, path.lastIndexOf('/')))
    .filter((folder) => /^(?:contract|server|console)(?:\/|$)/.test(folder))
  return [...Map.groupBy(folders, (folder) => folder)]
    .filter(([, files]) => files.length > sourcesMax)
    .map(([path, { length }]) => ({ path, reason: `${length} source files, at most ${sourcesMax}` }))
}

/** Imports of the command line's clients beyond what any client of the service may use. */
export function findClientsThatKnow(sources: readonly SourceFile[]): Violation[] {
  return production(sources)
    .filter(({ path }) => path.startsWith('server/cli/client/'))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ isOwn, target }) => isOwn && !clientImports.test(target))
        .map(({ line, target }) => ({
          path: `${path}:${line} -> ${target}`,
          reason: 'a client depends only on the contract and the address of the service',
        })),
    )
}

/** The contract, the clock, and code that every command shares. */
const clientImports =
  /^(?:contract\/.*|server\/core\/clock|server\/cli\/(?:client\/.*|print|failure|commands\/(?:choices|help)))\.ts$/

/**
 * External modules: the contract's short list, drivers only in their files, and only declared dependencies.
 */
export function findWrongModules(
  sources: readonly SourceFile[],
  dependencies: readonly string[],
): Violation[] {
  return production(sources).flatMap(({ path, imports }) =>
    imports
      .filter(({ isOwn }) => !isOwn)
      .flatMap((edge) => {
        const reason = whyNotModule(path, edge, dependencies)
        return reason === null ? [] : [{ path: `${path}:${edge.line} -> ${edge.target}`, reason }]
      }),
  )
}

function whyNotModule(path: string, edge: Import, dependencies: readonly string[]): string | null {
  if (roomOf(path) === 'contract' && edge.target !== 'zod') return 'the contract imports only zod and itself'
  const names = edge.names.join()
  if (edge.isTypeOnly && names === 'FastifyBaseLogger') return null
  if (names === 'setImmediate') return null
  const rule = moduleRules.find(({ module, files }) => module.test(edge.target) && !files.test(path))
  if (rule !== undefined) return rule.reason
  const isDeclared = dependencies.some((name) => edge.target === name || edge.target.startsWith(`${name}/`))
  if (!edge.target.startsWith('node:') && !isDeclared) return 'production uses only what dependencies declare'
  return null
}

/** Cycles of imports, each once, from its first file in alphabetical order. */
export function findCycles(sources: readonly SourceFile[]): Violation[] {
  const next = new Map(sources.map(({ path, imports }) => [path, ownTargets(imports)]))
  const done = new Set<string>()
  const found: Violation[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      found.push({
        path: [...trail.slice(start), path].join(' -> '),
        reason: 'these files import each other',
      })
      return
    }
    if (done.has(path)) return
    for (const target of next.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of [...next.keys()].sort()) visit(path, [])
  return found
}

function ownTargets(imports: readonly Import[]): string[] {
  return imports.filter(({ isOwn }) => isOwn).map(({ target }) => target)
}

/** Files that only re-export from other files. */
export function findBarrels(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap(({ path, program, imports }) => {
    if (/(?:^|\/)index\.ts$/.test(path))
      return [{ path, reason: 'name the file after its contents, not index' }]
    if (imports.length > 0 && program.body.every(passesOn))
      return [{ path, reason: 'it only re-exports from other files' }]
    return []
  })
}

/** Whether a statement only imports or re-exports what another file declares. */
function passesOn(statement: Program['body'][number]): boolean {
  if (statement.type === 'ExportNamedDeclaration') return statement.declaration === null
  return statement.type === 'ImportDeclaration' || statement.type === 'ExportAllDeclaration'
}

/**
 * Files that nothing uses. Everything in contract/, console/ and server/ must be reachable from an entry,
 * except tests and the named test support, which a test or benchmark must use.
 */
export function findDeadFiles(sources: readonly SourceFile[], entries: readonly string[]): Violation[] {
  const live = reach(sources, entries)
  const tests = sources.filter(({ path }) => isTest(path) && !testSupport.includes(path))
  const tested = reach(
    sources,
    tests.map(({ path }) => path),
  )
  return sources
    .filter(({ path }) => /^(?:contract|console|server)\//.test(path) && !path.endsWith('.test.ts'))
    .flatMap(({ path }) => {
      if (testSupport.includes(path)) {
        return tested.has(path) ? [] : [{ path, reason: 'no test uses this test support' }]
      }
      if (live.has(path)) return []
      const hint = tested.has(path)
        ? 'only tests use it; list it as test support if that is right'
        : 'nothing uses it'
      return [{ path, reason: `not reachable from ${entries.join(', ')}: ${hint}` }]
    })
}

function reach(sources: readonly SourceFile[], from: readonly string[]): Set<string> {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const reached = new Set(from)
  for (const path of reached) {
    for (const target of ownTargets(byPath.get(path)?.imports ?? [])) reached.add(target)
  }
  return reached
}

/** Imports of files that don't exist, such as one that was renamed on another branch. */
export function findLostImports(sources: readonly SourceFile[]): Violation[] {
  const known = new Set(sources.map(({ path }) => path))
  return sources.flatMap(({ path, imports }) =>
    ownTargets(imports)
      .filter((target) => /\.tsx?$/.test(target) && !known.has(target))
      .map((target) => ({ path: `${path} -> ${target}`, reason: 'there is no such file' })),
  )
}

function production(sources: readonly SourceFile[]): SourceFile[] {
  return sources.filter(({ path }) => !isTest(path))
}
