// `lethe detect` as a person runs it: files and standard input, whole or as a
// detector of the service would have seen them, in text, JSON and pictures, and what it refuses.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolders } from '../fixtures.ts'
import { nodeEnvironment, nodeWords, runLethe } from './command-line.ts'

const newFolder = temporaryFolders()
const newDataDir = () => join(newFolder(), 'data')

const environment = (dataDir: string) => ({
  ...nodeEnvironment,
  PATH: process.env.PATH,
  LETHE_DATA_DIR: dataDir,
})

/** Runs a command until it ends. */
const lethe = (env: Record<string, string | undefined>, ...words: string[]) => runLethe(env, words)

test('a file of timestamps and values is searched for anomalies without a service or a data folder', async () => {
  const env = environment(newDataDir())
  const file = join(newFolder(), 'points.csv')
  const lines = Array.from({ length: 300 }, (_, i) => {
    const value = 100 + (i % 7) + (i >= 250 && i < 256 ? 80 : 0)
    return `${1_789_128_000 + i * 300},${value}`
  })
  writeFileSync(file, `timestamp,value\n${lines.join('\n')}\n`)
  const found = await lethe(env, 'detect', '--csv', file)
  assert.equal(found.code, 0, found.err)
  assert.match(found.out, /^2026-09-12T08:50:00Z {2}score .* value 1\d\d, expected .*; 30 minutes high/)
  assert.match(found.out, /300 buckets of 5 min: 1 anomalies; at the end: ok$/)
  const json = await lethe(
    env,
    'detect',
    '--csv',
    file,
    '--method',
    'threshold',
    '--params',
    '{"upper":150}',
    '--json',
  )
  assert.deepEqual(
    JSON.parse(json.out).anomalies.map((one: { started_at: string }) => one.started_at),
    ['2026-09-12T08:50:00Z'],
  )
  const fleet = join(dirname(file), 'fleet.csv')
  const hosts = lines.flatMap((line, i) => {
    const [time = ''] = line.split(',')
    return [0, 1, 2, 3, 4, 5].map((host) => {
      const isSlow = host === 2 && i >= 250 && i < 256
      return `${time},h${host},${isSlow ? 900 : 100 + ((i * (host + 3)) % 11)}`
    })
  })
  writeFileSync(fleet, `timestamp,host,value\n${hosts.join('\n')}\n`)
  const peers = ['detect', '--csv', fleet, '--grouped', '--method', 'peer_outlier']
  const odd = await lethe(env, ...peers)
  assert.equal(odd.code, 0, odd.err)
  assert.match(odd.out, /^2026-09-12T08:50:00Z {2}score .* value of h2 900; its 5 peers 100; 30 minutes high/)
  assert.match(odd.out, /300 buckets of 5 min in 6 series: 1 anomalies; at the end: ok/)
  const [inJson] = JSON.parse((await lethe(env, ...peers, '--json')).out).anomalies
  assert.deepEqual([inJson.group, inJson.started_at], ['h2', '2026-09-12T08:50:00Z'])
  const ungrouped = await lethe(env, 'detect', '--csv', file, '--method', 'peer_outlier')
  assert.equal(ungrouped.code, 1)
  assert.match(ungrouped.err, /timestamp,group,value and --grouped/)
  for (const words of [
    ['--grouped'],
    ['--params', '{"k":0}'],
    ['--params', 'k=4'],
    ['--step', '0.5'],
    ['--method', 'magic'],
  ]) {
    const refused = await lethe(env, 'detect', '--csv', file, ...words)
    assert.equal(refused.code, 1, words.join(' '))
  }
  assert.equal(existsSync(String(env.LETHE_DATA_DIR)), false)
})

test('points come from standard input too, are drawn with their band, and a picture is written', async () => {
  const env = environment(newDataDir())
  const picture = join(newFolder(), 'points.svg')
  const lines = Array.from({ length: 300 }, (_, i) => {
    return `${1_789_128_000 + i * 300},${100 + (i % 7) + (i >= 250 && i < 256 ? 80 : 0)}`
  })
  const words = ['detect', '--csv', '-', '--chart', '--svg', picture]
  const { code, err, out } = await runLethe(env, words, lines.join('\n'))
  assert.equal(code, 0, err)
  assert.match(out, /┤.*◆/)
  assert.match(out, /^ +▲+$/m)
  assert.match(out, /300 buckets of 5 min: 1 anomalies/)
  const svg = readFileSync(picture, 'utf8')
  assert.match(svg, /^<svg .*<rect class="anomaly".*class="values".*<\/svg>\n$/s)
  const undrawn = await runLethe(env, ['detect', '--csv', '-'], lines.join('\n'))
  assert.doesNotMatch(undrawn.out, /┤/, 'nothing is drawn where no terminal shows it')
})

test('labels of a file show what was found, missed and false, and deploys are drawn too', async () => {
  const env = environment(newDataDir())
  const [picture, deploys] = [join(newFolder(), 'points.svg'), join(newFolder(), 'deploys.csv')]
  const lines = Array.from({ length: 600 }, (_, i) => {
    const isOdd = i >= 500 && i < 506
    const isLabelled = isOdd || (i >= 400 && i < 410)
    const isFalse = i >= 250 && i < 256
    return `${1_789_128_000 + i * 300},${100 + (i % 7) + (isOdd ? 300 : isFalse ? 80 : 0)},${isLabelled ? 1 : 0}`
  })
  writeFileSync(deploys, 'deployed,version\n2026-09-12T08:00:00Z,2.3.1\n')
  const words = ['detect', '--csv', '-', '--no-chart', '--svg', picture, '--deploys', deploys]
  const { code, err, out } = await runLethe(env, words, `timestamp,value,label\n${lines.join('\n')}`)
  assert.equal(code, 0, err)
  assert.match(out, /^1 of 2 labelled events found; 1 of 2 anomalies is about none$/m)
  const svg = readFileSync(picture, 'utf8')
  for (const mark of ['missed', 'anomaly right', 'anomaly wrong', 'deploy'])
    assert.equal(svg.match(new RegExp(`class="${mark}"`, 'g'))?.length, 1, mark)
  assert.match(svg, />2\.3\.1</)
  const refused = await runLethe(env, words, 'timestamp,value,label\n1789128000,1,maybe')
  assert.match(refused.err, /Line 2: write it as timestamp,value,label with a label of 0 or 1/)
})

