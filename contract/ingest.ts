// Bodies that OTLP/HTTP answers as JSON. Their names are those of the protobuf JSON
// mapping, not of this contract.

import { z } from 'zod'

export const ExportResult = z
  .looseObject({
    partialSuccess: z
      .looseObject({
        rejectedDataPoints: z.string().optional().describe('Of metrics: a 64-bit integer as text.'),
        rejectedLogRecords: z.string().optional().describe('Of logs.'),
        rejectedSpans: z.string().optional().describe('Of traces.'),
        errorMessage: z.string().optional().describe('Why they were left out, for a developer.'),
      })
      .optional()
      .describe('Absent where all of it is committed.'),
  })
  .describe('An Export<Signal>ServiceResponse.')
  .meta({ id: 'ExportResult' })

export const RpcStatus = z
  .looseObject({
    code: z.int().describe('Of google.rpc.Code.'),
    message: z.string(),
  })
  .describe('A google.rpc.Status, as the OTLP specification has refusals.')
  .meta({ id: 'RpcStatus' })
