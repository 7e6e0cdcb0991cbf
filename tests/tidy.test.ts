// The house rules, checked by reading the repository. Each rule is a function over sources, so that a test
// can show that it finds violations; a rule that can't fail checks nothing. ARCHITECTURE and STYLE give the
// reasons; a failure prints the location and the reason.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { errorCatalogue } from '../contract/errors.ts'
import { findForbiddenCalls } from './tidy/call-rules.ts'
import { findWideComments } from './tidy/comment-rules.ts'
import { findDatabaseImports, findDatabaseWords } from './tidy/database-rules.ts'
import { findSharedNames, findUnusedExports } from './tidy/export-rules.ts'
import {
  findBarrels,
  findClientsThatKnow,
  findCrowdedFolders,
  findCycles,
  findDeadFiles,
  findLostImports,
  findWrongDirections,
  findWrongModules,
  testSupport,
} from './tidy/import-rules.ts'
import { parseSources } from './tidy/parse-sources.ts'
import { compareSizes, functionLengths, measureSizes } from './tidy/size-rules.ts'
import { parseSource, readSources, type Violation } from './tidy/source-file.ts'
import {
  findLeftovers,
  findLongChanges,
  findLongDecisions,
  findMachinePaths,
  findMuteFiles,
  findUnusedCodes,
} from './tidy/text-rules.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const sources = readSources(root)
const manifest: { dependencies: Record<string, string>; scripts: Record<string, string> } = JSON.parse(
  read('package.json'),
)
const dependencies = Object.keys(manifest.dependencies)
const { lineWidth }: { lineWidth: number } = JSON.parse(read('biome.json')).formatter

/** Files of the server that package.json and the start scripts run. */
const runners = [...Object.values(manifest.scripts), ...globSync('scripts/*.mjs', { cwd: root }).map(read)]
const started = [...new Set(runners.flatMap((text) => text.match(/\bserver\/[\w/.-]+\.ts\b/g) ?? []))]

/** The service starts the build of the console, which begins at the script of its page. */
const entries = [...started, 'console/build.ts', 'console/src/main.tsx']

/** Our own texts: no lock file, nothing installed or generated. */
const texts = globSync(
  '{*,{contract,console,server,tests,bench,scripts,docs,deploy}/**/*}.{ts,tsx,mjs,js,json,css,html,md,yaml,yml}',
  {
    cwd: root,
  },
)
  .filter((path) => path !== 'package-lock.json')
  .map((path) => ({ path, text: read(path) }))

/** Words of the decisions that were longer than a page when the rule began. */
const longDecisions: Readonly<Record<string, number>> = {
  'docs/decisions/0038-four-views.md': 1096,
}

function passes(rule: string, violations: readonly Violation[]): void {
  test(rule, () => {
    const list = violations.map(({ path, reason }) => `${path}\n    ${reason}`)
    if (list.length > 0) assert.fail(`\n${list.join('\n')}`)
  })
}

const places = (violations: readonly Violation[]) => violations.map(({ path }) => path)

describe('the repository', () => {
  test('is found and has its entry points', () => {
    assert.ok(sources.length > 100, `${sources.length} sources`)
    assert.deepEqual(started, ['server/cli/lethe.ts'])
    assert.ok(sources.some(({ path }) => path.endsWith('.tsx')))
  })
  passes('imports only point down, and never to a sibling', findWrongDirections(sources))
  passes('no folder has too many files', findCrowdedFolders(sources))
  passes('clients depend only on the contract', findClientsThatKnow(sources))
  passes('external modules are imported only where allowed', findWrongModules(sources, dependencies))
  passes('SQL of SQLite and of PostgreSQL is in a folder each', findDatabaseWords(sources))
  passes('only files that open a control plane depend on its database', findDatabaseImports(sources))
  passes('no imports form a cycle', findCycles(sources))
  passes('no file only re-exports', findBarrels(sources))
  passes('every import names a file that exists', findLostImports(sources))
  passes('no file is unused', findDeadFiles(sources, entries))
  passes('no export is unused', findUnusedExports(sources))
  passes('each name that the server exports has one meaning', findSharedNames(sources))
  passes('time, randomness, environment and output are used only where allowed', findForbiddenCalls(sources))
  passes('no leftover notes', findLeftovers(sources))
  passes('every file opens with a comment that says what it is', findMuteFiles(sources))
  passes('comments fit the width of the code', findWideComments(sources, lineWidth))
  passes('no text has a path of one machine', findMachinePaths(texts))
  passes('a decision fits a page', findLongDecisions(texts, longDecisions))
  passes('an entry of the changelog is a line', findLongChanges('CHANGELOG.md', read('CHANGELOG.md')))
  passes(
    'every code of the catalogue is returned somewhere',
    findUnusedCodes(sources, Object.keys(errorCatalogue)),
  )
  passes(
    'long files and functions do not grow, and no others become long',
    compareSizes(measureSizes(sources), JSON.parse(read('tests/tidy/sizes.json'))),
  )
})

