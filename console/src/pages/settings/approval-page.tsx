// The rule for which erasures a second person must approve: the rule in force, a waiting one, and how the
// service distinguishes two people.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { DeletionPolicy } from '../../../../contract/deletion/governance.ts'
import { policyOperations } from '../../../../contract/operations/governance.ts'
import { policyQuery } from '../../api/organisation.ts'
import { useMay, useMe } from '../../api/session.ts'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Forbidden, Loading, Notice, OnlyFor } from '../../ui/states.tsx'
import { ApprovalForm } from './approval-form.tsx'
import { ruleTexts } from './rule-texts.ts'

export function ApprovalPage() {
  const may = useMay(policyOperations.get)
  if (!may) return <Forbidden operation={policyOperations.get} what="reading the approval rule" />
  return <Policy />
}

function Policy() {
  const mayChange = useMay(policyOperations.set)
  const { data, error, refetch } = useQuery(policyQuery)
  if (data === undefined) {
    return error === null ? (
      <Loading height={280} label="Reading the approval rule" />
    ) : (
      <Failure error={error} what="The approval rule could not be read" onRetry={() => void refetch()} />
    )
  }
  return (
    <>
      <h2>Approval by a second person</h2>
      <p>
        In force: <strong>{ruleTexts[data.approval].label}</strong>. {ruleTexts[data.approval].says}
      </p>
      {data.pending !== null && <Pending pending={data.pending} />}
      {mayChange ? (
        // The form continues from the saved rule.
        <ApprovalForm key={`${data.approval} ${data.pending?.approval}`} policy={data} />
      ) : (
        <Notice title="Your role may read the rule, and not change it">
          <OnlyFor act="Changing it" operation={policyOperations.set} />
        </Notice>
      )}
      <SecondPerson policy={data} />
    </>
  )
}

function Pending({ pending }: { readonly pending: NonNullable<DeletionPolicy['pending']> }) {
  return (
    <Notice title={`A looser rule waits: ${ruleTexts[pending.approval].label}`} kind="warn">
      It takes effect <Instant at={pending.effective_at} offset />. An owner can stop it by saving the rule
      that is in force.
    </Notice>
  )
}

function SecondPerson({ policy: { second_person } }: { readonly policy: DeletionPolicy }) {
  const { tenant_id: organisation } = useMe()
  return (
    <section className="section">
      <h2>Who is a second person</h2>
      <p>An owner or admin with a token of another origin than the one that asked. {second_person.limit}</p>
      <p>The operator makes one with</p>
      <code className="block">./lethe token create --org {organisation} --role admin --name NAME</code>
      <p>
        <Link
          to="/$organisation/erasures"
          params={{ organisation }}
          search={{ status: 'awaiting_approval' } as never}
        >
          Erasures that wait for a second person
        </Link>
      </p>
    </section>
  )
}
