// Settings from an environment: defaults that are safe to start with, and refusals that name the variable and
// the correction, and never a secret.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { ConfigError, readConfig } from './config.ts'
import { newTokenSecret } from './tenancy/tenancy.ts'

const mebibyte = 2 ** 20

function refusalOf(env: Record<string, string>): string {
  try {
    readConfig(env)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message
  }
  return assert.fail(`It was accepted: ${JSON.stringify(env)}`)
}

test('an empty environment is a service for this machine alone, beside its data', () => {
  assert.deepEqual(readConfig({}), {
    host: '127.0.0.1',
    port: 8080,
    grpcPort: 4317,
    admin: null,
    docs: 'on',
    trustedProxies: [],
    proxyHeader: 'x-forwarded-for',
    connections: { total: 4096, perAddress: 1024 },
    dataDir: resolve('data'),
    control: { kind: 'sqlite', path: resolve('data', 'control.db') },
    keySource: { secret: null, file: resolve('data', 'signing.key') },
    oldKeySecret: null,
    backupDir: resolve('data', 'backups'),
    backupKeepDays: 30,
    reserveBytes: 64 * mebibyte,
    engineMemoryBytes: 2048 * mebibyte,
    commitDelayMs: 200,
    commitSync: 'on',
    ingestBufferBytes: 256 * mebibyte,
    ingestBodyBytes: 16 * mebibyte,
    quota: { rowsPerSecond: null, bytesPerDay: null },
    logLevel: 'info',
    bootstrap: { tenantId: null, token: null },
    restarts: { crashed: 0, hung: 0 },
  })
})

test('the key of the signing keys has one source, is long enough, and is not among the backups', () => {
  const secret = 'x'.repeat(32)
  assert.equal(readConfig({ LETHE_KEY_SECRET: secret }).keySource.secret, secret)
  for (const [env, named] of [
    [{ LETHE_KEY_SECRET: secret, LETHE_KEY_FILE: '/k' }, /set one of them/],
    [{ LETHE_KEY_SECRET: 'short' }, /LETHE_KEY_SECRET must have 32/],
    [{ LETHE_BACKUP_DIR: '/b', LETHE_KEY_FILE: '/b/c/key' }, /must not be in LETHE_BACKUP_DIR/],
  ] as const) {
    assert.throws(() => readConfig(env), named)
  }
})

describe('the password of PostgreSQL in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-config-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const url = { LETHE_CONTROL_URL: 'postgres://lethe@localhost/lethe' }
  const given = (content: string) => {
    const path = join(folder, 'password')
    writeFileSync(path, content)
    return { LETHE_CONTROL_PASSWORD_FILE: path }
  }
  const passwordIn = (env: Record<string, string>) => {
    const { control } = readConfig(env)
    return control.kind === 'postgres' ? control.server.password : control.kind
  }

  test('is used, without the end of its line, and by PostgreSQL alone', () => {
    for (const ending of ['', '\n', '\r\n']) {
      assert.equal(passwordIn({ ...url, ...given(`p@ss word${ending}`) }), 'p@ss word')
    }
    assert.equal(passwordIn(given('s3cr3t')), 'sqlite')
    assert.equal(passwordIn({ ...url, LETHE_CONTROL_PASSWORD_FILE: '' }), undefined)
  })

  test('is refused where it can’t be read or is not one line, and beside another one', () => {
    const missing = join(folder, 'missing')
    for (const [env, refusal] of [
      [{ LETHE_CONTROL_PASSWORD_FILE: missing }, `names ${missing}, which can't be read (ENOENT).`],
      [{ LETHE_CONTROL_PASSWORD_FILE: folder }, `names ${folder}, which can't be read (EISDIR).`],
    ] as const) {
      assert.equal(refusalOf({ ...url, ...env }), `LETHE_CONTROL_PASSWORD_FILE ${refusal}`)
    }
    for (const content of ['', '\n', 's3cr3t\nmore\n', 's3cr3t\n\n', 's3cr3t\0']) {
      const refusal = refusalOf({ ...url, ...given(content) })
      assert.match(refusal, /^LETHE_CONTROL_PASSWORD_FILE names .*, which must have one line and has not\.$/)
      assert.ok(!refusal.includes('s3cr3t'))
    }
    const both = { LETHE_CONTROL_URL: 'postgres://lethe:other@localhost/lethe', ...given('s3cr3t') }
    assert.match(refusalOf(both), /^LETHE_CONTROL_PASSWORD_FILE and LETHE_CONTROL_URL both have a password/)
    assert.ok(!/s3cr3t|other/.test(refusalOf(both)))
  })
})

