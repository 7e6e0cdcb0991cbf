// `lethe deletions`: reads deletion requests of the token's organisation, follows one, and decides one.

import { writeFileSync } from 'node:fs'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import type { Clock } from '../../core/clock.ts'
import { type JsonOption, print, printDocument, printJson, say } from '../print.ts'
import { ApiClient } from './api.ts'
import { deletionLine, deletionLines } from './deletion-view.ts'
import { requireCompleted, watchOnOutput } from './follow.ts'
import { readPages } from './pages.ts'
import type { Connection } from './settings.ts'

interface ListOptions extends JsonOption {
  readonly status?: string
  readonly limit: string
}

export async function listDeletions(connection: Connection, options: ListOptions): Promise<void> {
  const { items, json } = await readPages(new ApiClient(connection), {
    operation: deletionOperations.list,
    query: options.status === undefined ? {} : { status: options.status },
    limit: options.limit,
  })
  if (options.json) return printJson({ items: json })
  for (const item of items) print(deletionLine(item))
  if (items.length === 0) print('No deletions.')
}

export async function getDeletion(connection: Connection, id: string, options: JsonOption): Promise<void> {
  const { json, value } = await new ApiClient(connection).call(deletionOperations.get, {
    params: { request_id: id },
  })
  if (options.json) return printJson(json)
  for (const line of deletionLines(value)) print(line)
}

export async function watchDeletion(
  connection: Connection,
  id: string,
  options: JsonOption,
  clock: Clock,
): Promise<void> {
  requireCompleted(await watchOnOutput({ api: new ApiClient(connection), clock, ...options }, id))
}

type Decision = 'cancel' | 'approve' | 'reject' | 'retry'

export async function decideDeletion(
  connection: Connection,
  decision: Decision,
  id: string,
  options: JsonOption & { readonly reason?: string },
): Promise<void> {
  const api = new ApiClient(connection, { 'body.reason': '--reason' })
  const sent = options.reason === undefined ? {} : { json: { reason: options.reason } }
  const { json, value } = await api.call(deletionOperations[decision], {
    params: { request_id: id },
    ...sent,
  })
  if (options.json) return printJson(json)
  for (const line of deletionLines(value)) print(line)
}

/** Exits 1 if something that the deletion selects is left. */
export async function verifyDeletion(connection: Connection, id: string, options: JsonOption): Promise<void> {
  const api = new ApiClient(connection)
  const { json, value } = await api.call(deletionOperations.verify, { params: { request_id: id } })
  if (!value.is_clean) process.exitCode = 1
  if (options.json) return printJson(json)
  for (const [store, rows] of Object.entries(value.remaining)) print(`${store}: ${rows} rows left`)
  print(value.is_clean ? 'Nothing that it selects is left.' : 'NOT CLEAN: see the rows above.')
}

interface CertificateOptions {
  readonly html?: boolean
  readonly output?: string
}

/** Writes the certificate as the service signed it. If there is no certificate yet, no file is written. */
export async function saveCertificate(
  connection: Connection,
  id: string,
  { html, output }: CertificateOptions,
): Promise<void> {
  const text = await new ApiClient(connection).callForText(deletionOperations.certificate, {
    params: { request_id: id },
    ...(html && { query: { format: 'html' } }),
  })
  if (output === undefined) printDocument(text)
  else writeFileSync(output, text)
  if (output !== undefined) say(`Wrote ${output}.`)
}
