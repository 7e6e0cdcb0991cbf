// Examples of reading telemetry: the requests, logs and spans of the failed payments.

import type { z } from 'zod'
import type { Deploy, DeployPage } from '../telemetry/deploys.ts'
import type {
  AttributeNames,
  LogCounts,
  LogPage,
  MetricPage,
  SeriesAnswer,
  ServicePage,
  Span,
  SpanPage,
  Trace,
} from '../telemetry/queries.ts'
import { resourceAttributes, spanId, traceId } from './acme.ts'

const searched = { range_start: '2026-11-21T08:30:00Z', range_end: '2026-11-21T09:30:00Z' }

export const seriesExample: z.output<typeof SeriesAnswer> = {
  metric_key: 'spans.error_ratio',
  unit: '1',
  aggregation: 'avg',
  across: 'pooled',
  step_seconds: 60,
  range_start: '2026-11-21T08:58:00Z',
  range_end: '2026-11-21T09:01:30Z',
  series: [
    {
      group: 'checkout',
      labels: { service: 'checkout' },
      points: [
        { time: '2026-11-21T08:58:00Z', value: 0.004 },
        { time: '2026-11-21T08:59:00Z', value: null },
        { time: '2026-11-21T09:00:00Z', value: 0.51 },
        { time: '2026-11-21T09:01:00Z', seconds: 30, value: 0.6 },
      ],
    },
  ],
  truncated: false,
  warnings: [],
  metric: 'spans.error_ratio',
  start: '2026-11-21T08:58:00Z',
  end: '2026-11-21T09:01:30Z',
}

export const logPageExample: z.output<typeof LogPage> = {
  items: [
    {
      time: '2026-11-21T09:02:11.548031Z',
      service: 'checkout',
      severity: 'ERROR',
      severity_number: 17,
      body: 'payment declined for order 4711',
      trace_id: traceId,
      span_id: spanId,
      event_name: '',
      attributes: { 'order.id': '4711' },
      resource_attributes: resourceAttributes,
    },
  ],
  next_cursor: null,
  searched,
  warnings: [],
}

const quiet = { unspecified: 0, trace: 0, debug: 0, info: 0, warn: 0, error: 0, fatal: 0 }

export const logCountsExample: z.output<typeof LogCounts> = {
  range_start: '2026-11-21T08:58:00Z',
  range_end: '2026-11-21T09:01:00Z',
  step_seconds: 60,
  totals: { ...quiet, info: 411, warn: 3, error: 61 },
  steps: [
    { time: '2026-11-21T08:58:00Z', counts: { ...quiet, info: 210 } },
    { time: '2026-11-21T08:59:00Z', counts: { ...quiet, info: 201, warn: 3 } },
    { time: '2026-11-21T09:00:00Z', counts: { ...quiet, error: 61 } },
  ],
}

export const attributeNamesExample: z.output<typeof AttributeNames> = {
  key: 'http.request.method',
  items: [
    { text: 'GET', rows: 4_201 },
    { text: 'POST', rows: 799 },
  ],
  rows_read: 5_000,
}

const span: z.output<typeof Span> = {
  trace_id: traceId,
  span_id: spanId,
  parent_span_id: '',
  time: '2026-11-21T09:02:11.5Z',
  duration_ns: '48120331',
  service: 'checkout',
  name: 'POST /orders',
  kind: 'Server',
  status: 'Error',
  status_message: 'payment declined',
  attributes: { 'http.request.method': 'POST', region: 'eu' },
  resource_attributes: resourceAttributes,
  events: [
    {
      time: '2026-11-21T09:02:11.547Z',
      name: 'exception',
      attributes: { 'exception.type': 'PaymentDeclined' },
    },
  ],
  links: [],
}

export const spanPageExample: z.output<typeof SpanPage> = {
  items: [span],
  next_cursor: null,
  searched,
  warnings: [],
}

export const traceExample: z.output<typeof Trace> = {
  trace_id: traceId,
  spans: [span],
  truncated: false,
  next_cursor: null,
  warnings: [],
}

export const servicePageExample: z.output<typeof ServicePage> = {
  items: [
    { service: 'checkout', signals: ['metrics', 'logs', 'traces'], last_seen: '2026-11-21T09:29:58.402Z' },
    { service: 'storefront', signals: ['logs', 'traces'], last_seen: '2026-11-21T09:29:57.730Z' },
  ],
  next_cursor: null,
  searched,
  warnings: [],
}

export const metricPageExample: z.output<typeof MetricPage> = {
  items: [
    {
      metric_key: 'queue.length',
      kind: 'gauge',
      unit: '{item}',
      description: 'Orders that wait for payment',
      services: ['checkout'],
      last_seen: '2026-11-21T09:29:50Z',
      metric: 'queue.length',
    },
  ],
  next_cursor: null,
  searched,
  warnings: [],
}

export const deployExample: Deploy = {
  service: 'checkout',
  environment: 'production',
  version: '2.3.1',
  previous_version: '2.3.0',
  at: '2026-11-21T08:58:12.5Z',
  told_by: 'version',
}

export const deployPageExample: z.output<typeof DeployPage> = {
  items: [deployExample],
  next_cursor: null,
  searched,
  warnings: [],
}
