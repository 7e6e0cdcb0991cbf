// Controls without an attack: the noise of the run, and the cost of an attacker that only computes on the
// same machine.

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
    does: 'No request; the attacker only computes on one core. A real attacker would do that on its own machine.',
    run: async (attacker) => {
      while (!attacker.isOver) {
        const untilMs = performance.now() + 10
        while (performance.now() < untilMs);
        await setImmediate()
      }
    },
  },
]
