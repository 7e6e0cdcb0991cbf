// Where time, waiting, randomness, the environment and output enter a program: each only through a few files,
// so that everything else can run with a clock, a seed and settings that a test chooses. So do transactions,
// which the database may end in favour of another one.

import { type Expression, type Node, Visitor } from 'oxc-parser'
import { isTest } from './import-rules.ts'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

interface CallRule {
  /** Matched against a use: an identifier, a dotted name such as `process.env`, `new Date()` or `Date()`. */
  readonly use: RegExp
  /** Files to which the rule does not apply. */
  readonly except: (path: string) => boolean
  readonly reason: string
}

const isTime = (path: string) =>
  isTest(path) || path === 'server/core/clock.ts' || path === 'console/src/clock.ts'

/** Files that use them at the start and at the end only, or for files of the machine and of the program. */
const synchronousFiles: readonly string[] = [
  'server/app.ts',
  'server/app/instance.ts',
  'server/app/wire-disk.ts',
  'server/audit/key-seal.ts',
  'server/backup/restore.ts',
  'server/config/settings.ts',
  'server/control/control-address.ts',
  'server/control/file-copy.ts',
  'server/control/postgres/url.ts',
  'server/core/clock.ts',
  'server/core/process/thread-priority.ts',
  'server/http/console/console-build.ts',
  'server/telemetry/chdb.ts',
  'server/telemetry/disk-sync.ts',
  'server/telemetry/folder-lock.ts',
  'server/telemetry/server-settings.ts',
  'server/telemetry/spool.ts',
]

const callRules: readonly CallRule[] = [
  {
    use: /\bprocess\.env$/,
    except: (path) => isTest(path) || path.startsWith('server/cli/'),
    reason: 'settings are read in config.ts from what the command line passes',
  },
  {
    use: /^(?:new )?Date\(\)$|\b(?:Date\.now|performance\.now|process\.hrtime|Temporal\.Now)$/,
    except: isTime,
    reason: 'wall time comes from the Clock that is passed in',
  },
  {
    use: /^(?:setTimeout|setInterval)$|\bAbortSignal\.timeout$/,
    except: isTime,
    reason: 'waiting goes through the Clock that is passed in',
  },
  {
    use: /\bMath\.random$/,
    except: () => false,
    reason: 'randomness comes from node:crypto, or from a seed that is passed in',
  },
  {
    use: /\bconsole\.[^.]+$/,
    except: (path) => /^(?:tests|bench|scripts)\//.test(path),
    reason: 'the service logs through its logger, the command line writes to standard output',
  },
  {
    use: /^fs\.\w+Sync$/,
    except: (path) =>
      !path.startsWith('server/') ||
      isTest(path) ||
      /^server\/(?:cli|demo)\//.test(path) ||
      synchronousFiles.includes(path),
    reason: 'a disk that hangs would stop the event loop; use node:fs/promises, and disk/disk-calls.ts',
  },
  {
    use: /\.(?:transaction|startTransaction)$/,
    except: (path) => !path.startsWith('server/') || isTest(path) || path.startsWith('server/control/'),
    reason:
      'transactions run through control/transaction.ts, which runs one again where the database ended it',
  },
]

/** Uses that are allowed only in some files, in every form in which they can be written. */
export function findForbiddenCalls(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap((source) => {
    const rules = callRules.filter(({ except }) => !except(source.path))
    const places = new Map<string, string>()
    for (const { use, start } of rules.length === 0 ? [] : readUses(source)) {
      const reason = rules.find((rule) => rule.use.test(use))?.reason
      if (reason !== undefined) places.set(`${source.path}:${lineAt(source.text, start)} ${use}`, reason)
    }
    return [...places].map(([path, reason]) => ({ path, reason }))
  })
}

interface Use {
  readonly use: string
  readonly start: number
}

/**
 * Every identifier, dotted name and construction of a date in a file, and names that it destructures from
 * objects and modules.
 */
function readUses({ program }: SourceFile): Use[] {
  const uses: Use[] = []
  const takenFrom = (from: string, key: Node, start: number) => {
    if (key.type === 'Identifier') uses.push({ use: `${from}.${key.name}`, start })
  }
  new Visitor({
    Identifier: ({ name, start }) => uses.push({ use: name, start }),
    MemberExpression: (node) => uses.push({ use: dottedName(node), start: node.start }),
    NewExpression: ({ callee, arguments: values, start }) => {
      if (callee.type === 'Identifier' && values.length === 0)
        uses.push({ use: `new ${callee.name}()`, start })
    },
    CallExpression: ({ callee, start }) => {
      if (callee.type === 'Identifier') uses.push({ use: `${callee.name}()`, start })
    },
    VariableDeclarator: ({ id, init }) => {
      if (id.type !== 'ObjectPattern' || init === null) return
      for (const property of id.properties) {
        if (property.type === 'Property') takenFrom(dottedName(init), property.key, property.start)
      }
    },
    ImportDeclaration: ({ source, specifiers }) => {
      for (const specifier of specifiers) {
        if (specifier.type !== 'ImportSpecifier') continue
        takenFrom(source.value.replace(/^node:/, ''), specifier.imported, specifier.start)
      }
    },
  }).visit(program)
  return uses
}

/** `a.b` of `a.b`, `a?.b` and `a['b']`; an expression that is not a name is left empty. */
function dottedName(node: Expression): string {
  if (node.type === 'Identifier') return node.name
  if (node.type === 'ParenthesizedExpression' || node.type === 'ChainExpression')
    return dottedName(node.expression)
  if (node.type !== 'MemberExpression') return ''
  const { property } = node
  if (property.type === 'Literal') return `${dottedName(node.object)}.${property.value}`
  return `${dottedName(node.object)}.${!node.computed && property.type === 'Identifier' ? property.name : ''}`
}
