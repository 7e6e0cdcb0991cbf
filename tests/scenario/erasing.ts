// Shared by scenarios of erasing: minutes of the sample telemetry by their number, the deletion request in a
// response, and a barrier at which erasures wait, so that a test can check the state before anything is
// erased.

import assert from 'node:assert/strict'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import type { Answer, Service, Tenant } from './service.ts'
import { minuteNs, mondayNs, readSample } from './telemetry.ts'

export const deletionsUrl = '/usage/storage/deletions'

/** Start of a minute of Monday, in nanoseconds; minute 0 is midnight. */
export const minute = (number: number): bigint => mondayNs + BigInt(number) * minuteNs
/** The same instant as text on the wire. */
export const instant = (number: number): string => formatInstant(minute(number))

/** Returns the deletion request of a response, which must have this status. */
export function requestIn(answer: Answer, status: number): DeletionRequest {
  assert.equal(answer.status, status, answer.text)
  return DeletionRequest.parse(JSON.parse(answer.text))
}

/** The minutes whose log record an organisation can read, in ascending order. */
export async function minutesOf(service: Service, tenant: Tenant): Promise<number[]> {
  const { logs } = await readSample(service, `${tenant}/viewer`)
  return logs.map(minuteIn).reverse()
}

/** The same for every signal; fails where a signal has other minutes. */
export async function minutesOfEverySignal(service: Service, tenant: Tenant): Promise<number[]> {
  const { logs, readings, spans } = await readSample(service, `${tenant}/viewer`)
  const minutes = logs.map(minuteIn).reverse()
  assert.deepEqual(spans.map(minuteIn).reverse(), minutes)
  assert.deepEqual(readings.map(minuteIn), minutes)
  return minutes
}

const minuteIn = ({ time }: { time: string }) => Number(time.slice(14, 16))

/** While it is closed, every erasure waits at it before it acts. Open at first. */
export class Barrier {
  #opened: Promise<void> | null = null
  #open = () => {}

  /** The failpoint to pass to the service; erasures wait in it. */
  readonly failpoint: Failpoint = async (name) => {
    if (name === 'fenced') await this.#opened
  }

  close(): void {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#opened = null
    this.#open()
  }
}