test('an empty setting counts as absent', () => {
  const names = [
    'HOST',
    'PORT',
    'DATA_DIR',
    'CONTROL_URL',
    'CONTROL_PASSWORD_FILE',
    'TELEMETRY_URL',
    'BACKUP_DIR',
    'KEY_FILE',
    'KEY_SECRET',
    'LOG_LEVEL',
    'BOOTSTRAP_TOKEN',
  ]
  const empty = Object.fromEntries(names.map((name) => [`LETHE_${name}`, '']))
  assert.deepEqual(readConfig(empty), readConfig({}))
})

test('a setting is used, in the units of the code', () => {
  const token = newTokenSecret('owner')
  assert.deepEqual(
    readConfig({
      LETHE_HOST: '::',
      LETHE_PORT: '0',
      LETHE_GRPC_PORT: '14317',
      LETHE_ADMIN_PORT: '18081',
      LETHE_ADMIN_HOST: '10.1.2.3',
      LETHE_DOCS: 'admin',
      LETHE_TRUSTED_PROXIES: '10.0.0.0/8, ::1,',
      LETHE_PROXY_HEADER: 'forwarded',
      LETHE_CONNECTIONS: '500',
      LETHE_CONNECTIONS_PER_ADDRESS: '100',
      LETHE_DATA_DIR: '/srv/lethe',
      LETHE_CONTROL_URL: 'sqlite:/srv/control/lethe.db',
      LETHE_TELEMETRY_URL: 'chdb:',
      LETHE_KEY_FILE: '/etc/lethe/signing.key',
      LETHE_OLD_KEY_SECRET: token,
      LETHE_BACKUP_DIR: '/mnt-backups/lethe',
      LETHE_BACKUP_KEEP_DAYS: '7',
      LETHE_RESERVE_MB: '0',
      LETHE_ENGINE_MEMORY_MB: '512',
      LETHE_COMMIT_DELAY_MS: '0',
      LETHE_FSYNC: 'off',
      LETHE_INGEST_BUFFER_MB: '1',
      LETHE_INGEST_BODY_MB: '256',
      LETHE_QUOTA_ROWS_PER_SECOND: '1000',
      LETHE_QUOTA_BYTES_PER_DAY: '5000000000',
      LETHE_LOG_LEVEL: 'debug',
      LETHE_BOOTSTRAP_ORG: 'acme-corp',
      LETHE_BOOTSTRAP_TOKEN: token,
      LETHE_WATCHDOG_SECONDS: 'off',
      LETHE_RESTARTS_CRASHED: '2',
      LETHE_RESTARTS_HUNG: '1',
    }),
    {
      host: '::',
      port: 0,
      grpcPort: 14_317,
      admin: { host: '10.1.2.3', port: 18_081 },
      docs: 'admin',
      trustedProxies: ['10.0.0.0/8', '::1'],
      proxyHeader: 'forwarded',
      connections: { total: 500, perAddress: 100 },
      dataDir: '/srv/lethe',
      control: { kind: 'sqlite', path: '/srv/control/lethe.db' },
      keySource: { secret: null, file: '/etc/lethe/signing.key' },
      oldKeySecret: token,
      backupDir: '/mnt-backups/lethe',
      backupKeepDays: 7,
      reserveBytes: 0,
      engineMemoryBytes: 512 * mebibyte,
      commitDelayMs: 0,
      commitSync: 'off',
      ingestBufferBytes: mebibyte,
      ingestBodyBytes: 256 * mebibyte,
      quota: { rowsPerSecond: 1000, bytesPerDay: 5_000_000_000 },
      logLevel: 'debug',
      bootstrap: { tenantId: 'acme-corp', token },
      restarts: { crashed: 2, hung: 1 },
    },
  )
})

test('the admin listener is off unless it has a port, and the reference moves only where it is on', () => {
  assert.equal(readConfig({ LETHE_ADMIN_HOST: '0.0.0.0' }).admin, null)
  assert.deepEqual(readConfig({ LETHE_ADMIN_PORT: '0' }).admin, { host: '127.0.0.1', port: 0 })
  assert.equal(readConfig({ LETHE_ADMIN_PORT: '0' }).docs, 'on')
  assert.match(refusalOf({ LETHE_DOCS: 'admin' }), /LETHE_ADMIN_PORT/)
  assert.match(refusalOf({ LETHE_ADMIN_PORT: 'yes' }), /LETHE_ADMIN_PORT .* or off/)
})

