// Very many deletion requests, for tests of limits that real ones would reach only after hours.

import { sql } from 'kysely'
import type { Control } from '../../control/database.ts'

/** Stores so many requests more that differ from this one only by their id. */
export async function repeatRequest(control: Control, requestId: string, times: number): Promise<void> {
  const row = await control
    .selectFrom('deletion_requests')
    .selectAll()
    .where('request_id', '=', requestId)
    .executeTakeFirstOrThrow()
  const others = sql.join(
    Object.keys(row)
      .filter((column) => column !== 'request_id')
      .map((column) => sql.ref(column)),
  )
  await sql`
    insert into deletion_requests (request_id, ${others})
    with recursive copies (n) as (select 1 union all select n + 1 from copies where n < ${sql.lit(times)})
    select request_id || '_' || n, ${others} from deletion_requests, copies where request_id = ${requestId}`.execute(
    control,
  )
}
