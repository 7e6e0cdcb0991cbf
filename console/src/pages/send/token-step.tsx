// A fresh token that may only send. Its secret is shown in the snippets of this page and nowhere else; it is
// lost when the page is left, because the service stores only its hash.

import { useMutation } from '@tanstack/react-query'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import { call } from '../../api/client.ts'
import { useMay } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure, OnlyFor } from '../../ui/states.tsx'

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
        <OnlyFor act="Creating a token" operation={tenancyOperations.createToken} /> Put one that you have
        into the snippet.
      </p>
    )
  }
  return (
    <>
      <ActButton loading={creating.isPending} onAct={() => creating.mutate()}>
        Create an ingest token
      </ActButton>
      {creating.error !== null && <Failure error={creating.error} what="The token could not be created" />}
    </>
  )
}