test('a file is judged run after run as the service does, in JSON, in text with what its labels say, and in a picture', async () => {
  const env = environment(newDataDir())
  const [file, picture] = [join(newFolder(), 'requests.csv'), join(newFolder(), 'requests.svg')]
  const startS = 1_789_084_800
  // Five weeks of a daily rhythm in buckets of 15 minutes; two hours of the last day have no requests.
  const lines = Array.from({ length: 35 * 96 }, (_, i) => {
    const isOdd = i >= 34 * 96 + 40 && i < 34 * 96 + 48
    const value = isOdd ? 0 : 500 + 300 * Math.sin((2 * Math.PI * i) / 96) + ((i * 37) % 23)
    return `${startS + i * 900},${value.toFixed(1)},${isOdd ? 1 : 0}`
  })
  writeFileSync(file, `timestamp,value,label\n${lines.join('\n')}\n`)
  const words = ['detect', '--csv', file, '--as-served']
  const inJson = await lethe(env, ...words, '--budget', '1', '--json', '--svg', picture)
  assert.equal(inJson.code, 0, inJson.err)
  const { incidents } = JSON.parse(inJson.out)
  assert.equal(incidents.length, 1, inJson.out)
  const [{ closed_at, opened_at, peak_at, score, told_at, ...rest }] = incidents
  assert.deepEqual(rest, {})
  const atMinute = (text: string) => (Date.parse(text) / 1000 - (startS + (34 * 96 + 40) * 900)) / 60
  assert.ok(score >= 1, 'the edge of an alarm')
  assert.ok(atMinute(opened_at) >= 0 && atMinute(opened_at) <= 60, opened_at)
  assert.ok(atMinute(told_at) > atMinute(opened_at) && atMinute(told_at) <= 120, 'reported while it lasts')
  assert.ok(atMinute(peak_at) >= 0 && atMinute(peak_at) < 120, peak_at)
  assert.ok(atMinute(closed_at) >= 120, 'and closed after it')
  assert.match(
    readFileSync(picture, 'utf8'),
    /^<svg .*<rect class="anomaly right".*class="values".*<\/svg>\n$/s,
  )

  const inText = await lethe(env, ...words, '--chart')
  assert.match(inText.out, /▲/)
  assert.match(inText.out, /^1 of 1 labelled events found; 0 of 1 anomalies are about none$/m)
  const proposed = await lethe(env, ...words, '--suggest')
  assert.equal(proposed.code, 0, proposed.err)
  assert.match(proposed.out, /told 2026-10-/)
  for (const refused of [['--grouped'], ['--step', '5'], ['--scores'], ['--budget', '-1']]) {
    const { code, err } = await lethe(env, ...words, ...refused)
    assert.equal(code, 1, refused.join(' '))
    assert.notEqual(err, '')
  }
})

test('a reader that closes the pipe ends a command without a message', async () => {
  const rows = Array.from({ length: 60_000 }, (_, i) => `${1_789_128_000 + i * 60},${i % 7}`)
  const child = spawn(process.execPath, [...nodeWords, 'detect', '--csv', '-', '--scores'], {
    env: environment(newDataDir()),
    stdio: 'pipe',
  })
  let err = ''
  child.stderr.on('data', (chunk) => (err += chunk))
  child.stdout.once('data', () => child.stdout.destroy())
  child.stdin.on('error', () => {})
  child.stdin.end(rows.join('\n'))
  const [code] = await once(child, 'exit')
  assert.deepEqual([code, err], [141, ''])
})

test('a file is searched with given holidays, and an invalid day is reported with its location', async () => {
  const env = environment(newDataDir())
  const file = join(newFolder(), 'office.csv')
  const lines = Array.from({ length: 56 * 24 }, (_, i) => {
    const [day, hour] = [Math.floor(i / 24), i % 24]
    // Closed on weekends and on 2026-10-21, a Wednesday.
    const isOpen = day % 7 < 5 && day !== 44 && hour >= 8 && hour < 18
    return `${1_788_739_200 + i * 3600},${100 + ((i * 7) % 5) + (isOpen ? 400 : 0)}`
  })
  writeFileSync(file, `timestamp,value\n${lines.join('\n')}\n`)
  const detectWith = (params: object) =>
    lethe(env, 'detect', '--csv', file, '--method', 'seasonal_band', '--params', JSON.stringify(params))
  const without = await detectWith({})
  assert.match(
    without.out,
    /^2026-10-21T08:00:00Z .* value 10\d, expected .* for a Wednesday \d\d:00; 10 hours low/m,
  )
  const holidays = await detectWith({ holidays: ['2026-10-21'] })
  assert.equal(holidays.code, 0, holidays.err)
  assert.doesNotMatch(holidays.out, /2026-10-2/)
  const refused = await detectWith({ holidays: ['10-21', '2026-21-10'] })
  assert.equal(refused.code, 1)
  assert.match(refused.err, /params\.holidays\.1: There is no 2026-21-10 in the calendar/)
})
