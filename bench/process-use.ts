// Memory, CPU and written bytes of other processes, as the kernel counts them in /proc. Linux only.

import { readFileSync } from 'node:fs'

/**
 * Megabytes of 1,000,000 bytes: `VmRSS` is the current value, `VmHWM` the maximum so far. Throws where the
 * process has ended.
 */
export function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const bytes = bytesAt(`/proc/${pid}/status`, field)
  if (bytes === 0) throw new Error(`Process ${pid} has no memory: it has ended.`)
  return Math.round(bytes / 1e6)
}

/**
 * Samples the memory of a process and its children twice a second; shared memory counts once. The function
 * that it returns ends this and returns the maximum in bytes.
 */
export function watchMemory(pid: number): () => number {
  let peakBytes = 0
  const look = () => {
    const ids = processTree(pid)
    // With one process, the kernel itself has the peak.
    const [field, file] = ids.length === 1 ? ['VmHWM', 'status'] : ['Pss', 'smaps_rollup']
    const bytes = ids.map((id) => bytesAt(`/proc/${id}/${file}`, field))
    peakBytes = Math.max(
      peakBytes,
      bytes.reduce((sum, each) => sum + each, 0),
    )
  }
  const timer = setInterval(look, 500)
  return () => {
    clearInterval(timer)
    look()
    return peakBytes
  }
}

interface Used {
  /** Bytes of dirtied pages, as the kernel counts them. */
  readonly writtenBytes: number
  readonly cpuSeconds: number
}

/** The kernel counts processor time in hundredths of a second. */
const ticksPerSecond = 100

/** What a process and its children have used so far, without children that have ended. */
export function usedBy(pid: number): Used {
  let writtenBytes = 0
  let ticks = 0
  for (const id of processTree(pid)) {
    writtenBytes += Number(/^write_bytes: (\d+)/m.exec(textAt(`/proc/${id}/io`))?.[1] ?? 0)
    // After the name, which may contain anything, utime and stime are the 12th and 13th field.
    const fields = textAt(`/proc/${id}/stat`)
      .replace(/^.*\)\s/s, '')
      .split(' ')
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }
  return { writtenBytes, cpuSeconds: ticks / ticksPerSecond }
}

/** A process and all processes below it that exist now. */
function processTree(pid: number): number[] {
  const children = textAt(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(processTree)]
}

/** The kernel writes kibibytes; 0 where the process has ended. */
function bytesAt(path: string, field: string): number {
  return 1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(textAt(path))?.[1] ?? 0)
}

function textAt(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
