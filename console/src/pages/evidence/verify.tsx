// Verifies the whole chain in this browser, with progress, and names the first line that is wrong. Where the
// browser cannot verify, it shows the reason and the command to use instead.

import { Button } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { auditOperations, exportOf } from '../../../../contract/operations/audit.ts'
import { call } from '../../api/client.ts'
import { useMe } from '../../api/session.ts'
import { exportAddress, shownTokenHeaders } from '../../api/shown-token.ts'
import { Instant } from '../../ui/instant.tsx'
import { countOf, countText } from '../../ui/units.ts'
import type { ChainCheck } from './check-chain.ts'
import type { CheckOrder, CheckReport } from './check-worker.ts'

export type ChainName = 'ledger' | 'audit'

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly entries: number }
  | { readonly kind: 'failed'; readonly sentence: string }
  | { readonly kind: 'checked'; readonly check: ChainCheck }

/** @param total entries of the chain as far as the page knows */
export function Verify({ chain, total }: { readonly chain: ChainName; readonly total: number }) {
  const { tenant_id: tenantId } = useMe()
  const [state, setState] = useState<State>({ kind: 'idle' })
  const worker = useRef<Worker | null>(null)
  useEffect(() => () => worker.current?.terminate(), [])
  const hasCrypto = crypto.subtle !== undefined
  const file = `${chain}-${tenantId}.ndjson`
  const verify = async () => {
    worker.current?.terminate()
    setState({ kind: 'working', entries: 0 })
    try {
      const { keys } = await call(auditOperations.signingKeys)
      const { path } = exportOf[chain]
      worker.current = startWorker({ chain, tenantId, keys, path, headers: shownTokenHeaders() }, setState)
    } catch (error) {
      setState({ kind: 'failed', sentence: error instanceof Error ? error.message : '' })
    }
  }
  return (
    <section className="verify">
      <div className="row">
        <Button
          variant="default"
          disabled={!hasCrypto || state.kind === 'working'}
          onClick={() => void verify()}
        >
          Verify the chain
        </Button>
        <a href={exportAddress(exportOf[chain])} download={file}>
          Export all entries
        </a>
        <a href={auditOperations.signingKeys.path} download="lethe-jwks.json">
          Download the keys
        </a>
      </div>
      {hasCrypto ? (
        <StateLine state={state} total={total} />
      ) : (
        <p>
          <span className="status" data-kind="warn">
            not verified here
          </span>{' '}
          Browsers compute hashes and signatures only over https and on the machine itself. Export the entries
          and use the command.
        </p>
      )}
      <p className="muted">
        Anybody can verify the export without this service:{' '}
        <code>
          ./lethe {chain} verify {file} --jwks lethe-jwks.json
        </code>
      </p>
    </section>
  )
}

function startWorker(order: CheckOrder, setState: (state: State) => void): Worker {
  const worker = new Worker(new URL('./check-worker.ts', import.meta.url), { type: 'module' })
  worker.onmessage = ({ data }: MessageEvent<CheckReport>) => {
    if (data.kind === 'progress') return setState({ kind: 'working', entries: data.entries })
    setState(data.kind === 'done' ? { kind: 'checked', check: data.check } : data)
    worker.terminate()
  }
  worker.onerror = () => setState({ kind: 'failed', sentence: 'The check could not be started.' })
  worker.postMessage(order)
  return worker
}

function StateLine({ state, total }: { readonly state: State; readonly total: number }) {
  if (state.kind === 'idle') return <p className="muted">Not verified since this page was opened.</p>
  if (state.kind === 'working') {
    return (
      <p role="status">
        <progress
          className="progress"
          value={state.entries}
          max={Math.max(total, state.entries, 1)}
          aria-label="Entries verified"
        />
        {countText(state.entries)} of {countOf(Math.max(total, state.entries), 'entry', 'entries')}
      </p>
    )
  }
  if (state.kind === 'failed') {
    return (
      <p role="alert">
        <span className="status" data-kind="warn">
          not verified
        </span>{' '}
        {state.sentence}
      </p>
    )
  }
  return <CheckResult check={state.check} />
}

function CheckResult({ check }: { readonly check: ChainCheck }) {
  if (check.kind === 'broken') {
    return (
      <p role="alert">
        <span className="status" data-kind="danger">
          broken
        </span>{' '}
        Line {countText(check.line)} of the export: {check.problem}. Nothing from there on can be trusted.
      </p>
    )
  }
  return (
    <p role="status">
      <span className="status" data-kind="ok">
        valid
      </span>{' '}
      {check.entries === 1
        ? 'The only entry follows'
        : `All ${countText(check.entries)} entries follow each other`}
      ; the end is signed by key <code title={check.keyId}>{check.keyId.slice(0, 8)}…</code> at{' '}
      <Instant at={check.at} />. Verified in this browser.
    </p>
  )
}
