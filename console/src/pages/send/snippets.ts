// Snippets to paste into a sender: each is complete with this address and a token.

export const senders = ['curl', 'SDK', 'Collector', 'Prometheus'] as const
export type Sender = (typeof senders)[number]

/** Where the snippet goes. */
export const snippetHints: Readonly<Record<Sender, string>> = {
  curl: 'In a terminal: sends one log record.',
  SDK: 'In the environment of a program with an OpenTelemetry SDK.',
  Collector: 'In the configuration of an OpenTelemetry Collector; name the exporter in your pipelines.',
  Prometheus: 'In prometheus.yml.',
}

export function snippetOf(sender: Sender, address: string, token: string): string {
  return snippets[sender](address, token)
}

const snippets: Readonly<Record<Sender, (address: string, token: string) => string>> = {
  curl: (address, token) => `curl -sS -w '%{http_code}\\n' '${address}/v1/logs' \\
  -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' \\
  -d '{"resourceLogs": [{
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "first-steps"}}]},
    "scopeLogs": [{"logRecords": [
      {"timeUnixNano": "'"$(date +%s)"'000000000", "body": {"stringValue": "hello"}}]}]}]}'`,
  SDK: (address, token) => `export OTEL_EXPORTER_OTLP_ENDPOINT='${address}'
export OTEL_EXPORTER_OTLP_PROTOCOL='http/protobuf'
export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20${token}'
export OTEL_SERVICE_NAME='my-service'`,
  Collector: (address, token) => `exporters:
  otlphttp/lethe:
    endpoint: ${address}
    headers:
      Authorization: Bearer ${token}`,
  Prometheus: (address, token) => `remote_write:
  - url: ${address}/api/v1/write
    authorization:
      credentials: ${token}`,
}
