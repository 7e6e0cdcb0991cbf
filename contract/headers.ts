// Response headers that have a meaning for clients. `openapi/` adds those of every response, or of every
// refusal of a kind; an operation lists only its own.

export const responseHeaders = {
  'x-request-id': 'The id of this request in the log of the service.',
  'retry-after': 'Seconds to wait before a retry.',
  'www-authenticate': 'How to authenticate (RFC 6750), and what was wrong with the token that was sent.',
  etag: 'The version of the response; send it as If-Match when you change the resource.',
  location: 'The path of the resource that this request created, now or at an earlier try.',
  vary: 'Request headers that the form of the response depends on.',
  'cache-control': 'Who may cache the response, and for how long.',
  'content-disposition': 'The suggested file name.',
  'set-cookie': 'The session of the console, for a browser to keep; no script can read it.',
  'x-prometheus-remote-write-samples-written': 'Samples that were stored.',
  'x-prometheus-remote-write-histograms-written': 'Native histograms that were stored.',
  'x-prometheus-remote-write-exemplars-written': 'Exemplars that were stored.',
} as const satisfies Record<string, string>

export type ResponseHeader = keyof typeof responseHeaders
