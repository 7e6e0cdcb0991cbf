// Who may import whom. The house has floors, lowest first; a file imports its own room and any lower floor,
// never a sibling on the same one, so that a room can be read, tested and replaced knowing only what lies
// below it. What tests bring along (their own files and the support files named here) may import anything,
// and nothing of theirs is imported by what runs in production.

import type { Program } from 'oxc-parser'
import type { Import, SourceFile, Violation } from './source-file.ts'

/** Floors of the house, lowest first; rooms of one floor are siblings. */
const floors: readonly (readonly string[])[] = [
  ['contract'],
  ['core'],
  ['control', 'telemetry', 'http', 'disk'],
  ['audit', 'deploys', 'series', 'worker'],
  ['tenancy', 'ingest', 'query', 'usage', 'deletion', 'detection', 'backup', 'demo'],
  ['config', 'metrics'],
  ['app'],
  ['cli'],
]

/** Rooms inside a room, lowest first; '' is what stands in the room itself. */
const innerFloors: Readonly<Record<string, readonly (readonly string[])[]>> = {
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

/** Source files that one folder may have before it is to be split; tests and test support are not counted. */
const sourcesMax = 25

/** Files beside production code that only tests and benchmarks use. */
export const testSupport: readonly string[] = [
  'server/core/actor-fixture.ts',
  'server/core/manual-clock.ts',
  'server/demo/otlp-reference.ts',
  'server/deletion/deletion-fixture.ts',
  'server/deletion/governed-fixture.ts',
  'server/detection/detection-fixture.ts',
  'server/detection/scoring/seeded-noise.ts',
  'server/http/operation-fixture.ts',
  'server/telemetry/fences-contract.ts',
  'server/telemetry/placement-locks-contract.ts',
  'server/telemetry/row-fixture.ts',
  'server/telemetry/schema/older-tables-fixture.ts',
]

/** Modules that only some files may import, and why. */
const moduleDoors: readonly { module: RegExp; files: RegExp; reason: string }[] = [
  {
    module: /^node:sqlite$/,
    files: /^server\/(?:control\/sqlite\/[\w-]+|telemetry\/folder-lock)\.ts$/,
    reason:
      'the driver of the control plane belongs to control/sqlite/ (and to the lock in telemetry/folder-lock.ts)',
  },
  {
    module: /^chdb$/,
    files: /^server\/telemetry\/chdb\.ts$/,
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

/** Imports against the floors, by files that production runs. */
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
  const [floor, otherFloor] = [floorOf(room), floorOf(other)]
  if (floor < 0) return `the room ${room} has no floor yet; give it one in tests/tidy/import-rules.ts`
  if (otherFloor < 0) return `the room ${other} has no floor yet; give it one in tests/tidy/import-rules.ts`
  if (floor === otherFloor) return `${room} and ${other} are siblings; let app.ts hand over what is needed`
  if (floor < otherFloor) return `${room} lies below ${other}; imports only point down`
  return null
}

function whyNotInside(room: string, from: string, to: string): string | null {
  const inner = innerFloors[room]
  if (inner === undefined) return null
  const [own, other] = [innerRoomOf(from), innerRoomOf(to)]
  if (own === other) return null
  const [floor, otherFloor] = [own, other].map((name) => inner.findIndex((rooms) => rooms.includes(name)))
  if (floor === undefined || otherFloor === undefined || floor < 0 || otherFloor < 0)
    return `a room in ${room} has no floor yet; give it one in tests/tidy/import-rules.ts`
  if (floor === otherFloor) return `${own} and ${other} of ${room} are siblings`
  if (floor < otherFloor)
    return `${own} lies below ${other || 'the rest'} of ${room}; imports only point down`
  return null
}

/**
 * The room inside a room: `scoring` of `server/detection/scoring/series.ts`, '' of
 * `server/detection/routes.ts`.
 */
function innerRoomOf(path: string): string {
  return path.split('/').slice(2, -1).join('/')
}

function floorOf(room: string): number {
  return floors.findIndex((rooms) => rooms.includes(room))
}

/** Folders under server/ that have more source files than a reader can see at once. */
export function findCrowdedFolders(sources: readonly SourceFile[]): Violation[] {
  const folders = production(sources)
    .map(({ path }) => path.slice(0, path.lastIndexOf('/')))
    .filter((folder) => /^server(?:\/|$)/.test(folder))
  return [...Map.groupBy(folders, (folder) => folder)]
    .filter(([, files]) => files.length > sourcesMax)
    .map(([path, { length }]) => ({ path, reason: `${length} source files, at most ${sourcesMax}` }))
}

/** Imports of the command line's clients beyond what any client of the service may know. */
export function findClientsThatKnow(sources: readonly SourceFile[]): Violation[] {
  return production(sources)
    .filter(({ path }) => path.startsWith('server/cli/client/'))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ isOwn, target }) => isOwn && !clientDoors.test(target))
        .map(({ line, target }) => ({
          path: `${path}:${line} -> ${target}`,
          reason: 'a client knows the service by its contract and its address alone',
        })),
    )
}