describe('the rule for sizes of folders', () => {
  const files = (folder: string, count: number, ending = '.ts') =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${folder}/f${i}${ending}`, '']))
  const found = (given: Readonly<Record<string, string>>) => places(findCrowdedFolders(parseSources(given)))

  test('finds a folder with too many source files, however deep', () => {
    assert.deepEqual(found(files('server/core', 26)), ['server/core'])
    assert.deepEqual(found(files('server/core/deep', 26)), ['server/core/deep'])
    assert.deepEqual(found(files('contract', 26)), ['contract'])
    assert.deepEqual(found({ ...files('server/core', 25), ...files('server/core/deep', 25) }), [])
  })

  test('counts neither tests nor test support nor other folders', () => {
    const tests = files('server/core', 10, '.test.ts')
    assert.deepEqual(found({ ...files('server/core', 25), ...tests, 'server/core/manual-clock.ts': '' }), [])
    assert.deepEqual(found({ ...files('bench', 30), ...files('tests', 30) }), [])
  })
})

describe('the direction rule', () => {
  const edge = (from: string, to: string) => {
    const up = '../'.repeat(from.split('/').length - 1)
    return findWrongDirections(parseSources({ [from]: `import { x } from '${up}${to}'` })).map(
      ({ reason }) => reason,
    )
  }

  test('refuses imports of a higher layer', () => {
    for (const [from, to] of [
      ['contract/errors.ts', 'server/core/ids.ts'],
      ['server/core/ids.ts', 'server/control/database.ts'],
      ['server/telemetry/gate.ts', 'server/audit/log.ts'],
      ['server/audit/log.ts', 'server/tenancy/store.ts'],
      ['server/query/logs.ts', 'server/config.ts'],
      ['server/metrics.ts', 'server/app.ts'],
      ['server/app.ts', 'server/cli/serve.ts'],
    ] as const) {
      assert.match(edge(from, to)[0] ?? 'nothing', /imports only point down/, `${from} -> ${to}`)
    }
  })

  test('refuses siblings, types included', () => {
    assert.match(
      edge('server/deletion/worker.ts', 'server/detection/detectors/store.ts')[0] ?? '',
      /are siblings/,
    )
    assert.match(edge('server/http/serve.ts', 'server/control/database.ts')[0] ?? '', /are siblings/)
    const typeOnly = parseSources({ 'server/query/a.ts': "import type { X } from '../usage/b.ts'" })
    assert.equal(findWrongDirections(typeOnly).length, 1)
  })

  test('checks the layers inside a room', () => {
    const reason = (from: string, to: string) => edge(`server/detection/${from}`, `server/detection/${to}`)
    assert.match(reason('scoring/a.ts', 'alarms/b.ts')[0] ?? '', /scoring lies below alarms of detection/)
    assert.match(reason('runs/a.ts', 'routes.ts')[0] ?? '', /runs lies below the rest of detection/)
    assert.match(reason('charts/a.ts', 'routes.ts')[0] ?? '', /has no layer yet/)
    assert.deepEqual(reason('routes.ts', 'runs/a.ts'), [])
    assert.deepEqual(reason('alarms/a.ts', 'alarms/b.ts'), [])
    assert.deepEqual(edge('server/query/a/a.ts', 'server/query/b.ts'), [])
    assert.match(edge('contract/errors.ts', 'contract/operations/a.ts')[0] ?? '', /imports only point down/)
    assert.match(
      edge('contract/deletion/a.ts', 'contract/detection/b.ts')[0] ?? '',
      /imports only point down/,
    )
    assert.match(edge('server/core/ids.ts', 'server/core/turns/a.ts')[0] ?? '', /imports only point down/)
  })

  test('refuses tests, benchmarks and test support in production', () => {
    for (const to of ['tests/fixtures.ts', 'bench/ingest/decode.ts', testSupport[0] ?? '']) {
      assert.match(edge('server/app.ts', to)[0] ?? 'nothing', /only for tests/, to)
    }
  })

  test('keeps the console to the contract, and the service away from the console', () => {
    assert.deepEqual(edge('console/src/api/client.ts', 'contract/operation.ts'), [])
    assert.match(edge('console/src/main.tsx', 'server/core/ids.ts')[0] ?? 'nothing', /siblings/)
    assert.match(edge('console/src/main.tsx', 'server/app.ts')[0] ?? 'nothing', /imports only point down/)
    assert.match(edge('server/app.ts', 'console/src/clock.ts')[0] ?? 'nothing', /only as built files/)
    const react = (path: string) =>
      findWrongModules(parseSources({ [path]: "import { useState } from 'react'" }), ['react']).length
    assert.deepEqual([react('console/src/a.tsx'), react('server/http/a.ts')], [0, 1])
  })

  test('refuses imports of the service by clients', () => {
    const client = (to: string) =>
      findClientsThatKnow(parseSources({ 'server/cli/client/a.ts': `import { x } from '../../../${to}'` }))
        .length
    assert.equal(client('contract/deletion/requests.ts'), 0)
    assert.equal(client('server/core/clock.ts'), 0)
    assert.equal(client('server/cli/print.ts'), 0)
    assert.equal(client('server/cli/serve.ts'), 1)
    assert.equal(client('server/deletion/requests/states.ts'), 1)
  })

  test('requires a layer for a new room', () => {
    assert.match(edge('server/billing/a.ts', 'server/core/ids.ts')[0] ?? '', /billing has no layer/)
    assert.match(edge('server/app.ts', 'server/billing/a.ts')[0] ?? '', /billing has no layer/)
  })

  test('accepts imports of lower layers and of the same room, and any import by tests', () => {
    assert.deepEqual(edge('server/worker/lease.ts', 'server/control/database.ts'), [])
    assert.deepEqual(edge('server/query/logs.ts', 'server/telemetry/sql.ts'), [])
    assert.deepEqual(edge('server/query/logs.ts', 'server/query/traces.ts'), [])
    assert.deepEqual(edge('server/query/logs.test.ts', 'server/deletion/worker.ts'), [])
    assert.deepEqual(edge('tests/a.ts', 'server/app.ts'), [])
  })

  test('finds every form of import, with its line', () => {
    const [source] = parseSources({
      'server/core/a.ts': [
        '// Nothing here: import x from "../app.ts"',
        "import '../app.ts'",
        "import x, { y } from '../app.ts'",
        "import * as z from '../app.ts'",
        'import {',
        '  type A,',
        '  type B as C,',
        "} from '../app.ts'",
        "export * from '../app.ts'",
        "const later = () => import('../app.ts')",
        'const text = "import q from \'../cli/serve.ts\'"',
      ].join('\n'),
    })
    assert.deepEqual(
      source?.imports.map(({ line, isTypeOnly }) => [line, isTypeOnly]),
      [
        [2, false],
        [3, false],
        [4, false],
        [5, true],
        [9, false],
        [10, false],
      ],
    )
    assert.equal(findWrongDirections(source === undefined ? [] : [source]).length, 6)
  })
})

describe('the rule of outside modules', () => {
  const wrong = (path: string, statement: string) =>
    findWrongModules(parseSources({ [path]: statement }), ['zod', 'fastify', 'chdb', 'kysely']).length

  test('allows drivers, HTTP, waiting and test tools only in their files', () => {
    assert.equal(wrong('server/control/migrate.ts', "import { DatabaseSync } from 'node:sqlite'"), 1)
    assert.equal(wrong('server/control/sqlite/sqlite.ts', "import { DatabaseSync } from 'node:sqlite'"), 0)
    assert.equal(wrong('server/usage/storage.ts', "import { Session } from 'chdb'"), 1)
    assert.equal(wrong('server/telemetry/chdb.ts', "import { Session } from 'chdb'"), 0)
    assert.equal(wrong('server/usage/storage.ts', "import type { FastifyRequest } from 'fastify'"), 1)
    assert.equal(wrong('server/usage/storage.ts', "import { FastifyBaseLogger } from 'fastify'"), 1)
    assert.equal(wrong('server/usage/storage.ts', "import type { FastifyBaseLogger } from 'fastify'"), 0)
    assert.equal(wrong('server/usage/routes.ts', "import type { FastifyRequest } from 'fastify'"), 0)
    assert.equal(
      wrong('server/usage/storage.ts', "import { setTimeout as w } from 'node:timers/promises'"),
      1,
    )
    assert.equal(wrong('server/usage/storage.ts', "import { setImmediate } from 'node:timers/promises'"), 0)
    assert.equal(wrong('server/usage/storage.ts', "import { test } from 'node:test'"), 1)
    assert.equal(wrong('server/usage/storage.test.ts', "import { test } from 'node:test'"), 0)
  })

  test('allows only zod in the contract, and only declared dependencies in production', () => {
    assert.equal(wrong('contract/a.ts', "import { z } from 'zod'"), 0)
    assert.equal(wrong('contract/a.ts', "import { join } from 'node:path'"), 1)
    assert.equal(wrong('server/core/a.ts', "import ms from 'ms'"), 1)
    assert.equal(wrong('server/core/a.ts', "import { Migrator } from 'kysely/migration'"), 0)
  })
})

describe('the rules of SQLite and PostgreSQL', () => {
  /** A value in a template. */
  const value = '${' + 'id}'
  const words = (code: string, path = 'server/deletion/a.ts') =>
    findDatabaseWords(parseSources({ [path]: code })).length

  test('find SQL of SQLite, in strings and in templates', () => {
    for (const code of [
      "run('pragma foreign_keys = on')",
      'sql`begin deferred`.execute(control)',
      "run('create trigger t before delete on x begin select raise(abort, 1); end')",
      'sql`pragma wal_checkpoint(truncate)`',
      'sql`update x set n = rowid`',
      "run('vacuum')",
      `sql\`select value from json_each(${value})\``,
      'sql`insert or ignore into x values (1)`',
      "run('create table x (score real not null)')",
      'sql`alter table x add column score real`',
      `sql\`select 1 from x where +tenant_id = ${value}\``,
      `sql\`+${value} = 1\``,
      `const log = \`${value}-wal\``,
    ]) {
      assert.equal(words(code), 1, code)
    }
    assert.equal(words("run('vacuum')", 'server/deletion/a.db.test.ts'), 1, 'tests of stores too')
    assert.equal(words("run('vacuum')", 'server/control/migrations/0001-a.ts'), 1)
  })

  test('find SQL of PostgreSQL', () => {
    for (const code of [
      "run('create function f() returns trigger language plpgsql as x')",
      "run('select pg_advisory_xact_lock(1)')",
      'sql`select 1 from x for update`',
      "run('set lock_timeout = 5')",
      `sql\`select ${value}::bigint\``,
      `run('alter table x alter column y type text collate "C"')`,
    ]) {
      assert.equal(words(code), 1, code)
      assert.equal(words(code, 'server/control/postgres/dialect.ts'), 0, code)
    }
    assert.equal(words("run('vacuum')", 'server/control/postgres/dialect.ts'), 0, 'both have this word')
    assert.equal(words("run('pragma x')", 'server/control/postgres/dialect.ts'), 1, 'each folder has its own')
  })

  test('ignore the folder itself, the lock of the data folder, comments and other words', () => {
    assert.equal(words("run('vacuum')", 'server/control/sqlite/dialect.ts'), 0)
    assert.equal(words("run('pragma journal_mode = memory')", 'server/telemetry/folder-lock.ts'), 0)
    assert.equal(words("run('vacuum')", 'bench/peers/postgresql.ts'), 0)
    for (const code of [
      '// pragma, vacuum and raise(abort) are words of SQLite',
      "const verdict = 'real'",
      "run(`alter table x add column verdict text check (verdict in ('noise', 'real'))`)",
      "run('create table x (score double precision not null)')",
      `const total = \`${value} +${value}\``,
      'sql`select 1 from x where a = 1 + 2`',
      "const sentence = 'The service waits for a realm.'",
    ]) {
      assert.equal(words(code), 0, code)
    }
  })

  test('find a file that depends on one database', () => {
    const imports = (path: string, to: string) =>
      findDatabaseImports(parseSources({ [path]: `import { openSqlite } from '${to}'` })).length
    assert.equal(imports('server/audit/log.ts', '../control/sqlite/sqlite.ts'), 1)
    assert.equal(imports('server/audit/log.db.test.ts', '../control/sqlite/sqlite.ts'), 1)
    assert.equal(imports('tests/scenario/a.test.ts', '../../server/control/sqlite/sqlite.ts'), 1)
    assert.equal(imports('bench/detection/due.ts', '../../server/control/sqlite/sqlite.ts'), 1)
    assert.equal(imports('server/audit/log.ts', '../control/postgres/postgres.ts'), 1)
    assert.equal(imports('server/control/control-address.ts', './sqlite/sqlite.ts'), 0)
    assert.equal(imports('tests/control-planes.ts', '../server/control/sqlite/sqlite.ts'), 0)
    assert.equal(imports('server/control/sqlite/sqlite.db.test.ts', './sqlite.ts'), 0)
  })
})

