// The worker that checks a chain while the page stays usable: it reads the export as it arrives and never
// keeps more of it than a line. The session cookie is sent by the browser.

import { type ChainCheck, type ChainExpected, checkChain } from './check-chain.ts'

/** What the page sends once. */
export interface CheckOrder extends ChainExpected {
  /** The address of the export. */
  readonly path: string
  /** Names the token that the page shows. */
  readonly headers: Readonly<Record<string, string>>
}

export type CheckReport =
  | { readonly kind: 'progress'; readonly entries: number }
  | { readonly kind: 'done'; readonly check: ChainCheck }
  /** The export could not be read. */
  | { readonly kind: 'failed'; readonly sentence: string }

self.onmessage = ({ data }: MessageEvent<CheckOrder>) => void run(data)

async function run({ headers, path, ...expected }: CheckOrder): Promise<void> {
  try {
    const response = await fetch(path, { headers, credentials: 'same-origin', redirect: 'error' })
    if (!response.ok || response.body === null) {
      return report({ kind: 'failed', sentence: `The service responded with ${response.status}.` })
    }
    const onProgress = (entries: number) => report({ kind: 'progress', entries })
    report({ kind: 'done', check: await checkChain(linesOf(response.body), expected, onProgress) })
  } catch {
    report({ kind: 'failed', sentence: 'The export could not be read to its end.' })
  }
}

function report(told: CheckReport): void {
  self.postMessage(told)
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const reader = body.getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    rest += decoder.decode(value, { stream: !done })
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (done) break
  }
  if (rest !== '') yield rest
}
