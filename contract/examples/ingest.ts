// Examples of OTLP export requests in JSON, as SDKs and Collectors send them: a point, a log record and a
// span of one service. 64-bit integers are text, as in the protobuf JSON mapping.

import { resourceAttributes, spanId, traceId } from './acme.ts'

const resource = {
  attributes: Object.entries(resourceAttributes).map(([key, stringValue]) => ({
    key,
    value: { stringValue },
  })),
}
const scope = { name: 'shop.checkout', version: '2.3.1' }

const metrics = {
  resourceMetrics: [
    {
      resource,
      scopeMetrics: [
        {
          scope,
          metrics: [
            {
              name: 'queue.length',
              unit: '{item}',
              description: 'Orders that wait for payment',
              gauge: { dataPoints: [{ timeUnixNano: '1795251730000000000', asInt: '7' }] },
            },
          ],
        },
      ],
    },
  ],
}

const logs = {
  resourceLogs: [
    {
      resource,
      scopeLogs: [
        {
          scope,
          logRecords: [
            {
              timeUnixNano: '1795251731548031000',
              severityNumber: 17,
              severityText: 'ERROR',
              body: { stringValue: 'payment declined for order 4711' },
              attributes: [{ key: 'order.id', value: { stringValue: '4711' } }],
              traceId,
              spanId,
            },
          ],
        },
      ],
    },
  ],
}

const traces = {
  resourceSpans: [
    {
      resource,
      scopeSpans: [
        {
          scope,
          spans: [
            {
              traceId,
              spanId,
              name: 'POST /orders',
              kind: 2,
              startTimeUnixNano: '1795251731500000000',
              endTimeUnixNano: '1795251731548120331',
              attributes: [{ key: 'region', value: { stringValue: 'eu' } }],
              status: { code: 2, message: 'payment declined' },
            },
          ],
        },
      ],
    },
  ],
}

export const exportExamples = { metrics, logs, traces }
