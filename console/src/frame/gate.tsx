// Shows a page to a signed-in person, and the sign-in at the same address to everybody else. A session that
// ends while a page is open is renewed in a dialog, so that nothing typed is lost.

import { Modal } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Refusal } from '../api/client.ts'
import { useConnection } from '../api/connection.ts'
import { meQuery } from '../api/session.ts'
import { Failure, Loading } from '../ui/states.tsx'
import { SignInForm, SignInScreen } from './sign-in.tsx'

export function Gate({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch } = useQuery(meQuery)
  const { isSignedOut } = useConnection()
  if (data !== undefined) {
    return (
      <>
        {children}
        <Modal
          opened={isSignedOut}
          onClose={() => undefined}
          withCloseButton={false}
          closeOnClickOutside={false}
          closeOnEscape={false}
          title="Your session has ended"
          centered
        >
          <p className="muted">
            What you typed is still here. Sign in with the same token to continue; another one starts over.
          </p>
          <SignInForm />
        </Modal>
      </>
    )
  }
  if (error instanceof Refusal && error.status === 401) return <SignInScreen />
  return (
    <main className="alone">
      {error === null ? (
        <Loading height={240} label="Loading the console" />
      ) : (
        <Failure error={error} what="The console could not ask who you are" onRetry={() => void refetch()} />
      )}
    </main>
  )
}
