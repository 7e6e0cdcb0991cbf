// Frames of HTTP/2 (RFC 9113) as bytes, which no client library sends: a library respects the limits that an
// attacker has to test. Headers are literals without indexing (RFC 7541 section 6.2.2).

const frameTypes = { headers: 1, reset: 3, settings: 4, ping: 6, continuation: 9 } as const

export const endHeaders = 4
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export function frame(
  type: keyof typeof frameTypes,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = frameTypes[type]
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Names and values of up to 126 octets, or of up to 16,000. */
export function headerBlock(headers: readonly (readonly [string, string])[]): Buffer {
  const parts = headers.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)])
  return Buffer.concat(parts)
}

/** A string with its length as an integer with a prefix of seven bits (RFC 7541 section 5.1). */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const length = [127]
  let rest = bytes.length - 127
  while (rest >= 128) {
    length.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  return Buffer.concat([Buffer.from([...length, rest]), bytes])
}

/** The headers of an export of logs over gRPC. */
export function exportHead(secret: string): (readonly [string, string])[] {
  return [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', '/opentelemetry.proto.collector.logs.v1.LogsService/Export'],
    [':authority', 'localhost'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['authorization', `Bearer ${secret}`],
  ]
}