/** The contract, the clock, and what every command shares. */
const clientDoors =
  /^(?:contract\/.*|server\/core\/clock|server\/cli\/(?:client\/.*|print|failure|commands\/(?:choices|help)))\.ts$/

/**
 * Modules from outside: the contract's short list, drivers at their doors, and only declared dependencies.
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
  const door = moduleDoors.find(({ module, files }) => module.test(edge.target) && !files.test(path))
  if (door !== undefined) return door.reason
  const isDeclared = dependencies.some((name) => edge.target === name || edge.target.startsWith(`${name}/`))
  if (!edge.target.startsWith('node:') && !isDeclared) return 'production uses only what dependencies declare'
  return null
}

/** Circles of imports, each once, from its first file in the order of the alphabet. */
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

/** Files that only pass on what other files export: a reader follows them for nothing. */
export function findBarrels(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap(({ path, program, imports }) => {
    if (/(?:^|\/)index\.ts$/.test(path))
      return [{ path, reason: 'name the file after what it holds, not index' }]
    if (imports.length > 0 && program.body.every(passesOn))
      return [{ path, reason: 'it only passes on what others export' }]
    return []
  })
}

/** Whether a statement only brings in or hands out what another file declares. */
function passesOn(statement: Program['body'][number]): boolean {
  if (statement.type === 'ExportNamedDeclaration') return statement.declaration === null
  return statement.type === 'ImportDeclaration' || statement.type === 'ExportAllDeclaration'
}

/**
 * Files that nothing runs. Everything in contract/ and server/ must be reached from an entry, except tests
 * and the named test support, which a test or benchmark must reach.
 */
export function findDeadFiles(sources: readonly SourceFile[], entries: readonly string[]): Violation[] {
  const live = reach(sources, entries)
  const tests = sources.filter(({ path }) => isTest(path) && !testSupport.includes(path))
  const tested = reach(
    sources,
    tests.map(({ path }) => path),
  )
  return sources
    .filter(({ path }) => /^(?:contract|server)\//.test(path) && !path.endsWith('.test.ts'))
    .flatMap(({ path }) => {
      if (testSupport.includes(path)) {
        return tested.has(path) ? [] : [{ path, reason: 'no test uses this test support' }]
      }
      if (live.has(path)) return []
      const hint = tested.has(path)
        ? 'only tests reach it; name it as test support if that is right'
        : 'nothing reaches it'
      return [{ path, reason: `dead from ${entries.join(', ')}: ${hint}` }]
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

/** Imports of files that aren't there, such as one that was renamed on another branch. */
export function findLostImports(sources: readonly SourceFile[]): Violation[] {
  const known = new Set(sources.map(({ path }) => path))
  return sources.flatMap(({ path, imports }) =>
    ownTargets(imports)
      .filter((target) => target.endsWith('.ts') && !known.has(target))
      .map((target) => ({ path: `${path} -> ${target}`, reason: 'there is no such file' })),
  )
}

function production(sources: readonly SourceFile[]): SourceFile[] {
  return sources.filter(({ path }) => !isTest(path))
}
