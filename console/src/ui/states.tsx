// The states that every page shares: loading, empty with its reason, forbidden with the role that may, and an
// error with its request id and a retry. None changes the frame of the page.

import { Button, Skeleton } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import type { Operation } from '../../../contract/operation.ts'
import { Refusal, Unreachable } from '../api/client.ts'
import { rolesText, useMe } from '../api/session.ts'
import { after } from '../clock.ts'

/** Shorter waits show nothing, because a flash is noise. */
const skeletonAfterMs = 150

/** Returns whether something loads for so long that it should be told. */
export function useIsSlow(): boolean {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => after(skeletonAfterMs, () => setSlow(true)), [])
  return isSlow
}

/** A placeholder of the final size while data loads. */
export function Loading({ height, label }: { readonly height: number; readonly label: string }) {
  const isSlow = useIsSlow()
  return (
    <div role="status" aria-label={label} style={{ height }}>
      {isSlow && <Skeleton height={height} radius="sm" />}
    </div>
  )
}

/**
 * Returns whether data has ever loaded. Content below a list of unknown length is shown together with the
 * list, so that it does not move. Afterwards it stays, because a person may type in it.
 */
export function useOnceRead({
  data,
  error,
}: {
  readonly data: unknown
  readonly error: Error | null
}): boolean {
  const [wasRead, setRead] = useState(false)
  const isRead = wasRead || data !== undefined || error !== null
  if (isRead && !wasRead) setRead(true)
  return isRead
}

interface NoticeProps {
  readonly title: string
  readonly children?: ReactNode
  /** What to do next. */
  readonly action?: ReactNode
  readonly kind?: 'plain' | 'danger' | 'warn' | 'ok'
  /** Whether it is read aloud when it appears. */
  readonly isAlert?: boolean
}

export function Notice({ action, children, isAlert = false, kind = 'plain', title }: NoticeProps) {
  return (
    <section className="notice" data-kind={kind} {...(isAlert && { role: 'alert' })}>
      <h2 className="notice-title">{title}</h2>
      {children !== undefined && <div className="notice-text">{children}</div>}
      {action !== undefined && <div className="notice-action">{action}</div>}
    </section>
  )
}

interface OnlyForProps {
  /** Such as `Erasing`, before "is for". */
  readonly act: string
  readonly operation: Operation
}

/** Which roles may call an operation, for somebody whose role may not. */
export function OnlyFor({ act, operation }: OnlyForProps) {
  const { role } = useMe()
  return (
    <>
      {act} is for {rolesText(operation)}; you are signed in as {role}.
    </>
  )
}

/** For a role that may not call the operation. */
export function Forbidden({ operation, what }: { readonly operation: Operation; readonly what: string }) {
  return (
    <Notice title={`Your role does not permit ${what}`}>
      <OnlyFor act="This" operation={operation} />
    </Notice>
  )
}

interface FailureProps {
  readonly error: Error
  readonly what: string
  readonly onRetry?: () => void
}

/** What went wrong, for a person and for the operator who searches the log. */
export function Failure({ error, onRetry, what }: FailureProps) {
  const refusal = error instanceof Refusal ? error : null
  const seconds = refusal?.retryAfterSeconds ?? 0
  const title = error instanceof Unreachable ? 'The service can’t be reached' : what
  return (
    <Notice
      title={title}
      kind="danger"
      isAlert
      {...(onRetry && {
        action: <RetryButton key={refusal?.requestId} seconds={seconds} onRetry={onRetry} />,
      })}
    >
      {refusal !== null || error instanceof Unreachable
        ? error.message
        : 'The console made a mistake; reload the page.'}
      {refusal?.requestId != null && (
        <>
          {' '}
          Request <code>{refusal.requestId}</code>
        </>
      )}
      {onRetry === undefined && <RepeatTime key={refusal?.requestId} seconds={seconds} />}
    </Notice>
  )
}

/** Returns how many of the seconds are left. */
function useSecondsLeft(seconds: number): number {
  const [left, setLeft] = useState(seconds)
  useEffect(() => (left > 0 ? after(1_000, () => setLeft(left - 1)) : undefined), [left])
  return left
}

interface Delayed {
  /** What the service asked to wait for; zero where it asked for nothing. */
  readonly seconds: number
}

/** When an act that was refused can be repeated; not read aloud every second. */
export function RepeatTime({ seconds }: Delayed) {
  const left = useSecondsLeft(seconds)
  if (seconds === 0) return null
  return <p aria-live="off">{left > 0 ? `It can be repeated in ${left} s.` : 'It can be repeated now.'}</p>
}

/** Waits for as many seconds as the service said, visibly. */
function RetryButton({ onRetry, seconds }: Delayed & { readonly onRetry: () => void }) {
  const left = useSecondsLeft(seconds)
  return (
    <Button variant="default" disabled={left > 0} onClick={onRetry}>
      {left > 0 ? `Retry in ${left} s` : 'Retry'}
    </Button>
  )
}
