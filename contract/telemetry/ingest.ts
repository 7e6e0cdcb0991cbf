// JSON bodies of OTLP/HTTP responses. Their names are those of the protobuf JSON mapping, not of this
// contract.

import { z } from 'zod'

export const ExportResult = z
  .looseObject({
    partialSuccess: z
      .looseObject({
        rejectedDataPoints: z.string().optional().describe('For metrics: a 64-bit integer as text.'),
        rejectedLogRecords: z.string().optional().describe('For logs.'),
        rejectedSpans: z.string().optional().describe('For traces.'),
        errorMessage: z.string().optional().describe('Why they were rejected, for developers.'),
      })
      .optional()
      .describe('Absent where everything was committed.'),
  })
  .describe('An Export<Signal>ServiceResponse.')
  .meta({ id: 'ExportResult' })

export const RpcStatus = z
  .looseObject({
    code: z.int().describe('A google.rpc.Code.'),
    message: z.string(),
  })
  .describe('A google.rpc.Status, which the OTLP specification requires for refusals.')
  .meta({ id: 'RpcStatus' })
