// One HTTP request of a bench's client, as cheaply as Node can: without retries, redirects or parsing.

import { type RequestOptions, request } from 'node:http'

export interface Answer {
  /** 0 where there was no response; then `text` is `timeout`, `cut` or a system error code. */
  readonly status: number
  readonly text: string
  /** The service had closed the kept connection; every client sends such a request again. */
  readonly wasClosed: boolean
}

/** Maximum length of a response text that is stored. */
const keptBytes = 65_536

/**
 * Reads the response completely. Never rejects. Ends with `timeout` where the socket rests for
 * `options.timeout`, or where there is no complete response after `limitMs`.
 */
export function ask(options: RequestOptions, body?: Buffer, limitMs?: number): Promise<Answer> {
  return new Promise((resolve) => {
    const none = (text: string, wasClosed = false) => resolve({ status: 0, text, wasClosed })
    const asked = request(options, (answer) => {
      const chunks: Buffer[] = []
      let size = 0
      answer.on('data', (chunk: Buffer) => {
        if (size < keptBytes) chunks.push(chunk)
        size += chunk.length
      })
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: answer.statusCode ?? 0, text, wasClosed: false })
      })
      answer.on('error', () => none('cut'))
    })
    const giveUp = () => asked.destroy(Object.assign(new Error('No response.'), { code: 'timeout' }))
    const timer = limitMs === undefined ? undefined : setTimeout(giveUp, limitMs)
    asked.on('timeout', giveUp)
    asked.on('close', () => clearTimeout(timer))
    asked.on('error', (error) => {
      const code = codeOf(error)
      none(code, asked.reusedSocket && code !== 'timeout')
    })
    asked.end(body)
  })
}

/** The system error code, or the message. */
export function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