describe('the rules of cycles, barrels and unused files', () => {
  test('find a cycle, also through types and over several files', () => {
    const circle = parseSources({
      'a.ts': "import { b } from './b.ts'",
      'b.ts': "import type { C } from './c.ts'",
      'c.ts': "import { a } from './a.ts'",
      'd.ts': "import { a } from './a.ts'",
    })
    assert.deepEqual(places(findCycles(circle)), ['a.ts -> b.ts -> c.ts -> a.ts'])
    assert.deepEqual(findCycles(circle.filter(({ path }) => path !== 'c.ts')), [])
  })

  test('find a barrel by name and by content', () => {
    const files = parseSources({
      'server/query/index.ts': '// Parts.\nexport const a = 1',
      'server/query/parts.ts': "// Parts.\nexport { a } from './a.ts'\nexport * from './b.ts'\n",
      'server/query/again.ts': "// Parts.\nimport { a } from './a.ts'\nexport { a }\n",
      'server/query/honest.ts': "// Work.\nexport { a } from './a.ts'\nexport const b = 1\n",
    })
    assert.deepEqual(places(findBarrels(files)), [
      'server/query/index.ts',
      'server/query/parts.ts',
      'server/query/again.ts',
    ])
  })

  test('find files that only tests use, files that nothing uses, and support without a test', () => {
    const files = parseSources({
      'server/cli/lethe.ts': "import '../app.ts'",
      'server/app.ts': '',
      'server/lonely.ts': '',
      'server/tried.ts': '',
      'server/tried.test.ts': "import './tried.ts'",
      'server/core/manual-clock.ts': '',
    })
    assert.deepEqual(places(findDeadFiles(files, ['server/cli/lethe.ts'])), [
      'server/lonely.ts',
      'server/tried.ts',
      'server/core/manual-clock.ts',
    ])
  })

  test('find an import of a missing file', () => {
    assert.deepEqual(places(findLostImports(parseSources({ 'server/a.ts': "import './b.ts'" }))), [
      'server/a.ts -> server/b.ts',
    ])
  })
})

