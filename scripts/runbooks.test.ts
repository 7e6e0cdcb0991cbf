// docs/runbooks.md agrees with the program: its commands exist, its sentences are those that the service
// writes, its metrics are served, and every alert names a section.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { buildProgram } from '../server/cli/program.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const page = read('docs/runbooks.md')
const flat = page.replaceAll(/\s+/g, ' ')
const folder = mkdtempSync(join(tmpdir(), 'lethe-runbooks-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** The words of each `./lethe` command of the page, without comments. */
const commands = [
  ...flat.matchAll(
    /\.\/lethe ((?:[a-z]+|--?[a-z-]+|[A-Z_]{3,}|[\d-]+T[\d:]+Z)(?: (?:[a-z]+\b(?!\()|--[a-z-]+|[A-Z_]{3,}|[\d-]+T[\d:]+Z))*)/g,
  ),
].map(([, words = '']) => words.split(' '))

/** The deepest command that the words begin with, and the options after it. */
function find(words: readonly string[]): { command: Command; options: readonly string[] } {
  let command: Command = buildProgram()
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word)
    if (next === undefined) break
    command = next
  }
  return { command, options: words.filter((word) => word.startsWith('--')) }
}

test('each command of the page exists, with its options', () => {
  assert.ok(commands.length > 15)
  for (const words of commands) {
    const { command, options } = find(words)
    assert.ok(command.commands.length === 0, `lethe ${words.join(' ')}`)
    for (const option of options) {
      const isKnown = command.options.some(({ long }) => long === option)
      assert.ok(isKnown, `lethe ${command.name()} has no ${option}`)
    }
  }
})

test('each sentence that the page quotes is one that the program writes', () => {
  const sources = globSync(['server/**/*.ts', 'scripts/supervisor.mjs'], { cwd: root })
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path) => read(path).replaceAll(/\$\{[^}]*\}/g, '…'))
    .join('\n')
  const quoted = [...flat.matchAll(/(?<!:)"([^"]{12,})"/g)].map(([, text = '']) => text)
  assert.ok(quoted.length >= 7)
  for (const text of quoted) {
    const written = text.replace('12 s: SIGABRT ended it', '… s: …')
    assert.ok(sources.includes(written), text)
  }
})

test('each metric of the page is served', () => {
  const served = read('server/metrics.ts')
  for (const [name] of page.matchAll(/\blethe_\w+[a-z]\b/g)) assert.ok(served.includes(`'${name}'`), name)
})

test('each alert names a section that its document has', () => {
  const rules = read('deploy/prometheus/lethe-alerts.yml')
  const sections = [...rules.matchAll(/^ +runbook: (\S+)#(\S+)$/gm)]
  assert.equal(sections.length, rules.match(/- alert: /g)?.length)
  const own = [...page.matchAll(/\]\(#(\S+?)\)/g)].map(([, anchor]) => ['', 'docs/runbooks.md', anchor])
  for (const [, path = '', anchor = ''] of [...sections, ...own]) {
    const titles = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)
    const anchors = titles.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    )
    assert.ok(anchors.includes(anchor), `${path} has no section #${anchor}`)
  }
})

/** Runs commands of the page in a shell, as they are written. */
function paste(text: string): Promise<{ code: unknown; said: string }> {
  const env = {
    ...process.env,
    LETHE_DATA_DIR: join(folder, 'data'),
    LETHE_BACKUP_DIR: join(folder, 'backups'),
  }
  return new Promise((resolve) =>
    execFile('bash', ['-e', '-c', text], { cwd: root, env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, said: out + err }),
    ),
  )
}

test('the commands for a lost key, the clock and the list of backups work as they are written', async () => {
  assert.equal((await paste('./lethe org create acme && ./lethe keys rotate')).code, 0)
  rmSync(join(folder, 'data', 'signing.key'))
  const lost = await paste('./lethe keys rotate')
  assert.equal(lost.code, 1)
  assert.match(lost.said, /The signing keys are sealed, and \S+signing\.key is not there/)

  const block = /^ +(\.\/lethe keys rotate --lost-key\n +\.\/lethe keys list)$/m.exec(page)?.[1]
  const { code, said } = await paste(block ?? assert.fail('the page has no block for a lost key'))
  assert.equal(code, 0, said)
  assert.match(said, /retired[\s\S]*signs|signs[\s\S]*retired/)
  assert.ok(existsSync(join(folder, 'data', 'signing.key')))
  const rest = await paste(
    './lethe clock show && ./lethe clock confirm && ./lethe backup list && ./lethe ledger verify',
  )
  assert.equal(rest.code, 0, rest.said)
})
