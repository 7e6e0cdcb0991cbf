// The tree of commands: each has an example that names commands and options that exist, answers in JSON where it
// answers at all, and building the tree loads nothing of the service.

import assert from 'node:assert/strict'
import { dirname, join, normalize } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { deletionReasons, deletionStatuses } from '../../contract/deletion.ts'
import { methodKeys } from '../../contract/detection-methods.ts'
import { roles } from '../../contract/tenancy.ts'
import { readSources } from '../../tests/tidy/source-file.ts'
import { methodChoices, reasonChoices, roleChoices, statusChoices } from './commands/choices.ts'
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

/** What they print is no answer, or has a form of its own. */
const withoutJson = ['lethe demo', 'lethe ledger export', 'lethe audit export', 'lethe deletions certificate']

describe('every command', () => {
  for (const command of leavesOf(buildProgram())) {
    const path = pathOf(command)
    test(`${path} says what it does, by examples that it takes`, () => {
      assert.notEqual(command.description(), '')
      const [, examples = ''] = helpOf(command).split(/\nExamples?:\n/)
      const lines = examples.split('\n').filter((line) => line.includes('lethe '))
      assert.ok(lines.length > 0, 'there is no example')
      for (const line of lines) {
        const [, words = ''] = /(?<![/\w])lethe (.*)/.exec(line) ?? []
        assert.ok(`lethe ${words}`.startsWith(path) || path === 'lethe anomalies list', line)
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

    test(`${path} answers programs in JSON`, () => {
      const takesJson = command.options.some(({ long }) => long === '--json')
      assert.equal(takesJson, !withoutJson.includes(path))
    })
  }
})

test('the values that options offer are those of the contract', () => {
  assert.deepEqual(roleChoices, roles)
  assert.deepEqual(methodChoices, methodKeys)
  assert.deepEqual(statusChoices, deletionStatuses)
  assert.deepEqual(reasonChoices, deletionReasons)
})

test('the tree and its start load neither the service, nor the contract, nor a schema', () => {
  const sources = new Map(readSources(root).map((source) => [source.path, source]))
  const loaded = new Set(['server/cli/lethe.ts'])
  const outside = new Set<string>()
  for (const path of loaded) {
    const source = sources.get(path)
    assert.ok(source, path)
    for (const { isOwn, isTypeOnly, isDynamic, target } of source.imports) {
      if (isTypeOnly || (isDynamic && path !== 'server/cli/lethe.ts')) continue
      if (isOwn) loaded.add(normalize(target))
      else outside.add(target)
    }
  }
  assert.deepEqual(
    [...loaded].filter((path) => !/^server\/cli\/(?:[a-z]+|(?:commands|client)\/[a-z]+)\.ts$/.test(path)),
    ['server/core/version.ts'],
  )
  assert.deepEqual([...outside].sort(), ['@bomb.sh/tab/commander', 'commander'])
  for (const heavy of ['client/api', 'client/erase', 'serve', 'backup', 'detect', 'administer']) {
    assert.ok(!loaded.has(join('server/cli', `${heavy}.ts`)), heavy)
  }
})
