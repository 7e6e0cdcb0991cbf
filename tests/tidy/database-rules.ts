// SQL of SQLite and of PostgreSQL is in one folder each, so that the control plane runs on either. Stores use
// Kysely and the dialect (server/control/dialect.ts).

import { type TemplateElement, Visitor } from 'oxc-parser'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

/** SQL that only one database understands, or that has this meaning only there. */
const databases: readonly { name: string; folder: string; words: readonly RegExp[] }[] = [
  { name: 'SQLite', folder: 'server/control/sqlite/', words: sqliteWords() },
  { name: 'PostgreSQL', folder: 'server/control/postgres/', words: postgresWords() },
]

function sqliteWords(): RegExp[] {
  return [
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
}

function postgresWords(): RegExp[] {
  return [
    /\bplpgsql\b|\$\$/i,
    /\b(?:pg_\w+|current_setting|set_config|to_regclass|ctid)\b/i,
    /\bfor\s+(?:no\s+key\s+)?(?:update|share)\b(?!s)/i,
    /::\s*(?:text|bigint|int[248]?|numeric|jsonb?|regclass|double)\b/i,
    /\b(?:create|replace)\s+function\b/i,
    /\bcollate\s+"/i,
    /\bset\s+(?:local\s+|session\s+)?(?:statement|lock|idle\w*)_timeout\b/i,
    /\b(?:vacuum|jsonb|bigserial|serial|ilike|string_agg|array_agg|distinct\s+on)\b/i,
  ]
}

/** Files outside the folders that may contain such SQL, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'server/telemetry/folder-lock.ts':
    'the lock of the data folder is a file of SQLite, whatever the control plane is on',
}

/** Files that choose or open the database, and so import the folder. */
const doors = new Set([
  'server/backup/restore.ts',
  'server/control/file-copy.ts',
  'server/control/control-address.ts',
  'tests/control-planes.ts',
  'tests/postgres-plane.ts',
])

/** SQL of one database, outside its folder, in text of production or of a test of the server. */
export function findDatabaseWords(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter(({ path }) => path.startsWith('server/') && exceptions[path] === undefined)
    .flatMap((source) => texts(source).flatMap((text) => foreignWords(source, text)))
}

function foreignWords(source: SourceFile, { text, start }: { text: string; start: number }): Violation[] {
  const own = databases.find(({ folder }) => source.path.startsWith(folder))
  const isOwn = (word: string) => own?.words.some((known) => known.test(word)) ?? false
  return databases
    .filter((database) => database !== own)
    .flatMap(({ folder, name, words }) => {
      const found = words
        .map((word) => word.exec(text)?.[0])
        .find((word) => word !== undefined && !isOwn(word))
      if (found === undefined) return []
      const word = found.length > 40 ? `${found.slice(0, 40)}…` : found
      return [
        {
          path: `${source.path}:${lineAt(source.text, start)} ${word}`,
          reason: `words of ${name} stand in ${folder}; ask the dialect (server/control/dialect.ts)`,
        },
      ]
    })
    .slice(0, 1)
}

/** Imports of a database's folder by files that may use only Kysely and the dialect. */
export function findDatabaseImports(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter(({ path }) => !doors.has(path))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) =>
          databases.some(({ folder }) => target.startsWith(folder) && !path.startsWith(folder)),
        )
        .map(({ line, target }) => ({
          path: `${path}:${line} -> ${target}`,
          reason: path.startsWith('server/')
            ? 'stores take a Control and do not know its database; tests open it by tests/control-planes.ts'
            : 'tests and benches open a control plane by tests/control-planes.ts',
        })),
    )
}

/** Strings, and templates with a column instead of each value. */
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
      // A fragment that begins with a plus is in the position of a column.
      const text = join(quasi.quasis)
      if (tag.type === 'Identifier' && tag.name === 'sql' && text.startsWith('+'))
        found.push({ text: `where ${text}`, start })
    },
  }).visit(program)
  return found
}
