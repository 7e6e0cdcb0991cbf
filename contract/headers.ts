// Headers of answers that mean something to a client. Those that every answer, or every refusal of a kind,
// has are added by `openapi/`; an operation names only its own.

export const responseHeaders = {
  'x-request-id': 'Names this request in the log of the service.',
  'retry-after': 'Seconds after which asking again is worth it.',
  'www-authenticate': 'How to authenticate (RFC 6750), and what was wrong with the token that was sent.',
  etag: 'The version that was answered; send it as If-Match with a change of it.',
  location: 'The path of what this request has created, or of what it created before.',
  vary: 'Request headers that the form of the answer depends on.',
  'cache-control': 'How long the answer may be kept, and by whom.',
  'content-disposition': 'The name under which to save the file.',
  'x-prometheus-remote-write-samples-written': 'Samples that were stored.',
  'x-prometheus-remote-write-histograms-written': 'Native histograms that were stored.',
  'x-prometheus-remote-write-exemplars-written': 'Exemplars that were stored.',
} as const satisfies Record<string, string>

export type ResponseHeader = keyof typeof responseHeaders
