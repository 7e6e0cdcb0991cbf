// Reads a list of the service page by page.

import type { z } from 'zod'
import type { Operation } from '../../../contract/operation.ts'
import { CommandFailure } from '../failure.ts'
import type { ApiClient, ApiResponse } from './api.ts'

/** Maximum number of items of a page of the service. */
const pageMax = 500

type PageSchema<T> = z.ZodType<{ items: T[]; next_cursor: string | null }>

interface ListRequest<T> {
  readonly operation: Operation<PageSchema<T>>
  readonly query: Readonly<Record<string, string>>
  /** Number of items to read, as the option gave it. */
  readonly limit: string
}

/** Returns at most `limit` items, newest first; `json` has the same items as they were sent. */
export async function readPages<T>(
  api: ApiClient,
  { limit, operation, query }: ListRequest<T>,
): Promise<{ items: T[]; json: unknown[] }> {
  const wanted = Number(limit)
  if (!/^\d{1,6}$/.test(limit) || wanted < 1) {
    throw new CommandFailure('--limit must be an integer from 1 to 999999.')
  }
  const items: T[] = []
  const json: unknown[] = []
  for (let cursor: string | null = null; ; ) {
    const size = Math.min(pageMax, wanted - items.length)
    const answer: ApiResponse<z.output<PageSchema<T>>> = await api.call(operation, {
      query: { ...query, limit: String(size), ...(cursor !== null && { cursor }) },
    })
    items.push(...answer.value.items)
    json.push(...itemsOf(answer.json))
    cursor = answer.value.next_cursor
    if (cursor === null || items.length >= wanted) return { items, json }
  }
}

function itemsOf(json: unknown): unknown[] {
  return typeof json === 'object' && json !== null && 'items' in json && Array.isArray(json.items)
    ? json.items
    : []
}
