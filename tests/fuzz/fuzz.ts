// Random requests made from the OpenAPI document, for every operation and role: `npm run fuzz -- --requests
// 100000`. Ends with 1 where a response is a fault, differs from the document or has data of another
// organisation, and where the memory in use after a garbage collection has grown.
//
// npm run fuzz -- [--requests 20000] [--seed N]

import process from 'node:process'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startService } from '../scenario/service.ts'
import { FuzzRun } from './run.ts'

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
})
const [requests, seed] = [Number(values.requests), Number(values.seed)]
if (!Number.isSafeInteger(requests) || requests < 1 || !Number.isSafeInteger(seed)) {
  process.stderr.write('--requests and --seed are integers, --requests from 1.\n')
  process.exit(2)
}

/** How much the caches of a service may still grow after the first requests. */
const growthMaxBytes = 64 * 2 ** 20

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Bytes in use by JavaScript and its buffers. */
function inUse(): number {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const service = await startService({ settings: { LETHE_ENGINE_MEMORY_MB: '2048' } })
const run = await FuzzRun.begin(service, seed)
const begunMs = performance.now()
let early = 0
for (let i = 1; i <= requests; i++) {
  await run.step()
  if (i === Math.ceil(requests / 4)) early = inUse()
  if (i % 5000 === 0) {
    const { rss } = process.memoryUsage()
    process.stderr.write(
      `${i} requests, ${Math.round((1000 * i) / (performance.now() - begunMs))} a second, ${run.findings.size} findings, ${Math.round(rss / 2 ** 20)} MB resident\n`,
    )
  }
}
const grownBytes = inUse() - early
for (const line of run.report()) process.stdout.write(`${line}\n`)
const never = [...run.reached].filter(([, isReached]) => !isReached).map(([name]) => name)
const result = {
  requests,
  seed,
  seconds: Math.round((performance.now() - begunMs) / 1000),
  statuses: Object.fromEntries([...run.statuses].sort(([a], [b]) => a - b)),
  findings: run.findings.size,
  never_successful: never,
  grown_bytes_since_a_quarter: grownBytes,
}
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
const isWell = run.findings.size === 0 && grownBytes < growthMaxBytes
await service.stop()
process.exit(isWell ? 0 : 1)
