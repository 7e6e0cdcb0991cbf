// OpenAPI 3.1 from the same declarations that validate. The document is generated and serialised once, at the first
// request, because that takes as long as hundreds of other requests.

import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { jsonSchemaTransform } from 'fastify-type-provider-zod'
import { oldNameOf, takeOldNames } from '../../../contract/old-names.ts'
import { isRecord } from '../../core/is-record.ts'
import { frontRefusals } from '../refusals.ts'
import { StaticAnswer } from './static-answer.ts'

/** Call before the routes are added, because it watches them being added. Returns the document, for where it is served. */
export async function describeRoutes(http: FastifyInstance, version: string): Promise<StaticAnswer> {
  await http.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Lethe',
        version,
        description:
          'Holds metrics, logs and traces per organisation, watches them with anomaly detectors, and lets an organisation erase its own telemetry and prove it.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      tags: [
        { name: 'Deletion', description: 'Erase your organisation’s own telemetry and watch it go.' },
        { name: 'Evidence', description: 'The ledger of deletions and the audit log, each a hash chain.' },
        { name: 'Detection', description: 'Detectors and the anomalies they find.' },
        { name: 'Telemetry', description: 'Read what is held.' },
        { name: 'Usage', description: 'What is stored, what is sent, and how much of it.' },
        {
          name: 'Ingest',
          description:
            'OTLP/HTTP and Prometheus remote write; point an OpenTelemetry SDK, a Collector or Prometheus here. OTLP/gRPC has a port of its own.',
        },
        { name: 'Organisation', description: 'Who you are, and access tokens.' },
        { name: 'Operations', description: 'For whoever runs the service.' },
      ],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'An access token of your organisation.' },
          basic: {
            type: 'http',
            scheme: 'basic',
            description: 'An access token as the password, with any user name; for sending telemetry only.',
          },
        },
      },
    },
    transform: (declared) => {
      const described = jsonSchemaTransform({ ...declared, schema: withFrontRefusals(declared) })
      for (const part of [described.schema?.querystring, described.schema?.body]) addOldNames(part)
      return described
    },
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('The document is not OpenAPI 3.')
      markDeprecatedParameters(document.openapiObject.paths)
      return document.openapiObject
    },
  })
  return new StaticAnswer({
    type: 'application/json; charset=utf-8',
    make: () => JSON.stringify(http.swagger()),
  })
}

/** What the operation says of a status itself is kept. */
function withFrontRefusals({ schema, route }: { schema: FastifySchema; route: RouteOptions }): FastifySchema {
  if (schema?.hide === true) return schema
  const own = isRecord(schema?.response) ? schema.response : {}
  return { ...schema, response: { ...frontRefusals([route.method].flat(), route.config ?? {}), ...own } }
}

/** Describes each field a second time, under the old name that is accepted too. */
function addOldNames(part: unknown): void {
  if (!isRecord(part)) return
  const { properties } = part
  for (const [name, current] of Object.entries(takeOldNames(part))) {
    if (!isRecord(properties) || !isRecord(properties[current]))
      throw new Error(`There is no field ${current}.`)
    properties[name] = { ...properties[current], ...oldNameOf(current) }
  }
}

/** The generator leaves the mark in the schema of a parameter; readers look for it at the parameter. */
function markDeprecatedParameters(paths: object | undefined): void {
  for (const operations of Object.values(paths ?? {})) {
    for (const operation of Object.values(operations)) {
      const parameters: unknown = isRecord(operation) ? operation.parameters : undefined
      for (const parameter of Array.isArray(parameters) ? parameters : []) {
        if (isRecord(parameter.schema) && parameter.schema.deprecated === true) parameter.deprecated = true
      }
    }
  }
}