describe('the rules of words', () => {
  const calls = (path: string, code: string) => findForbiddenCalls(parseSources({ [path]: code })).length

  test('find time, waiting, randomness, environment and output', () => {
    for (const code of [
      'Date.now()',
      'new Date()',
      'new Date( )',
      'performance.now()',
      'process.hrtime.bigint()',
      'setTimeout(work, 5)',
      'setInterval(work, 5)',
      'AbortSignal.timeout(5)',
      'Math.random()',
      'process.env.HOME',
      "console.log('x')",
      '`text ${' + 'Date.now()} text`',
      "a / Date.now() / 'b'",
      'Date.now',
      'Date?.now()',
      "process['env']",
      'globalThis.process.env.HOME',
      'const { env } = process',
      "import { env } from 'node:process'",
      "import { setTimeout as wait } from 'node:timers/promises'",
      'const { random: chance } = Math',
      'const date = Date(5)',
      'this.#control.transaction().execute(work)',
      "import { statSync } from 'node:fs'",
    ]) {
      assert.equal(calls('server/query/logs.ts', code), 1, code)
    }
  })

  test('ignore comments and strings, and the files where a use is allowed', () => {
    assert.equal(calls('server/query/logs.ts', '// Date.now() is the caller’s business.'), 0)
    assert.equal(calls('server/query/logs.ts', "const hint = 'set process.env'; new Date(5)"), 0)
    assert.equal(calls('server/query/logs.ts', '/Date.now()/.test(text)'), 0)
    assert.equal(calls('server/query/logs.ts', "const a = 'it\\'s Date.now()' + b // Date.now()"), 0)
    assert.equal(calls('server/query/logs.ts', 'const a = b /* Date.now()\nDate.now() */ / c'), 0)
    assert.equal(
      calls('server/query/logs.ts', '`x ${' + "{ a: 'q' }.a + `Date.now() ${" + 'b}`} Date.now()`'),
      0,
    )
    assert.equal(calls('server/query/logs.ts', 'const a = /[/\'"]\\/Date.now()/g; b / c / d'), 0)
    assert.equal(calls('server/query/logs.ts', "type A = 'Date.now'; const b = { now: Date }"), 0)
    assert.equal(calls('server/core/clock.ts', 'Date.now()'), 0)
    assert.equal(calls('server/core/clock.ts', 'setTimeout(work, 5)'), 0)
    assert.equal(calls('server/worker/periodic.ts', 'setTimeout(work, 5)'), 1)
    assert.equal(calls('server/cli/lethe.ts', 'process.env'), 0)
    assert.equal(calls('server/query/logs.test.ts', 'Date.now()'), 0)
    assert.equal(calls('server/query/logs.test.ts', 'Math.random()'), 1)
  })

  test('find leftover notes, also in comments', () => {
    const note = `// ${'TO' + 'DO'}: later\n`
    assert.deepEqual(places(findLeftovers(parseSources({ 'a.ts': note }))), [`a.ts:1 ${'TO' + 'DO'}`])
    assert.deepEqual(findLeftovers(parseSources({ 'a.ts': '// A method of doing it.\n' })), [])
  })

  test('find a file that does not open with a sentence', () => {
    const mute = {
      'a.ts': 'export const a = 1\n',
      'b.ts': '\n// Late.\n',
      'c.ts': '//\nexport const c = 1\n',
      'd.ts': '// what it is\nexport const a = 1 // Here.\n',
    }
    const open = {
      'e.ts': '// What it is.\nexport const d = 1\n',
      'f.ts': '// What it is,\n// and more.\n\nexport const e = 1\n',
      'g.ts': '#!/usr/bin/env node\n// What it is.\n',
      'g.mjs': '#!/usr/bin/env node\n// What it is.\n',
      'h.ts': '/** What it is. */\nexport const g = 1\n',
    }
    assert.deepEqual(places(findMuteFiles(parseSources({ ...mute, ...open }))), [
      'a.ts',
      'b.ts',
      'c.ts',
      'd.ts',
    ])
  })

  test('find a path of one machine', () => {
    const home = ['', 'home', 'ada', 'lethe'].join('/')
    assert.deepEqual(places(findMachinePaths([{ path: 'a.md', text: `Look\nin ${home}.` }])), [
      `a.md:2 ${['', 'home', 'ada'].join('/')}`,
    ])
    assert.deepEqual(
      findMachinePaths([{ path: 'a.md', text: 'See /v1/logs and https://x.example/home/a.' }]),
      [],
    )
  })

  test('find a decision that is longer than a page, or one of the long ones that has grown', () => {
    const page = (path: string, words: number) => ({ path, text: 'word\n'.repeat(words) })
    const files = [
      page('docs/decisions/0001-a.md', 560),
      page('docs/decisions/0002-b.md', 561),
      page('docs/decisions/0003-c.md', 700),
      page('docs/decisions/0004-d.md', 701),
      page('docs/decisions/README.md', 2_000),
    ]
    const longer = { 'docs/decisions/0003-c.md': 700, 'docs/decisions/0004-d.md': 700 }
    assert.deepEqual(places(findLongDecisions(files, longer)), [
      'docs/decisions/0002-b.md',
      'docs/decisions/0004-d.md',
    ])
  })

  test('find an entry of the changelog that is longer than a line, or continues in the next', () => {
    const text = [
      '# Changelog',
      `An introduction, which may be longer. ${'word '.repeat(30)}`,
      '## 1.0.0',
      '### Reading',
      `- ${'é'.repeat(118)}`,
      `- ${'x'.repeat(119)}`,
      '- An entry that',
      '  goes on.',
      'A paragraph.',
      '',
    ].join('\n')
    assert.deepEqual(places(findLongChanges('CHANGELOG.md', text)), [
      'CHANGELOG.md:6',
      'CHANGELOG.md:8',
      'CHANGELOG.md:9',
    ])
    assert.deepEqual(places(findLongChanges('CHANGELOG.md', '- No version.\n  Goes on.')), ['CHANGELOG.md:2'])
  })

  test('find a code that nothing returns', () => {
    const files = parseSources({
      'server/a.ts': "throw new AppError('not_found')",
      'server/a.test.ts': "assert.equal(code, 'overloaded')",
      'server/b.ts': "// 'overloaded'\nconst text = 'it is overloaded'",
    })
    assert.deepEqual(places(findUnusedCodes(files, ['not_found', 'overloaded'])), [
      'contract/errors.ts overloaded',
    ])
  })
})

