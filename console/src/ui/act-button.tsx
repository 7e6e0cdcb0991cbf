// A button that changes something in the service. It can't be pressed while the service can't be reached, so
// that no input is lost in an attempt that must fail; the banner says why.

import { Button, type ButtonProps } from '@mantine/core'
import type { ReactNode } from 'react'
import { useConnection } from '../api/connection.ts'

interface ActButtonProps extends ButtonProps {
  /** Absent where the button sends its form. */
  readonly onAct?: () => void
  readonly label?: string
  readonly children: ReactNode
}

export function ActButton({ children, disabled = false, label, onAct, ...look }: ActButtonProps) {
  const { isOffline } = useConnection()
  return (
    <Button
      {...look}
      type={onAct === undefined ? 'submit' : 'button'}
      disabled={disabled || isOffline}
      {...(onAct !== undefined && { onClick: onAct })}
      {...(label !== undefined && { 'aria-label': label })}
    >
      {children}
    </Button>
  )
}
