// What clients do in the bench of the control plane. Each call is one request that must succeed, or one
// erasure; clients repeat it in a closed loop, each with something of its own where a load changes something.

import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from '../ingest/service.ts'

/** What a client does again and again. */
export type Call = () => Promise<void>

export interface Load {
  readonly name: string
  readonly clients: number
  /** Whether a client asks again and again until its work is done, so that statements count the asking. */
  readonly polls?: boolean
  /** Prepares a client and returns its call. */
  readonly client: (service: Service, client: number) => Promise<Call>
}

const agent = new Agent({ keepAlive: true })

interface Answer {
  readonly status: number
  readonly body: string
}

function ask(
  { address }: Pick<Service, 'address'>,
  secret: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      `${address}${path}`,
      {
        method,
        agent,
        headers: {
          authorization: `Bearer ${secret}`,
          ...(text !== undefined && { 'content-type': 'application/json' }),
        },
      },
      (answer) => {
        let read = ''
        answer.setEncoding('utf8').on('data', (part) => {
          read += part
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: read }))
        answer.on('error', reject)
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

async function expect(
  wanted: number,
  ...[service, secret, method, path, body]: Parameters<typeof ask>
): Promise<string> {
  const answer = await ask(service, secret, method, path, body)
  if (answer.status === wanted) return answer.body
  throw new Error(`${method} ${path} returned ${answer.status}: ${answer.body.slice(0, 300)}`)
}

/** Organisations of a service have the names org-0, org-1 and so on. */
const secretOf = ({ secrets }: Service, client: number) => secrets[client % secrets.length] ?? ''

const detectors = '/anomalies/detectors'
const deletions = '/usage/storage/deletions'

/** How long a client waits between two looks at its erasure, milliseconds. */
const pollMs = 20

export const loads: readonly Load[] = [
  {
    name: 'GET /me',
    clients: 8,
    client: async (service, client) => async () => {
      await expect(200, service, secretOf(service, client), 'GET', '/me')
    },
  },
  {
    name: 'GET /anomalies/detectors',
    clients: 8,
    client: async (service, client) => async () => {
      await expect(200, service, secretOf(service, client), 'GET', detectors)
    },
  },
  {
    name: 'PATCH of a detector, with its audit entry',
    clients: 8,
    client: async (service, client) => {
      const secret = secretOf(service, client)
      const listed = JSON.parse(await expect(200, service, secret, 'GET', detectors))
      const { id } = listed.items[client % listed.items.length]
      let enabled = false
      return async () => {
        await expect(200, service, secret, 'PATCH', `${detectors}/${id}`, { enabled })
        enabled = !enabled
      }
    },
  },
  {
    name: 'the deletion policy again, with its audit entry',
    clients: 8,
    client: async (service, client) => async () => {
      const path = '/usage/storage/deletion-policy'
      await expect(200, service, secretOf(service, client), 'PUT', path, { approval: 'none' })
    },
  },
  { name: 'ingest of one log record', clients: 8, client: sender },
  { name: 'ingest of one log record, many senders', clients: 128, client: sender },
  {
    // An organisation may request 400 without a pause, which is more than a run of three rounds needs.
    name: 'an erasure, from request to completion',
    clients: 4,
    polls: true,
    client: async (service, client) => {
      const secret = secretOf(service, client)
      let turn = 0
      return async () => {
        const range_end = new Date(firstMs + ++turn * 1000).toISOString()
        const body = { scope: 'range', confirm: `org-${client % service.secrets.length}`, range_end }
        const { request_id } = JSON.parse(await expect(202, service, secret, 'POST', deletions, body))
        while (!(await isCompleted(service, secret, request_id))) await sleep(pollMs)
      }
    },
  },
]

async function isCompleted(service: Service, secret: string, id: string): Promise<boolean> {
  const text = await expect(200, service, secret, 'GET', `${deletions}/${id}`)
  const { status } = JSON.parse(text)
  if (status === 'failed') throw new Error(text.slice(0, 300))
  return status === 'completed'
}

const firstMs = Date.parse('2026-01-05T00:00:00Z')

async function sender(service: Service, client: number): Promise<Call> {
  let turn = 0
  return async () => {
    await expect(200, service, secretOf(service, client), 'POST', '/v1/logs', logsOf(client, turn++))
  }
}

function logsOf(client: number, turn: number): unknown {
  const timeUnixNano = String(BigInt(firstMs + turn) * 1_000_000n)
  const attributes = [{ key: 'service.name', value: { stringValue: `service-${client}` } }]
  const logRecords = [{ timeUnixNano, severityNumber: 9, body: { stringValue: `request ${turn} is done` } }]
  return { resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] }
}