describe('the rule of sizes', () => {
  const lines = (count: number) => '  work()\n'.repeat(count)

  test('measures every form of function, header included', () => {
    const code = [
      'export async function declared<T>(',
      '  a: T,',
      '): Promise<void> {',
      '  if (a) {',
      '    work()',
      '  } else {',
      '    rest()',
      '  }',
      '}',
      'class Box {',
      '  #method(a: number): void {',
      '    const arrow = (b: number) => {',
      '      work(b)',
      '    }',
      '  }',
      '}',
      'route(http, {',
      '  scope: 1,',
      '  handle: async () =>',
      '    work(',
      '    ),',
      '})',
      'list.sort((a, b) =>',
      '  a - b)',
      '',
    ].join('\n')
    assert.deepEqual(functionLengths(parseSource('a.ts', code)), [
      ['declared', 9],
      ['#method', 5],
      ['arrow', 3],
      ['handle', 3],
      ['(a, b) =>', 2],
    ])
  })

  test('refuses a file or function above its limit', () => {
    const long = parseSources({
      'server/a.ts': `function long() {\n${lines(69)}}\n`,
      'server/b.ts': `${lines(401)}`,
      'server/c.ts': `function fits() {\n${lines(68)}}\n`,
      'server/d.test.ts': lines(900),
    })
    assert.deepEqual(measureSizes(long), {
      files: { 'server/b.ts': 401 },
      functions: { 'server/a.ts long': 71 },
    })
    assert.deepEqual(places(compareSizes(measureSizes(long), { files: {}, functions: {} })), [
      'server/b.ts',
      'server/a.ts long',
    ])
  })

  test('accepts listed files, refuses their growth, and reports entries that are no longer needed', () => {
    const now = { files: { a: 500 }, functions: {} }
    assert.deepEqual(compareSizes(now, { files: { a: 500 }, functions: {} }), [])
    assert.deepEqual(places(compareSizes(now, { files: { a: 499 }, functions: {} })), ['a'])
    assert.deepEqual(
      places(compareSizes({ files: {}, functions: {} }, { files: { a: 500 }, functions: {} })),
      ['a'],
    )
  })
})

test('a file that does not parse is an error, not a file without violations', () => {
  assert.throws(() => parseSource('a.ts', 'const = 1'), /a\.ts does not parse/)
})
