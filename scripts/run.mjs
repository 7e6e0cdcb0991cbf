// Runs one of our TypeScript programs on the Node that the project pins, whatever Node the machine
// has. Plain JavaScript, because the machine's own Node may be too old for type stripping. The
// dependencies are installed first where they are missing or the lock file has changed since, so every
// command works in a fresh clone.

import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stamp = join(modules, '.lethe-installed')
const nodeMajorMin = 24

/**
 * Where Node keeps our files without their types and as V8's code, by what is in them: a command
 * starts in half the time.
 */
const compiled = join(modules, '.cache', 'node')

/**
 * What Node is started with. The old space begins at 128 MB because from a smaller one V8 collects
 * garbage several times a second while bodies come in: each is memory outside its heap, of which it
 * expects to find some inside.
 */
const nodeFlags = JSON.parse(readFileSync(join(root, 'scripts', 'node-flags.json'), 'utf8'))

/**
 * Threads of the runtime for files, compression and the engine's statements. The engine has nine sessions,
 * and a statement under way holds a thread: with the usual four, the statements of one organisation would
 * hold up everybody's, whatever order they are queued in.
 */
const runtimeThreads = '14'

/** Installs when the lock file isn't the one that was last installed. */
function install() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  process.stderr.write('Installing dependencies (once, about half a minute) ...\n')
  // `npm ci` insists on lock entries for the optional binaries of every platform, which not every registry
  // offers; `install --no-save` takes the versions of the lock and leaves it untouched.
  const done = spawnSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (done.status !== 0) {
    process.stderr.write('npm install failed; its messages are above. Mend that and run the command again.\n')
    process.exit(done.status ?? 1)
  }
  writeFileSync(stamp, lock)
}

/**
 * The pinned runtime; where no package of it exists for this platform, the machine's own if it is new enough.
 */
function nodeBinary() {
  const pinned = join(modules, '.bin', 'node')
  if (existsSync(pinned)) return pinned
  if (Number(process.versions.node.split('.')[0]) >= nodeMajorMin) return process.execPath
  process.stderr.write(
    `Lethe needs Node ${nodeMajorMin} or newer. It brings its own on Linux; on this platform please install one.\n`,
  )
  process.exit(1)
}

/** Starts `program` with `args`, passes signals on, and ends as it ends. */
export function run(program, args) {
  install()
  const child = spawn(nodeBinary(), [...nodeFlags, join(root, program), ...args], {
    stdio: 'inherit',
    env: {
      NODE_COMPILE_CACHE: compiled,
      UV_THREADPOOL_SIZE: runtimeThreads,
      ...process.env,
      PATH: `${join(modules, '.bin')}:${process.env.PATH ?? ''}`,
    },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (signal !== null) process.removeAllListeners(signal)
    if (signal !== null) process.kill(process.pid, signal)
    else process.exit(code ?? 1)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [program, ...args] = process.argv.slice(2)
  run(program, args)
}