test('a proxy that is not an address is refused, and one address can’t have more connections than there are', () => {
  for (const wrong of ['proxy.internal', '10.0.0.0/33', '10.0.0.0/8/8', '::1/129', '10.0.0.1:80', '*']) {
    assert.match(refusalOf({ LETHE_TRUSTED_PROXIES: `10.1.1.1,${wrong}` }), /LETHE_TRUSTED_PROXIES/, wrong)
  }
  assert.deepEqual(readConfig({ LETHE_CONNECTIONS: '64' }).connections, { total: 64, perAddress: 64 })
  const both = { LETHE_CONNECTIONS: '64', LETHE_CONNECTIONS_PER_ADDRESS: '65' }
  assert.match(refusalOf(both), /LETHE_CONNECTIONS_PER_ADDRESS/)
})

test('gRPC can be switched off, and is on a port that the system chooses where HTTP is', () => {
  assert.equal(readConfig({ LETHE_GRPC_PORT: 'off' }).grpcPort, null)
  assert.equal(readConfig({ LETHE_PORT: '0' }).grpcPort, 0)
  assert.equal(readConfig({ LETHE_PORT: '0', LETHE_GRPC_PORT: 'off' }).grpcPort, null)
  for (const value of ['none', '-1', '65536']) {
    assert.match(
      refusalOf({ LETHE_GRPC_PORT: value }),
      /^LETHE_GRPC_PORT must be an integer from 0 to 65535, or off, not /,
    )
  }
})

test('the data folder is absolute, so that a later change of the working folder has no effect', () => {
  const { dataDir, control } = readConfig({ LETHE_DATA_DIR: 'here' })
  assert.ok(isAbsolute(dataDir))
  assert.deepEqual(control, { kind: 'sqlite', path: join(dataDir, 'control.db') })
})

test('a control path may be written as an address or as a path', () => {
  const control = { kind: 'sqlite', path: '/srv/control.db' }
  for (const url of ['sqlite:///srv/control.db', 'sqlite:/srv/control.db']) {
    assert.deepEqual(readConfig({ LETHE_CONTROL_URL: url }).control, control)
  }
})

