// The blocks of the README, pasted one after the other: the service in one terminal, everything else in
// another, in a folder like that of the project, with its own data folder, home and ports. The blocks of
// docs/deletion.md follow in the same terminal. All blocks run as they are written; those that are not run
// are listed here.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The block that gets its own terminal. */
const service = 'npm start\n'

/** Beginnings of blocks that are not run, and why. */
const notRun: Readonly<Record<string, string>> = {
  'npm run demo':
    'two weeks of telemetry take minutes, and the demo has other tests; `npm test` runs this test',
}

const folder = temporaryFolder()
const clone = join(folder, 'lethe')
let terminal: ChildProcess | null = null

after(async () => {
  if (terminal?.pid !== undefined && terminal.exitCode === null) {
    process.kill(-terminal.pid, 'SIGTERM')
    await once(terminal, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
})

function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/**
 * A folder like that of the project, for the files that the blocks write. Its large folders are links,
 * because Node would compile every file of a copy again.
 */
function makeClone(): void {
  mkdirSync(clone)
  for (const path of ['package.json', 'package-lock.json', 'lethe', 'scripts']) {
    cpSync(join(root, path), join(clone, path), { recursive: true })
  }
  for (const path of ['contract', 'server', 'node_modules']) symlinkSync(join(root, path), join(clone, path))
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  return typeof address === 'object' && address !== null ? address.port : assert.fail('There is no port.')
}

async function environment(): Promise<Record<string, string | undefined>> {
  return {
    PATH: process.env.PATH,
    HOME: join(folder, 'home'),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    LETHE_DATA_DIR: join(folder, 'data'),
    LETHE_PORT: String(await freePort()),
    LETHE_GRPC_PORT: '0',
    LETHE_ENGINE_MEMORY_MB: '1024',
  }
}

/** Resolves when the service is ready; fails where it ends before. */
async function startInTerminal(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const child = spawn('bash', ['-c', service], { cwd: clone, env, detached: true, stdio: 'pipe' })
  terminal = child
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk))
  await waitFor(
    async () => {
      assert.equal(child.exitCode, null, `npm start ended:\n${printed}`)
      const answer = await fetch(`http://127.0.0.1:${env.LETHE_PORT}/readyz`).catch(() => null)
      return answer?.status
    },
    (status) => status === 200,
  )
}

/** Runs blocks in one shell, as a person pastes them. */
function paste(
  blocks: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ code: unknown; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile('bash', ['-e', '-s'], { cwd: clone, env }, (error, out, err) =>
      resolve({ code: error === null ? 0 : error.code, out, err }),
    )
    child.stdin?.end(blocks.join('\n'))
  })
}

test('pasting the README and docs/deletion.md block by block stores a log record, erases and gives valid certificates', async () => {
  const blocks = blocksOf(readFileSync(join(root, 'README.md'), 'utf8'))
  for (const begin of Object.keys(notRun)) {
    assert.ok(
      blocks.some((block) => block.startsWith(begin)),
      `the block ${begin} no longer exists`,
    )
  }
  const wanted = blocks.filter((block) => !Object.keys(notRun).some((begin) => block.startsWith(begin)))
  assert.equal(wanted[0], service, 'the first block starts the service')
  makeClone()
  const env = await environment()
  await startInTerminal(env)
  const more = blocksOf(readFileSync(join(root, 'docs', 'deletion.md'), 'utf8'))
  const { code, err, out } = await paste([...wanted.slice(1), ...more], env)
  assert.equal(code, 0, `${out}\n${err}`)
  assert.doesNotMatch(err, /curl: |lethe: |error/i)
  assert.match(out, /"tenant_id":"default"/)
  assert.match(out, /"body":"paid"/)
  assert.match(out, /"schedule_minutes":10/)
  assert.match(out, /Nothing is erased/)
  assert.match(out, /completed {2}100 %/)
  assert.match(out, /"scope":"range"/)
  assert.equal(out.match(/certificate\.json: the certificate is valid/g)?.length, 2)
  assert.match(readFileSync(join(clone, 'certificate.html'), 'utf8'), /<html/i)
})
