// Makes a token with a name, a role and a lifetime. A role that the reader may not give is not offered.

import { NativeSelect, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { roles } from '../../../../contract/role.ts'
import { useMe } from '../../api/session.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { Failure } from '../../ui/states.tsx'
import { inherited, type Lifetime, lifetimeDays } from './lifetime.ts'
import { LifetimeField } from './lifetime-field.tsx'
import { lifetimeProblem, type NewToken, useMakeToken } from './make-token.ts'
import { roleTexts } from './role-texts.ts'

/** Most tokens are for programs that send. */
const usualRole = 'ingest'

export function CreateTokenForm({ onMade }: { readonly onMade: (token: NewToken) => void }) {
  const { role: ownRole, tenant_id: organisation } = useMe()
  const [name, setName] = useState('')
  const [role, setRole] = useState<string>(usualRole)
  const [lifetime, setLifetime] = useState<Lifetime>({ choice: inherited, typed: '' })
  const [mistake, setMistake] = useState<string | null>(null)
  const making = useMakeToken(null, (token) => {
    setName('')
    onMade(token)
  })
  const given = roles.filter((one) => one !== 'owner' || ownRole === 'owner')
  const chosen = given.find((one) => one === role) ?? usualRole
  const refused = lifetimeProblem(making.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = name.trim() === '' ? 'Name what it is for.' : null
    setMistake(found)
    if (found === null && lifetimeDays(lifetime) !== null)
      making.mutate({ name: name.trim(), role: chosen, lifetime })
  }
  return (
    <form onSubmit={submit} className="section" aria-labelledby="create">
      <h2 id="create">Create a token</h2>
      <div className="fields">
        <TextInput
          label="Name"
          description="what uses it; no personal data"
          w={260}
          maxLength={100}
          value={name}
          error={mistake}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <NativeSelect
          label="Role"
          description="what it may do"
          value={chosen}
          data={[...given]}
          onChange={(event) => setRole(event.currentTarget.value)}
        />
        <LifetimeField value={lifetime} error={refused} onChange={setLifetime} />
      </div>
      <p>
        <strong>{chosen}</strong> {roleTexts[chosen]}.
        {ownRole !== 'owner' && ' Only an owner can make an owner token.'}
      </p>
      {(chosen === 'owner' || chosen === 'admin') && (
        <p className="muted">
          It counts as the same person as you, so it can’t approve what you ask for. For a second person, the
          operator makes one:
          <code className="block">
            ./lethe token create --org {organisation} --role {chosen} --name NAME
          </code>
        </p>
      )}
      <ActButton loading={making.isPending}>Create the token</ActButton>
      {making.error !== null && refused === null && (
        <Failure error={making.error} what="The token was not created" />
      )}
    </form>
  )
}
