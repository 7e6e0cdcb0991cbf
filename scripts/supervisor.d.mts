// The types of supervisor.mjs, for its tests.

import type { ChildProcess } from 'node:child_process'

interface Limits {
  readonly tickMs: number
  readonly asleepTicksMax: number
  readonly silentTicksMax: number
  readonly pausesMs: readonly number[]
  readonly recoveredMs: number
}

export const usualLimits: Limits

export function limitsFor(setting: string | undefined): Limits | null

export function createWatch(limits: Pick<Limits, 'asleepTicksMax' | 'silentTicksMax'>): {
  sign(): void
  tick(mainThread: { readonly state: string; readonly cpu: number }): string | null
}

export function supervise(options: {
  start(env: Readonly<Record<string, string>>): ChildProcess
  say(sentence: string): void
  onEnd(code: number | null, signal: NodeJS.Signals | null): void
  readonly limits?: Limits
}): void
