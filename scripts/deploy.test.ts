// The files in deploy/ for systemd and containers: their settings exist, their commands do what the launcher
// expects, and systemd accepts the unit. tests/scenario/image.test.ts starts the service from what the image
// copies. No container is built here.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Settings } from '../server/config/settings.ts'
import { readConfig } from '../server/config.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const unit = read('deploy/systemd/lethe.service')
const image = read('deploy/docker/Dockerfile')
const compose = read('deploy/docker/compose.yml')
const dropInPath = 'lethe.service.d/postgresql.conf'
const dropIn = read(`deploy/systemd/${dropInPath}`)
const composePostgres = read('deploy/docker/compose.postgres.yml')

const folder = mkdtempSync(join(tmpdir(), 'lethe-deploy-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const every = { unit, dropIn, image, compose, composePostgres }

/** The settings that a file gives to the service. The file of the password is one of this test. */
function settingsIn(text: string): Record<string, string> {
  const given = [...text.matchAll(/\b(LETHE_[A-Z_]+)(?:=|: )"?([^\s"]+)/g)]
  const settings = Object.fromEntries(given.map(([, setting = '', value = '']) => [setting, value]))
  if (settings.LETHE_CONTROL_PASSWORD_FILE === undefined) return settings
  const path = join(folder, 'control_password')
  writeFileSync(path, 'p4ssw0rd\n')
  return { ...settings, LETHE_CONTROL_PASSWORD_FILE: path }
}

test('every file uses settings that exist, with values that the service accepts', () => {
  for (const [name, text] of Object.entries(every)) {
    const settings = settingsIn(text)
    assert.ok(Object.keys(settings).length > 0, name)
    readConfig(settings)
  }
})

test('every setting that a file or the page about running it names exists', () => {
  for (const [name, text] of Object.entries({ ...every, page: read('docs/operating.md') })) {
    for (const [setting] of text.matchAll(/\bLETHE_[A-Z_]*[A-Z]\b/g)) {
      assert.ok(setting in Settings.shape || ofClients.has(setting), `${name}: ${setting}`)
    }
  }
})

/** Settings of the commands that are clients; a test of the page reads them from the code. */
const ofClients = new Set(['LETHE_URL', 'LETHE_TOKEN', 'LETHE_CONFIG'])

test('no file has a password: it is read from a file that the service alone gets', () => {
  const { control } = readConfig(settingsIn(composePostgres))
  assert.equal(control.kind === 'postgres' && control.server.password, 'p4ssw0rd')
  for (const [name, text] of Object.entries(every)) {
    assert.doesNotMatch(text, /postgres(?:ql)?:\/\/[^\s@/]+:[^\s@/]+@/, name)
    assert.doesNotMatch(text, /PASSWORD(?:=|: )/, name)
  }
  const credential = /^LoadCredential=(\w+):\/etc\/lethe\/\1$/m.exec(dropIn)?.[1] ?? 'none'
  assert.match(dropIn, new RegExp(`^Environment=LETHE_CONTROL_PASSWORD_FILE=%d/${credential}$`, 'm'))
  const [, secret = ''] = /LETHE_CONTROL_PASSWORD_FILE: \/run\/secrets\/(\w+)/.exec(composePostgres) ?? []
  const both = new RegExp(`^    secrets: \\[${secret}\\]$`, 'gm')
  assert.equal(composePostgres.match(both)?.length, 2, 'the service and the database have it')
  const [, file = ''] = new RegExp(`^  ${secret}:\\n    file: \\./(\\S+)$`, 'm').exec(composePostgres) ?? []
  const secrets = `deploy/docker/${dirname(file)}`
  assert.ok(read('.gitignore').split('\n').includes(`${secrets}/`))
  assert.ok(read('.dockerignore').split('\n').includes(secrets))
})

test('containers listen on loopback alone, with a root file system that they can’t write to', () => {
  for (const [name, text] of Object.entries({ compose, composePostgres })) {
    for (const [, published = ''] of text.matchAll(/^ {6}- "([\d.:]+:\d+)"$/gm)) {
      assert.match(published, /^127\.0\.0\.1:/, name)
    }
    assert.match(text, /^ {4}read_only: true$/m, name)
  }
  assert.doesNotMatch(composePostgres, /^ {4}ports:/m)
  assert.match(composePostgres, /^ {2}control:\n {4}internal: true$/m)
})

test('the image copies what the service runs from, and every path that it copies exists', () => {
  const copied = [...image.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
  for (const path of copied) assert.ok(existsSync(join(root, path)), path)
  for (const path of [
    'package.json',
    'package-lock.json',
    'lethe',
    'scripts',
    'contract',
    'server',
    'console',
  ]) {
    assert.ok(copied.includes(path), path)
  }
})

test('the launcher accepts the stamp that the image writes, and installs nothing', () => {
  const command = /&& (sha256sum .+)$/m.exec(image)?.[1]
  assert.ok(command)
  mkdirSync(join(folder, 'node_modules'))
  copyFileSync(join(root, 'package-lock.json'), join(folder, 'package-lock.json'))
  assert.equal(spawnSync('sh', ['-c', command], { cwd: folder }).status, 0)
  const expected = createHash('sha256').update(read('package-lock.json')).digest('hex')
  assert.equal(readFileSync(join(folder, 'node_modules', '.lethe-installed'), 'utf8'), expected)
})

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

test('systemd accepts the unit', { skip: hasSystemd ? false : 'systemd-analyze is not installed' }, () => {
  const path = join(folder, 'lethe.service')
  writeFileSync(path, unit.replaceAll('/opt/lethe', root.replace(/\/$/, '')))
  mkdirSync(join(folder, 'lethe.service.d'))
  writeFileSync(join(folder, dropInPath), dropIn)
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' })
  assert.equal(stderr, '')
  assert.equal(status, 0)
  // A mistake in the part is reported too, so it is read.
  writeFileSync(join(folder, dropInPath), `${dropIn}NoSuchThing=yes\n`)
  assert.match(spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' }).stderr, /NoSuchThing/)
})
