// The service starts from the files that deploy/docker/Dockerfile copies, with the dependencies that it
// installs and the console that it builds. Without a container: in a folder, with links to the packages.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../fixtures.ts'
import { type SupervisedService, superviseService } from './supervised.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const image = readFileSync(join(root, 'deploy/docker/Dockerfile'), 'utf8')

/** The folder that stands for /opt/lethe of the image. */
const opt = join(temporaryFolder(), 'opt')
const cacheOfConsole = join(opt, 'node_modules', '.cache', 'console')

/** Links the packages that are not for development only. */
function linkPackages() {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>
  }
  for (const [path, { dev = false }] of [
    ...Object.entries(lock.packages),
    ['node_modules/.bin', {}] as const,
  ]) {
    if (dev || !/^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path)) continue
    mkdirSync(dirname(join(opt, path)), { recursive: true })
    // A package for another platform is not installed; the link to nothing is not followed.
    symlinkSync(join(root, path), join(opt, path))
  }
}

/** Runs a command of the image in the folder. */
function runInImage(command: string) {
  const { status, stderr } = spawnSync('sh', ['-c', command.replaceAll('/opt/lethe', opt)], {
    cwd: opt,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
}

let service: SupervisedService
before(async () => {
  for (const [, words = ''] of image.matchAll(/^COPY (?!--)(.+) \S+$/gm)) {
    for (const path of words.split(' ')) cpSync(join(root, path), join(opt, path), { recursive: true })
  }
  linkPackages()
  runInImage(/&& (sha256sum .+)$/m.exec(image)?.[1] ?? assert.fail('no stamp'))
  runInImage(/^RUN (node_modules\/\.bin\/node (?:.*\\\n)*.*)$/m.exec(image)?.[1] ?? assert.fail('no console'))
  service = await superviseService(
    { LETHE_DATA_DIR: join(temporaryFolder(), 'data') },
    join(opt, 'scripts', 'lethe.mjs'),
  )
})
after(() => service?.stop())

test('the service serves the console that the image has, and builds no other', {
  timeout: 120_000,
}, async () => {
  const [built, ...more] = readdirSync(cacheOfConsole)
  assert.match(built ?? '', /^[0-9a-f]{32}$/)
  assert.deepEqual(more, [])
  const { status, text } = await service.send('GET', '/console/', null)
  assert.equal(status, 200)
  assert.match(text, /\/console\/assets\//)
  assert.deepEqual(readdirSync(cacheOfConsole), [built])
  assert.equal(service.said(), '', 'nothing was installed')

  service.stop()
  await service.outputEnded
})
