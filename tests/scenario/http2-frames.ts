// An HTTP/2 client below any library: frames as they are on the wire (RFC 9113), so that a test can send what no client
// would.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const frameTypes = { data: 0, headers: 1, resetStream: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 }

export const flags = { none: 0, endStream: 1, endHeaders: 4 }

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export function frame(
  type: keyof typeof frameTypes,
  flag: number,
  streamId: number,
  payload: Buffer,
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = frameTypes[type]
  head[4] = flag
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

/** RFC 7541 section 6.2.2: a literal without indexing, with a new name, without Huffman. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, 'latin1')
    if (bytes.length > 126) throw new Error('The length of a text has one byte here.')
    return Buffer.concat([Buffer.from([bytes.length]), bytes])
  }
  const literal = ([name, value]: [string, string]) =>
    Buffer.concat([Buffer.from([0]), text(name), text(value)])
  return Buffer.concat(Object.entries(headers).map(literal))
}

export const cancel = Buffer.from([0, 0, 0, 8])

export class RawHttp2 {
  readonly #socket: Socket
  readonly #closed: Promise<unknown>
  isClosed = false

  constructor(address: string) {
    const [host, port] = address.split(':')
    this.#socket = connect(Number(port), host)
    this.#socket.on('error', () => {})
    this.#socket.resume()
    this.#closed = once(this.#socket, 'close').then(() => {
      this.isClosed = true
    })
    this.#socket.write(
      Buffer.concat([Buffer.from(preface), frame('settings', flags.none, 0, Buffer.alloc(0))]),
    )
  }

  /** Resolves when the frames are gone, or the connection is. */
  async send(frames: readonly Buffer[]): Promise<void> {
    if (this.isClosed) return
    const sent = new Promise<void>((resolve) => this.#socket.write(Buffer.concat(frames), () => resolve()))
    await Promise.race([sent, this.#closed])
  }

  /** Resolves when the service has ended the connection. */
  async closed(): Promise<void> {
    await this.#closed
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
