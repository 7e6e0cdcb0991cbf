// A server that refuses the login, or can't be reached: the operator gets the reason and clients don't, and
// no message and no line of the log contains the password.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { roleWithPassword } from '../../../tests/postgres-server.ts'
import { AppError } from '../../core/app-error.ts'
import { openUsable } from '../open.ts'
import { openPostgres } from './postgres.ts'

const [password, wrong] = ['r1ght-and-l0ng', 'wr0ng-and-l0ng']
const plane = await openSharedPostgresPlane()
const folder = mkdtempSync(join(tmpdir(), 'lethe-login-'))
const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(plane.control)
const database = rows[0]?.name ?? assert.fail('a database has a name')
await sql.raw(`create role ${roleWithPassword} superuser login password '${password}'`).execute(plane.control)
after(async () => {
  rmSync(folder, { recursive: true, force: true })
  await sql.raw(`drop role ${roleWithPassword}`).execute(plane.control)
  await plane.close()
})

const host = dirname(plane.socketPath)
const server = { host, port: 5432, user: roleWithPassword, database, ssl: false } as const
const hasNo = (secret: string, error: unknown) =>
  !inspect(error, { depth: null, showHidden: true }).includes(secret)

test('the right password opens the database, and a wrong one is refused without a trace of it', async () => {
  await (await openUsable({ kind: 'postgres', server: { ...server, password } })).destroy()
  await assert.rejects(openUsable({ kind: 'postgres', server: { ...server, password: wrong } }), (error) => {
    assert.ok(error instanceof AppError && error.code === 'storage_unavailable')
    assert.match(error.message, /^The database \S+ on .* can't be used as the control plane: password auth/)
    assert.match(error.message, /LETHE_CONTROL_PASSWORD_FILE/)
    return hasNo(wrong, error)
  })
})

test('the message for clients names neither the role nor the database', async () => {
  const control = openPostgres({ ...server, password: wrong })
  await assert.rejects(control.selectFrom('instance').selectAll().execute(), (error) => {
    assert.ok(error instanceof AppError)
    assert.deepEqual([error.code, error.status, error.retryAfterSeconds], ['storage_unavailable', 503, 10])
    return ![roleWithPassword, database].some((name) => error.message.includes(name)) && hasNo(wrong, error)
  })
  await control.destroy()
})

test('a role that may not ask for the timeline of the server can use the database', async () => {
  const role = 'lethe_without_timeline'
  const administer = (text: string) => sql.raw(text).execute(plane.control)
  await administer(`create role ${role} login`)
  await administer('revoke execute on function pg_walfile_name(pg_lsn) from public')
  const control = openPostgres({ ...server, user: role })
  const { rows: found } = await sql`select session_user::text as user`.execute(control)
  assert.deepEqual(found, [{ user: role }])
  await control.destroy()
  await administer(`drop role ${role}`)
})

test('each problem with the address of a control plane is named at the start', async () => {
  const cases = [
    [{ database: 'nowhere', password }, /database "nowhere" does not exist/],
    [{ user: 'nobody' }, /role "nobody" does not exist/],
    [{ host: join(folder, 'no-socket') }, /ENOENT/],
    [{ host: '127.0.0.1', port: 1 }, /ECONNREFUSED/],
  ] as const
  for (const [given, reason] of cases) {
    const address = { kind: 'postgres', server: { ...server, ...given } } as const
    await assert.rejects(openUsable(address), (error) => error instanceof Error && reason.test(error.message))
  }
})

test('a service with a wrong password in its file does not start, and neither output nor log has it', () => {
  const file = join(folder, 'password')
  writeFileSync(file, `${wrong}\n`)
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [fileURLToPath(new URL('../../cli/lethe.ts', import.meta.url)), 'serve'],
    {
      encoding: 'utf8',
      env: {
        ...process.env,
        LETHE_DATA_DIR: join(folder, 'data'),
        LETHE_PORT: '0',
        LETHE_LOG_LEVEL: 'debug',
        LETHE_CONTROL_URL: `postgres://${roleWithPassword}@localhost/${database}?host=${encodeURIComponent(host)}`,
        LETHE_CONTROL_PASSWORD_FILE: file,
      },
    },
  )
  assert.equal(status, 1)
  assert.match(stderr, /can't be used as the control plane: password authentication failed for user/)
  assert.match(stdout, /the service could not start/)
  assert.ok(!`${stdout}${stderr}`.includes(wrong))
})
