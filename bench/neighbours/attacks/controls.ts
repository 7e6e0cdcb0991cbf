// What is no attack: the noise of the run, and what an attacker costs by computing on the same machine.

import { setImmediate } from 'node:timers/promises'
import type { Attack } from '../attack.ts'

export const controls: readonly Attack[] = [
  {
    name: 'nothing',
    does: 'No attack: the noise of this run.',
    run: (attacker) => attacker.wait(),
  },
  {
    name: 'busy-machine',
    does: 'No request; the attacker computes on one core, which it would have of its own elsewhere.',
    run: async (attacker) => {
      while (!attacker.isOver) {
        const untilMs = performance.now() + 10
        while (performance.now() < untilMs);
        await setImmediate()
      }
    },
  },
]
