// The states that every page shares: loading, empty with its reason, forbidden with the role that may, and an
// error with its request id and a retry. Each keeps the frame of the page.

import { Button, Skeleton } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import type { Operation } from '../../../contract/operation.ts'
import { Refusal, Unreachable } from '../api/client.ts'
import { rolesText, useMe } from '../api/session.ts'
import { after } from '../clock.ts'

/** Shorter waits show nothing, because a flash is noise. */
const skeletonAfterMs = 150

/** A place of the final size while something loads. */
export function Loading({ height, label }: { readonly height: number; readonly label: string }) {
  const [isShown, setShown] = useState(false)
  useEffect(() => after(skeletonAfterMs, () => setShown(true)), [])
  return (
    <div role="status" aria-label={label} style={{ height }}>
      {isShown && <Skeleton height={height} radius="sm" />}
    </div>
  )
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

/** For a role that may not call the operation. */
export function Forbidden({ operation, what }: { readonly operation: Operation; readonly what: string }) {
  const { role } = useMe()
  return (
    <Notice title={`Your role does not permit ${what}`}>
      This is for {rolesText(operation)}; you are signed in as {role}.
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
  const title = error instanceof Unreachable ? 'The service can’t be reached' : what
  return (
    <Notice
      title={title}
      kind="danger"
      isAlert
      {...(onRetry && {
        action: <RetryButton seconds={refusal?.retryAfterSeconds ?? 0} onRetry={onRetry} />,
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
    </Notice>
  )
}

/** Waits for as many seconds as the service said, visibly. */
function RetryButton({ onRetry, seconds }: { readonly seconds: number; readonly onRetry: () => void }) {
  const [left, setLeft] = useState(seconds)
  useEffect(() => (left > 0 ? after(1_000, () => setLeft(left - 1)) : undefined), [left])
  return (
    <Button variant="default" disabled={left > 0} onClick={onRetry}>
      {left > 0 ? `Retry in ${left} s` : 'Retry'}
    </Button>
  )
}
