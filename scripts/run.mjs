// Runs a TypeScript program of this project on the Node version that the project pins, whatever Node the
// machine has. Plain JavaScript, because the machine's own Node may be too old for type stripping.
// Dependencies are installed first where they are missing or the lock file has changed since the last
// installation, so that every command works in a fresh clone.

import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { limitsFor, supervise } from './supervisor.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stamp = join(modules, '.lethe-installed')
const nodeMajorMin = 24

/**
 * The cache in which Node stores our files without their types and as V8 bytecode, by their content: a
 * command starts in half the time.
 */
const compiled = join(modules, '.cache', 'node')

/**
 * Options of Node. The old space begins at 128 MB: with a smaller one, V8 collects garbage several times a
 * second while request bodies arrive, because their memory is outside its heap and it expects to free memory
 * inside.
 */
const nodeFlags = JSON.parse(readFileSync(join(root, 'scripts', 'node-flags.json'), 'utf8'))

/**
 * Threads of the runtime for files, compression and the engine's statements. The engine has ten sessions,
 * and a running statement occupies a thread: with the default of four, statements of one organisation would
 * block those of all others, in any queue order.
 */
const runtimeThreads = '14'

/** Installs when the lock file differs from the one that was installed last. */
function install() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  process.stderr.write('Installing dependencies (once, about half a minute) ...\n')
  // `npm ci` requires lock entries for the optional binaries of every platform, which not every registry has;
  // `install --no-save` uses the versions of the lock file and does not change it.
  const done = spawnSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (done.status !== 0) {
    process.stderr.write(
      'npm install failed; its messages are above. Fix the cause and run the command again.\n',
    )
    process.exit(done.status ?? 1)
  }
  writeFileSync(stamp, lock)
}

/**
 * Returns the pinned runtime. Where it has no package for this platform: the machine's own Node, if it is new
 * enough.
 */
function nodeBinary() {
  const pinned = join(modules, '.bin', 'node')
  if (existsSync(pinned)) return pinned
  if (Number(process.versions.node.split('.')[0]) >= nodeMajorMin) return process.execPath
  process.stderr.write(
    `Lethe needs Node ${nodeMajorMin} or newer. On Linux it installs its own; on this platform please install it yourself.\n`,
  )
  process.exit(1)
}

function start(program, args, stdio, more = {}) {
  return spawn(nodeBinary(), [...nodeFlags, join(root, program), ...args], {
    stdio,
    env: {
      NODE_COMPILE_CACHE: compiled,
      UV_THREADPOOL_SIZE: runtimeThreads,
      ...process.env,
      ...more,
      PATH: `${join(modules, '.bin')}:${process.env.PATH ?? ''}`,
    },
  })
}

/** Ends this process with the exit code or signal of the program. */
function endLike(code, signal) {
  if (signal === null) process.exit(code ?? 1)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/**
 * Starts `program` with `args`, forwards signals, and ends with the same exit code or signal. The service is
 * supervised: it is started again after a crash.
 */
export function run(program, args) {
  install()
  const isService = program === 'server/cli/lethe.ts' && args[0] === 'serve'
  const limits = isService ? limitsFor(process.env.LETHE_WATCHDOG_SECONDS) : null
  if (limits !== null) {
    supervise({
      start: (more) => start(program, args, ['inherit', 'inherit', 'inherit', 'ipc'], more),
      say: (sentence) => process.stderr.write(`lethe: ${sentence}\n`),
      onEnd: endLike,
      limits,
    })
    return
  }
  const child = start(program, args, 'inherit')
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', endLike)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [program, ...args] = process.argv.slice(2)
  run(program, args)
}
