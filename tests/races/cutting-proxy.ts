// A proxy in front of a PostgreSQL server that ends connections at a chosen point: before a commit reaches
// the server, after the server has responded to it, or all connections, as when the server restarts. It knows
// nothing of the protocol but the text of a commit and of its response.

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Where the connection of the next commit ends: the server has not received it, or has carried it out. */
export type CommitCut = 'before the server' | 'after the server'

interface CuttingProxy {
  readonly host: string
  readonly port: number
  /** Cuts the connection of the next commit. */
  cutNextCommit(at: CommitCut): void
  /** Ends every connection, and refuses new ones until the function that is returned is called. */
  goDown(): () => void
  /** Ends every connection; new ones lead to the server with that socket. */
  moveTo(socketPath: string): void
  close(): Promise<void>
}

const [commit, committed] = [Buffer.from('commit\0'), Buffer.from('COMMIT\0')]

/** `firstPath` is the socket of the server. */
export async function openCuttingProxy(firstPath: string): Promise<CuttingProxy> {
  let socketPath = firstPath
  let cut: CommitCut | null = null
  let isDown = false
  const open = new Set<Socket>()
  const server = createServer((client) => {
    if (isDown) return client.destroy()
    const upstream = connect(socketPath)
    const both = [client, upstream]
    const end = () => {
      for (const socket of both) socket.destroy()
    }
    for (const socket of both) {
      open.add(socket)
      socket.on('error', end).on('close', () => {
        open.delete(socket)
        end()
      })
    }
    let isCutting = false
    client.on('data', (bytes) => {
      const isCommit = bytes.includes(commit)
      if (isCommit && cut === 'before the server') {
        cut = null
        return end()
      }
      if (isCommit && cut === 'after the server') {
        cut = null
        isCutting = true
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (isCutting && bytes.includes(committed)) return end()
      client.write(bytes)
    })
  })
  const endAll = () => {
    for (const socket of open) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.')
  return {
    host: '127.0.0.1',
    port: address.port,
    cutNextCommit(at) {
      cut = at
    },
    moveTo(path) {
      socketPath = path
      endAll()
    },
    goDown() {
      isDown = true
      endAll()
      return () => {
        isDown = false
      }
    },
    async close() {
      endAll()
      server.close()
      await once(server, 'close')
    },
  }
}
