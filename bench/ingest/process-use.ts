// Memory and CPU of another process, as the kernel counts them in /proc. Linux only.

import { readFileSync } from 'node:fs'

/**
 * Megabytes of 1,000,000 bytes: `VmRSS` is the current value, `VmHWM` the maximum so far. Throws where the
 * process has ended.
 */
export function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
  if (kibibytes === undefined) throw new Error(`Process ${pid} has no memory: it has ended.`)
  return Math.round((Number(kibibytes) * 1024) / 1e6)
}

/**
 * User and system time of the process so far, with a resolution of a hundredth. Throws where the process has
 * ended.
 */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
