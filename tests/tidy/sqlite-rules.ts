// SQLite's own words stand in one folder, so that the control plane can be on another database. Stores speak
// Kysely and the dialect (server/control/dialect.ts).

import { type TemplateElement, Visitor } from 'oxc-parser'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

const sqliteFolder = 'server/control/sqlite/'

/** What SQLite understands and PostgreSQL does not, or not in this meaning. */
const sqliteWords: readonly RegExp[] = [
  /\bpragma\s+\w+/i,
  /\bbegin\s+(?:deferred|immediate|exclusive)\b/i,
  /\braise\s*\(/i,
  /\b(?:wal|shm|wal_checkpoint|journal_mode|secure_delete|busy_timeout)\b/i,
  /\b(?:rowid|autoincrement|json_each|sqlite_\w+|vacuum)\b/i,
  /\binsert\s+or\s+(?:replace|ignore)\b/i,
  // The storage class; `double precision` means the same in both.
  /\b(?:create|alter)\s+table\b[\s\S]*(?<!')\breal\b(?!')/i,
  // A plus before a column, which keeps it from its index.
  /\b(?:where|and|or|on|by)\s+\+\s*["\w]/i,
]

/** Files that may say them elsewhere, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'server/telemetry/folder-lock.ts':
    'the lock of the data folder is a file of SQLite, whatever the control plane is on',
}

/** Files that choose or open the database, and so import the folder. */
const doors = new Set([
  'server/app.ts',
  'server/backup/restore.ts',
  'server/cli/open-control.ts',
  'tests/control-planes.ts',
])

/** SQLite's words in text that production or a test of the server gives to a database, outside its folder. */
export function findSqliteWords(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter(({ path }) => path.startsWith('server/') && !path.startsWith(sqliteFolder))
    .filter(({ path }) => exceptions[path] === undefined)
    .flatMap((source) =>
      texts(source).flatMap(({ text, start }) => {
        const found = sqliteWords.map((word) => word.exec(text)?.[0]).find((word) => word !== undefined)
        if (found === undefined) return []
        const word = found.length > 40 ? `${found.slice(0, 40)}…` : found
        return [
          {
            path: `${source.path}:${lineAt(source.text, start)} ${word}`,
            reason: `words of SQLite stand in ${sqliteFolder}; ask the dialect (server/control/dialect.ts)`,
          },
        ]
      }),
    )
}

/** Imports of the folder by files that should know only Kysely and the dialect. */
export function findSqliteImports(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter(({ path }) => !path.startsWith(sqliteFolder) && !doors.has(path))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target.startsWith(sqliteFolder))
        .map(({ line, target }) => ({
          path: `${path}:${line} -> ${target}`,
          reason: path.startsWith('server/')
            ? 'stores take a Control and do not know its database; tests open it by tests/control-planes.ts'
            : 'tests and benches open a control plane by tests/control-planes.ts',
        })),
    )
}

/** Strings, and templates with a column in the place of each value. */
function texts({ program }: SourceFile): { text: string; start: number }[] {
  const found: { text: string; start: number }[] = []
  const join = (quasis: readonly TemplateElement[]) =>
    quasis.map(({ value }) => value.cooked ?? value.raw).join('x')
  new Visitor({
    Literal: ({ value, start }) => {
      if (typeof value === 'string') found.push({ text: value, start })
    },
    TemplateLiteral: ({ quasis, start }) => found.push({ text: join(quasis), start }),
    TaggedTemplateExpression: ({ quasi, tag, start }) => {
      // A fragment that begins with the plus stands where a column would.
      const text = join(quasi.quasis)
      if (tag.type === 'Identifier' && tag.name === 'sql' && text.startsWith('+'))
        found.push({ text: `where ${text}`, start })
    },
  }).visit(program)
  return found
}
