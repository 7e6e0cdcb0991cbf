// The first run: what to paste into a sender, what has arrived, and what was refused and why.

import { useState } from 'react'
import { useAddress } from '../../ui/address.ts'
import { Choice } from '../../ui/choice.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Scrolling } from '../../ui/scrolling.tsx'
import { Refusals } from './refusals.tsx'
import { type Sender, senders, snippetHints, snippetOf } from './snippets.ts'
import { TokenStep } from './token-step.tsx'
import { Waiting } from './waiting.tsx'

/** The text in the snippets until there is a token. */
const placeholder = 'INGEST_TOKEN'

export function SendPage() {
  const [{ sender: named }, change] = useAddress()
  const [token, setToken] = useState<string | null>(null)
  const sender = senders.find((one) => one === named) ?? 'curl'
  return (
    <>
      <h1>Send telemetry</h1>
      <TokenStep token={token} onToken={setToken} />
      <section className="section">
        <div className="row">
          <Choice
            label="Sender"
            value={sender}
            options={senders.map((one) => ({ value: one, text: one }))}
            onChange={(value) => change({ sender: value })}
          />
        </div>
        <Snippet sender={sender} token={token ?? placeholder} />
      </section>
      <Waiting />
      <Refusals />
    </>
  )
}

function Snippet({ sender, token }: { readonly sender: Sender; readonly token: string }) {
  const text = snippetOf(sender, window.location.origin, token)
  return (
    <>
      <p>{snippetHints[sender]}</p>
      <Scrolling label="Snippet" className="snippet">
        <pre>
          <code>{text}</code>
        </pre>
      </Scrolling>
      <CopyButton text={text} />
    </>
  )
}
