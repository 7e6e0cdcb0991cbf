// Removes the organisation, after its telemetry is erased. Afterwards no token works, so the page shows the
// signed checkpoints of both chains at once, and reads nothing more.

import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { auditOperations } from '../../../../contract/operations/audit.ts'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import type { OrganisationRemoved } from '../../../../contract/organisation/tenancy.ts'
import { call } from '../../api/client.ts'
import { noteRemoval } from '../../api/connection.ts'
import { useMe } from '../../api/session.ts'
import { exportAddress } from '../../api/shown-token.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Scrolling } from '../../ui/scrolling.tsx'
import { Failure, Notice } from '../../ui/states.tsx'
import { mistakeInWord, TypedWord } from '../../ui/typed-word.tsx'

export function RemoveOrganisation() {
  const { tenant_id: organisation } = useMe()
  const [word, setWord] = useState('')
  const [mistake, setMistake] = useState<string | null>(null)
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => call(tenancyOperations.removeOrganisation, { body: { confirm: word } }),
    onSuccess: noteRemoval,
  })
  if (data !== undefined) return <Removed removed={data} />
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = mistakeInWord(word, organisation)
    setMistake(found)
    if (found === null) mutate()
  }
  return (
    <form onSubmit={submit} aria-label="Remove the organisation">
      <Before />
      <TypedWord
        act="remove it"
        word={word}
        mistake={mistake}
        onChange={(typed) => {
          setWord(typed)
          setMistake(null)
        }}
      />
      <div className="fields">
        <ActButton color="red" loading={isPending}>
          Remove {organisation}
        </ActButton>
      </div>
      {error !== null && <Failure error={error} what="Nothing was removed" />}
    </form>
  )
}

function Before() {
  const { tenant_id: organisation } = useMe()
  const params = { organisation }
  return (
    <>
      <p>
        Every token, detector and setting goes, and nobody can sign in any more. The id is never given to
        somebody else. Ledger, audit log and certificates stay with the operator, and no longer with you.
      </p>
      <ul>
        <li>
          All telemetry must be erased, and every{' '}
          <Link to="/$organisation/erasures" params={params}>
            erasure
          </Link>{' '}
          finished. Under an approval rule a second person must have approved the last full erasure within the
          last 7 days.
        </li>
        <li>
          No{' '}
          <Link to="/$organisation/holds" params={params}>
            legal hold
          </Link>{' '}
          may be in force.
        </li>
        <li>
          Export <a href={exportAddress(auditOperations.exportLedger)}>the ledger</a> and{' '}
          <a href={exportAddress(auditOperations.exportAuditLog)}>the audit log</a> before: you can’t
          afterwards.
        </li>
      </ul>
    </>
  )
}

function Removed({
  removed: { checkpoints, removed_at, tenant_id },
}: {
  readonly removed: OrganisationRemoved
}) {
  const text = JSON.stringify(checkpoints, null, 2)
  return (
    <Notice title={`${tenant_id} is removed`} kind="ok" isAlert>
      <p>
        Removed <Instant at={removed_at} offset />. Your session has ended with every token. These signed
        checkpoints prove how both chains ended; they are shown once.
      </p>
      <Scrolling label="Checkpoints" className="snippet checkpoints">
        <pre>
          <code>{text}</code>
        </pre>
      </Scrolling>
      <CopyButton text={text} />
    </Notice>
  )
}
