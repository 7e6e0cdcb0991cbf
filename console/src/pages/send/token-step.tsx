// A fresh token that may only send. Its secret is shown in the snippets of this page and nowhere else; it is
// gone when the page is left, because the service stores only its hash.

import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import { call } from '../../api/client.ts'
import { rolesText, useMay } from '../../api/session.ts'
import { Failure } from '../../ui/states.tsx'

interface TokenStepProps {
  readonly token: string | null
  readonly onToken: (token: string) => void
}

export function TokenStep({ onToken, token }: TokenStepProps) {
  const may = useMay(tenancyOperations.createToken)
  const creating = useMutation({
    mutationFn: () => call(tenancyOperations.createToken, { body: { name: 'first steps', role: 'ingest' } }),
    onSuccess: (created) => onToken(created.token),
  })
  if (token !== null) {
    return (
      <p role="status">
        The snippets have a new token named <strong>first steps</strong>, which may only send. It is shown
        once: copy what you need before you leave this page.
      </p>
    )
  }
  if (!may) {
    return (
      <p>
        Creating a token is for {rolesText(tenancyOperations.createToken)}; put one that you have into the
        snippet.
      </p>
    )
  }
  return (
    <>
      <Button loading={creating.isPending} onClick={() => creating.mutate()}>
        Create an ingest token
      </Button>
      {creating.error !== null && <Failure error={creating.error} what="The token could not be created" />}
    </>
  )
}
