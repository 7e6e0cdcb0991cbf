// Changes which erasures need a second person. A stricter rule is in force at once, a looser one a day later,
// so the form says which of both applies.

import { Radio } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import {
  type ApprovalRule,
  approvalRules,
  type DeletionPolicy,
} from '../../../../contract/deletion/governance.ts'
import { policyOperations } from '../../../../contract/operations/governance.ts'
import { call } from '../../api/client.ts'
import { policyQuery, possibleApproversQuery } from '../../api/organisation.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure } from '../../ui/states.tsx'
import { ruleTexts } from './rule-texts.ts'

export function ApprovalForm({ policy }: { readonly policy: DeletionPolicy }) {
  const client = useQueryClient()
  const inForce = policy.approval
  const [rule, setRule] = useState<ApprovalRule>(policy.pending?.approval ?? inForce)
  const { error, isPending, mutate } = useMutation({
    mutationFn: () => call(policyOperations.set, { body: { approval: rule } }),
    onSuccess: (saved) => {
      client.setQueryData(policyQuery.queryKey, saved)
      return client.invalidateQueries()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  const isUnchanged = rule === (policy.pending?.approval ?? inForce)
  return (
    <form onSubmit={submit} className="section" aria-labelledby="rule">
      <h2 id="rule">Change the rule</h2>
      <Radio.Group
        aria-label="A second person must approve"
        value={rule}
        onChange={(value) => setRule(approvalRules.find((one) => one === value) ?? rule)}
      >
        <div className="choices">
          {approvalRules.map((one) => (
            <Radio key={one} value={one} label={ruleTexts[one].label} description={ruleTexts[one].says} />
          ))}
        </div>
      </Radio.Group>
      <Effect before={inForce} rule={rule} />
      <div className="fields">
        <ActButton loading={isPending} disabled={isUnchanged}>
          Save the rule
        </ActButton>
      </div>
      {error !== null && <Failure error={error} what="The rule was not changed" />}
    </form>
  )
}

function Effect({ before, rule }: { readonly before: ApprovalRule; readonly rule: ApprovalRule }) {
  const change = approvalRules.indexOf(rule) - approvalRules.indexOf(before)
  return (
    <div role="status">
      {change > 0 && <p>It is stricter, so it is in force at once, also for erasures that have not begun.</p>}
      {change < 0 && (
        <p>It is looser, so it takes effect a day later: everybody who has to notice it has that long.</p>
      )}
      {rule !== 'none' && <Approvers />}
    </div>
  )
}

/** Where only one person can act, nothing can be erased under a strict rule; the form says so before. */
function Approvers() {
  const { data } = useQuery(possibleApproversQuery)
  if (data === undefined || data > 1) return null
  return (
    <p>
      <strong>There may be no second person:</strong> the operator made {data === 0 ? 'none' : 'only one'} of
      the working owner and admin tokens. Under this rule an erasure then waits until the operator makes
      another.
    </p>
  )
}
