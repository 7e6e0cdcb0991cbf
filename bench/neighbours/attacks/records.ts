// Attacks on what is kept forever or read as a whole: audit entries, ledgers, tokens.

import type { Attack, Attacker } from '../attack.ts'

/** Writes audit entries: setting the same policy again has no other effect. */
async function addEntries(attacker: Attacker, perLoop: number): Promise<void> {
  const json = { approval: 'none' }
  for (let at = 0; at < perLoop; at++)
    await attacker.call('PUT', '/usage/storage/deletion-policy', { role: 'owner', json })
}

export const attacksOnRecords: readonly Attack[] = [
  {
    name: 'refused-erasures',
    does: 'Thirty-two connections request erasures with a wrong confirmation, 400 of which write an audit entry.',
    run: (attacker) => {
      const json = { scope: 'all', confirm: 'not-my-name' }
      return attacker.loops(32, () =>
        attacker.call('POST', '/usage/storage/deletions', { role: 'admin', json }),
      )
    },
  },
  {
    name: 'audit-entries',
    does: 'Thirty-two connections set a policy again and again; each writes an audit entry.',
    run: (attacker) => attacker.loops(32, () => addEntries(attacker, 1)),
  },
  {
    name: 'exports',
    does: 'Sixteen connections export the audit log and the ledger after some thousand entries.',
    prepare: async (attacker) => {
      await Promise.all(Array.from({ length: 16 }, () => addEntries(attacker, 120)))
    },
    run: (attacker) =>
      attacker.loops(16, (loop) =>
        attacker.call('GET', loop % 2 === 0 ? '/audit-log/export' : '/ledger/export', { role: 'admin' }),
      ),
  },
  {
    name: 'lists',
    does: 'Thirty-two connections read lists of 500 entries.',
    prepare: async (attacker) => {
      await Promise.all(Array.from({ length: 16 }, () => addEntries(attacker, 60)))
    },
    run: (attacker) => {
      const lists = ['/audit-log', '/tokens', '/usage/storage/deletions', '/anomalies']
      return attacker.loops(32, (loop) =>
        attacker.call('GET', `${lists[loop % lists.length]}?limit=500`, { role: 'admin' }),
      )
    },
  },
  {
    name: 'storage-sizes',
    does: 'Thirty-two connections request the usage.',
    run: (attacker) => attacker.loops(32, () => attacker.call('GET', '/usage/storage', { role: 'viewer' })),
  },
  {
    name: 'many-tokens',
    does: 'Sixteen connections create tokens and revoke them.',
    run: (attacker) =>
      attacker.loops(16, async () => {
        const json = { name: 'one of many', role: 'viewer' }
        const { text } = await attacker.call('POST', '/tokens', { role: 'owner', json })
        const id = /"id":"([^"]+)"/.exec(text)?.[1]
        if (id !== undefined) await attacker.call('DELETE', `/tokens/${id}`, { role: 'owner' })
      }),
  },
  {
    name: 'token-lines',
    does: 'A program makes each token with the one before it and revokes that one; sixteen connections list them.',
    run: async (attacker) => {
      let secret = attacker.orders.secrets.owner
      await attacker.loops(17, async (loop) => {
        if (loop > 0) return attacker.call('GET', '/tokens?limit=1', { role: 'owner' })
        const headers = { authorization: `Bearer ${secret}` }
        const json = { name: 'the next one', role: 'owner' }
        const { text } = await attacker.call('POST', '/tokens', { headers, json })
        const made: { token?: string; made_with?: string } = text.startsWith('{') ? JSON.parse(text) : {}
        if (made.token === undefined) return
        const isFirst = secret === attacker.orders.secrets.owner
        secret = made.token
        if (!isFirst)
          await attacker.call('DELETE', `/tokens/${made.made_with}`, {
            headers: { authorization: `Bearer ${secret}` },
          })
      })
    },
  },
]