describe('every refusal names its variable', () => {
  const numbers = [
    ['LETHE_PORT', 0, 65_535],
    ['LETHE_BACKUP_KEEP_DAYS', 1, 3650],
    ['LETHE_ENGINE_MEMORY_MB', 512, 1_048_576],
    ['LETHE_COMMIT_DELAY_MS', 0, 5_000],
    ['LETHE_INGEST_BUFFER_MB', 1, 65_536],
    ['LETHE_INGEST_BODY_MB', 1, 256],
    ['LETHE_QUOTA_ROWS_PER_SECOND', 0, Number.MAX_SAFE_INTEGER],
    ['LETHE_QUOTA_BYTES_PER_DAY', 0, Number.MAX_SAFE_INTEGER],
  ] as const

  for (const [name, min, max] of numbers) {
    test(`${name} takes integers from ${min} to ${max}`, () => {
      readConfig({ [name]: String(min) })
      readConfig({ [name]: String(max) })
      for (const value of [
        String(min - 1),
        String(max + 1),
        'many',
        '1.5',
        '1e3',
        '0x10',
        ' 600',
        '-0',
        'NaN',
      ]) {
        const refusal = refusalOf({ [name]: value })
        assert.ok(refusal.startsWith(`${name} must be an integer from ${min} to ${max}, not `), refusal)
        assert.ok(refusal.includes(value))
      }
    })
  }

  test('LETHE_LOG_LEVEL takes a level', () => {
    const refusal = refusalOf({ LETHE_LOG_LEVEL: 'loud' })
    assert.equal(refusal, 'LETHE_LOG_LEVEL must be one of debug, info, warn, error, silent, not "loud".')
  })

  test('stores of another kind are refused instead of replaced', () => {
    assert.match(
      refusalOf({ LETHE_CONTROL_URL: 'mysql://db/lethe' }),
      /^LETHE_CONTROL_URL must start with sqlite: or postgres:/,
    )
    assert.match(
      refusalOf({ LETHE_TELEMETRY_URL: 'http://click:8123' }),
      /^LETHE_TELEMETRY_URL must start with chdb:/,
    )
  })

  test('an address for telemetry that would not be used is refused', () => {
    const refusal = refusalOf({ LETHE_TELEMETRY_URL: 'chdb:/srv/elsewhere' })
    assert.match(refusal, /^LETHE_TELEMETRY_URL takes no path: .* LETHE_DATA_DIR/)
  })

  test('a folder for backups that a restore would remove is refused', () => {
    for (const place of ['telemetry', 'telemetry/engine/backups']) {
      const refusal = refusalOf({ LETHE_DATA_DIR: '/srv/lethe', LETHE_BACKUP_DIR: `/srv/lethe/${place}` })
      assert.match(refusal, /^LETHE_BACKUP_DIR must not be in /)
    }
    readConfig({ LETHE_DATA_DIR: '/srv/lethe', LETHE_BACKUP_DIR: '/srv/lethe/telemetry-backups' })
  })

  test('LETHE_BOOTSTRAP_ORG accepts what a person can type', () => {
    for (const tenantId of ['Acme', 'ac', 'acme_corp', '-acme', 'acme-', 'a'.repeat(41), 'äcme']) {
      assert.match(
        refusalOf({ LETHE_BOOTSTRAP_ORG: tenantId }),
        /^LETHE_BOOTSTRAP_ORG must have 3 to 40 characters/,
      )
    }
  })

  test('LETHE_BOOTSTRAP_TOKEN accepts what can’t be guessed and can be sent in a header', () => {
    for (const token of [
      'short',
      'x'.repeat(31),
      'x'.repeat(513),
      `${'x'.repeat(40)} y`,
      `${'x'.repeat(40)}é`,
    ]) {
      assert.match(refusalOf({ LETHE_BOOTSTRAP_TOKEN: token }), /^LETHE_BOOTSTRAP_TOKEN must have 32 to 512/)
    }
    readConfig({ LETHE_BOOTSTRAP_TOKEN: 'x'.repeat(32) })
    readConfig({ LETHE_BOOTSTRAP_TOKEN: 'x'.repeat(512) })
  })
})

test('several problems are reported at once, a line each, and contradictions after each setting is valid', () => {
  assert.deepEqual(
    refusalOf({ LETHE_PORT: 'http', LETHE_FSYNC: 'yes', LETHE_KEY_SECRET: 'short' }).split('\n'),
    [
      'LETHE_PORT must be an integer from 0 to 65535, not "http".',
      'LETHE_KEY_SECRET must have 32 to 512 visible ASCII characters.',
      'LETHE_FSYNC must be one of on, files, off, not "yes".',
    ],
  )
  const both = { LETHE_DOCS: 'admin', LETHE_CONNECTIONS: '64', LETHE_CONNECTIONS_PER_ADDRESS: '65' }
  assert.deepEqual(refusalOf(both).split('\n'), [
    'LETHE_DOCS can be admin only where LETHE_ADMIN_PORT is set; set both, or neither.',
    'LETHE_CONNECTIONS_PER_ADDRESS must be an integer from 4 to 64, not "65".',
  ])
})

test('no refusal contains a secret: neither a token nor the password in an address', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Za-z0-9]{8,30}$/), (secret) => {
      for (const env of [
        { LETHE_BOOTSTRAP_TOKEN: secret },
        { LETHE_KEY_SECRET: secret },
        { LETHE_OLD_KEY_SECRET: secret, LETHE_PORT: 'none' },
        { LETHE_CONTROL_URL: `postgres://lethe:${secret}@db/lethe?sslmode=none` },
        { LETHE_TELEMETRY_URL: `https://default:${secret}@click:8443` },
      ]) {
        assert.ok(!refusalOf(env).includes(secret))
      }
    }),
  )
})

test('the limit of the watchdog is a number of seconds, or off', () => {
  for (const value of ['10', '3600', 'off']) readConfig({ LETHE_WATCHDOG_SECONDS: value })
  for (const value of ['9', '3601', '0', 'on', '60s']) {
    assert.match(
      refusalOf({ LETHE_WATCHDOG_SECONDS: value }),
      /^LETHE_WATCHDOG_SECONDS must be an integer from 10 to 3600, or off, not /,
    )
  }
})
