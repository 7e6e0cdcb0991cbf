// Exports: a file exports only what another file imports, and in the server each name is exported once. An
// export without an importer looks like an interface; a name that two files export has two meanings, and a
// reader must know which one is meant.

import type { SourceFile, Violation } from './source-file.ts'

/** Exports that no other file imports, tests and benchmarks included. */
export function findUnusedExports(sources: readonly SourceFile[]): Violation[] {
  const imported = new Set<string>()
  for (const { imports } of sources) {
    for (const { target, names } of imports) for (const name of names) imported.add(`${target} ${name}`)
  }
  return sources
    .filter(({ path }) => !imported.has(`${path} *`))
    .flatMap(({ path, exports }) =>
      exports
        .filter(({ name }) => !imported.has(`${path} ${name}`))
        .map(({ name, line }) => ({
          path: `${path}:${line} ${name}`,
          reason: 'no other file imports it; keep it to its file, or remove it',
        })),
    )
}

/** Names that several production files of the server export. */
export function findSharedNames(sources: readonly SourceFile[]): Violation[] {
  const paths = new Map<string, Set<string>>()
  for (const { path, exports } of sources.filter(isOfServer)) {
    for (const { name } of exports) paths.set(name, (paths.get(name) ?? new Set()).add(path))
  }
  return [...paths]
    .filter(([, owners]) => owners.size > 1)
    .map(([name, owners]) => ({
      path: `${name}: ${[...owners].join(', ')}`,
      reason: 'one name, one meaning: rename all but one for what they mean',
    }))
}

const isOfServer = ({ path }: SourceFile) => path.startsWith('server/') && !path.endsWith('.test.ts')
