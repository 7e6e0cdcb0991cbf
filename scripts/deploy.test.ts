// The files in deploy/ for systemd and containers: their settings exist, their commands do what the launcher
// expects, and systemd accepts the unit. No container is built here.

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
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Settings } from '../server/config/settings.ts'
import { readConfig } from '../server/config.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const unit = read('deploy/systemd/lethe.service')
const image = read('deploy/docker/Dockerfile')
const compose = read('deploy/docker/compose.yml')

const folder = mkdtempSync(join(tmpdir(), 'lethe-deploy-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('unit, image and Compose file use settings that exist, with values that the service accepts', () => {
  for (const [name, text] of Object.entries({ unit, image, compose })) {
    const given = [...text.matchAll(/\b(LETHE_[A-Z_]+)(?:=|: )"?([^\s"]+)/g)]
    assert.ok(given.length > 0, name)
    for (const [, setting = ''] of given) assert.ok(setting in Settings.shape, `${name}: ${setting}`)
    readConfig(Object.fromEntries(given.map(([, setting = '', value = '']) => [setting, value])))
  }
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

test('the image builds the console with a function that exists', async () => {
  const path = /import\('\/opt\/lethe\/(\S+)'\)/.exec(image)?.[1]
  assert.equal(path, 'server/http/console/console-build.ts')
  const { buildConsole } = await import('../server/http/console/console-build.ts')
  assert.equal(typeof buildConsole, 'function')
  assert.match(image, /const \{ buildConsole \} = /)
})

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

test('systemd accepts the unit', { skip: hasSystemd ? false : 'systemd-analyze is not installed' }, () => {
  const path = join(folder, 'lethe.service')
  writeFileSync(path, unit.replaceAll('/opt/lethe', root.replace(/\/$/, '')))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' })
  assert.equal(stderr, '')
  assert.equal(status, 0)
})
