// The files in deploy/ for Prometheus and Grafana name only metrics that a running service has.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { type Service, startService } from './service.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const rulesPath = 'deploy/prometheus/lethe-alerts.yml'
const rules = read(rulesPath)

const Dashboard = z.object({
  panels: z.array(
    z.object({
      id: z.int(),
      title: z.string(),
      gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
      targets: z.array(z.object({ expr: z.string() })).default([]),
    }),
  ),
  templating: z.object({ list: z.array(z.object({ name: z.string() })) }),
})
const dashboard = Dashboard.parse(JSON.parse(read('deploy/grafana/lethe.json')))
const drawn = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

let service: Service
let served: ReadonlySet<string>
before(async () => {
  service = await startService({})
  const page = await (await fetch(`${service.address}/metrics`)).text()
  served = new Set([...page.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name))
})
after(() => service.stop())

const alerts = [...rules.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name)
const expressions = [...rules.matchAll(/^ +expr: (\S.*)$/gm)].map(([, text = '']) => text)

/** Names in an expression that can be metrics of the page: all of them have one of these beginnings. */
const namesIn = (text: string) => [...text.matchAll(/\b(?:lethe|process|nodejs)_\w+/g)].map(([name]) => name)

test('each alert has one expression, and all of them name metrics that the service has', () => {
  assert.ok(alerts.length > 10)
  assert.equal(new Set(alerts).size, alerts.length)
  assert.equal(expressions.length, alerts.length)
  for (const text of expressions) {
    assert.ok(text.startsWith('up{') || namesIn(text).length > 0, text)
    for (const name of namesIn(text)) assert.ok(served.has(name), `/metrics has no ${name}`)
  }
})

test('the dashboard draws only metrics that the service has, and each of its own ones', () => {
  for (const name of drawn.flatMap(namesIn)) assert.ok(served.has(name), `/metrics has no ${name}`)
  const own = [...served].filter((name) => name.startsWith('lethe_'))
  assert.deepEqual(
    own.filter((name) => !drawn.some((text) => namesIn(text).includes(name))),
    [],
  )
  assert.deepEqual(
    dashboard.templating.list.map(({ name }) => name),
    ['source', 'instance'],
  )
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  for (const { title, gridPos } of dashboard.panels) assert.ok(gridPos.x + gridPos.w <= 24, title)
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

test('promtool accepts the rules, and they fire in its cases and only there', {
  skip: hasPromtool ? false : 'promtool is not installed',
}, () => {
  const cwd = dirname(fileURLToPath(new URL(rulesPath, root)))
  for (const words of [
    ['check', 'rules', 'lethe-alerts.yml'],
    ['test', 'rules', 'lethe-alerts.test.yml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', words, { cwd, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  }
})
