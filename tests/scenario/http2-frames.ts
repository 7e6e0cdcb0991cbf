// An HTTP/2 client without a library, so that a test can send what no client would send.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { frame, preface } from '../../bench/neighbours/attacks/http2-frames.ts'

export const flags = { none: 0, endStream: 1, endHeaders: 4 }

export const cancel = Buffer.from([0, 0, 0, 8])

export class RawHttp2 {
  readonly #socket: Socket
  readonly #closed: Promise<unknown>
  isClosed = false

  /** @param localAddress the address of the client, one of 127.0.0.0/8 */
  constructor(address: string, localAddress = '127.0.0.1') {
    const [host, port] = address.split(':')
    this.#socket = connect({ port: Number(port), host, localAddress })
    this.#socket.on('error', () => {})
    this.#socket.resume()
    this.#closed = once(this.#socket, 'close').then(() => {
      this.isClosed = true
    })
    this.#socket.write(Buffer.concat([preface, frame('settings', flags.none, 0)]))
  }

  /** Resolves when the frames are written, or the connection is closed. */
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
