// Serves the OpenAPI document. It is made and serialised once, at the first request, because that takes as
// long as hundreds of other requests.

import { openApiDocument } from '../../../contract/openapi/document.ts'
import type { Operation } from '../../../contract/operation.ts'
import { StaticAnswer } from './static-answer.ts'

export function openApiAnswer(operations: readonly Operation[], version: string): StaticAnswer {
  return new StaticAnswer({
    type: 'application/json; charset=utf-8',
    make: () => JSON.stringify(openApiDocument(operations, version)),
  })
}
