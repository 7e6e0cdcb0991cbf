// Operations that only tests serve; what a test does not set has a default.

import type { z } from 'zod'
import { type Operation, operation } from '../../contract/operation.ts'

export function testOperation<
  Result extends z.ZodType,
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Headers extends z.ZodType = z.ZodUndefined,
>({
  path,
  result,
  status = 200,
  ...meant
}: Partial<Operation<Result, Params, Query, Body, Headers>> & {
  readonly path: string
  readonly result: Result
  /** Status of success; 200 where absent. */
  readonly status?: number
}): Operation<Result, Params, Query, Body, Headers> {
  return operation({
    id: `${meant.method ?? 'GET'} ${path}`,
    method: 'GET',
    path,
    access: ['owner'],
    tag: 'Operations',
    summary: 'For a test',
    results: { [status]: { body: result } },
    ...meant,
  })
}
