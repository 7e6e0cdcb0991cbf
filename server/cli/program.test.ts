// The tree of commands: each has an example with existing commands and options, and prints JSON on request
// where it prints a result. Building the tree loads nothing of the service.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { deletionReasons, deletionStatuses } from '../../contract/deletion/requests.ts'
import { methodKeys } from '../../contract/detection/methods.ts'
import { roles } from '../../contract/role.ts'
import { runLethe } from '../../tests/scenario/command-line.ts'
import { readSources } from '../../tests/tidy/source-file.ts'
import { methodChoices, reasonChoices, roleChoices, statusChoices } from './commands/choices.ts'
import { addCompletion } from './completion.ts'
import { buildProgram } from './program.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

function helpOf(command: Command): string {
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
  return help
}

/** They print no result, or one with its own format. */
const withoutJson = ['lethe demo', 'lethe ledger export', 'lethe audit export', 'lethe deletions certificate']

/** `list` is the default command of its noun. */
function isExampleOf(path: string, words: string): boolean {
  return `lethe ${words}`.startsWith(path.replace(/^(lethe (?:anomalies|incidents)) list$/, '$1'))
}

describe('every command', () => {
  for (const command of leavesOf(buildProgram())) {
    const path = pathOf(command)
    test(`${path} has a description, and examples that parse`, () => {
      assert.notEqual(command.description(), '')
      const [, examples = ''] = helpOf(command).split(/\nExamples?:\n/)
      const lines = examples
        .replaceAll(/\\\n\s*/g, '')
        .split('\n')
        .filter((line) => line.includes('lethe '))
      assert.ok(lines.length > 0, 'there is no example')
      for (const line of lines) {
        const [, words = ''] = /(?<![/\w])lethe (.*)/.exec(line) ?? []
        assert.ok(isExampleOf(path, words), line)
        const known = command.options.flatMap(({ long, negate, short }) => [
          long,
          short,
          negate ? long : null,
        ])
        for (const option of words.match(/(?<= )--?[a-z][a-z-]*/g) ?? []) {
          assert.ok(known.includes(option), `${line}: there is no ${option}`)
        }
      }
    })

    test(`${path} has --json`, () => {
      const takesJson = command.options.some(({ long }) => long === '--json')
      assert.equal(takesJson, !withoutJson.includes(path))
    })
  }
})

/** The program as it runs, with completion. */
const whole = buildProgram()
addCompletion(whole)

/** Returns the command that the words name, and the words after it. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command: Command = whole
  for (const [i, word] of words.entries()) {
    const next = command.commands.find((one) => one.name() === word)
    if (next === undefined) return { command, rest: words.slice(i) }
    command = next
  }
  return { command, rest: [] }
}

test('README and docs name commands and options that exist, and never a package of a registry', () => {
  let found = 0
  for (const path of ['README.md', ...globSync('docs/*.md', { cwd: root })]) {
    const text = readFileSync(join(root, path), 'utf8')
    assert.doesNotMatch(text, /\bnpx (?:--\S+ )*lethe|npm exec/, path)
    for (const match of text.matchAll(/\blethe ((?:[a-z-]+|<\w+>|[A-Z]+)\b[^`\n|)#;]*)/g)) {
      const [mention, written = ''] = match
      if (!/[`./$(]/.test(text.charAt(match.index - 1))) continue
      const { command, rest } = commandOf(written.trim().split(/\s+/))
      assert.notEqual(command.parent, null, `${path}: ${mention}`)
      for (const option of rest.filter((word) => /^--[a-z]/.test(word))) {
        const known = command.options.some(({ long }) => long === option)
        assert.ok(known, `${path}: ${pathOf(command)} has no ${option}`)
      }
      found++
    }
  }
  assert.ok(found > 25, `${found} mentions`)
})

test('the shell completes commands, options and their values', async () => {
  const offers = async (...words: string[]) => {
    const { out } = await runLethe({ PATH: process.env.PATH }, ['complete', '--', ...words])
    return out.split('\n').map((line) => line.split('\t')[0])
  }
  assert.ok((await offers('')).includes('deletions'))
  assert.deepEqual((await offers('org', '')).slice(0, 2), ['create', 'list'])
  assert.ok((await offers('erase', 'range', '--')).includes('--until'))
  assert.deepEqual((await offers('token', 'create', '--role', 'o')).slice(0, 1), ['owner'])
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out } = await runLethe({ PATH: process.env.PATH }, ['completion', shell])
    assert.deepEqual([code, out.includes('lethe complete --')], [0, true], shell)
  }
})

test('the values that options offer are those of the contract', () => {
  assert.deepEqual(roleChoices, roles)
  assert.deepEqual(methodChoices, methodKeys)
  assert.deepEqual(statusChoices, deletionStatuses)
  assert.deepEqual(reasonChoices, deletionReasons)
})

test('building the tree loads neither the service, nor the contract, nor a schema', () => {
  const sources = new Map(readSources(root).map((source) => [source.path, source]))
  const loaded = new Set(['server/cli/lethe.ts'])
  const outside = new Set<string>()
  for (const path of loaded) {
    const source = sources.get(path)
    assert.ok(source, path)
    for (const { isOwn, isTypeOnly, isDynamic, target } of source.imports) {
      if (isTypeOnly || (isDynamic && path !== 'server/cli/run.ts')) continue
      if (isOwn) loaded.add(normalize(target))
      else outside.add(target)
    }
  }
  assert.deepEqual(
    [...loaded].filter((path) => !/^server\/cli\/(?:[a-z]+|(?:commands|client)\/[a-z]+)\.ts$/.test(path)),
    ['server/core/process/version.ts'],
  )
  assert.deepEqual([...outside].sort(), ['@bomb.sh/tab/commander', 'commander'])
  for (const heavy of ['client/api', 'client/erase', 'serve', 'backup', 'detect', 'administer']) {
    assert.ok(!loaded.has(join('server/cli', `${heavy}.ts`)), heavy)
  }
})
