// The attacker in its own process, so that its CPU is separate from the service's and its exit closes
// everything it left open. Reads the name of the attack and its orders as JSON from standard input; prints a
// line of JSON when it begins, after its preparation, and one when the time is over.

import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Attacker, type AttackerOrders } from './attack.ts'
import { attackNamed } from './attacks/every-attack.ts'

export interface ChildOrders extends AttackerOrders {
  readonly attack: string
}

/** What it received during the preparation. */
export interface Begun {
  readonly begun: true
  readonly prepared: Readonly<Record<string, number>>
}

export interface AttackReport {
  /** Number of responses by status, and of failures by system error code. */
  readonly tally: Readonly<Record<string, number>>
  /** CPU of this process during the attack. */
  readonly cpuSeconds: number
}

const orders: ChildOrders = JSON.parse(await text(process.stdin))
const attack = attackNamed(orders.attack)
const attacker = new Attacker(orders)
// A socket that fails while nothing waits for it is part of the attack.
process.on('uncaughtException', (error) => attacker.count(`uncaught: ${error.message.slice(0, 80)}`))

await attack.prepare?.(attacker)
say({ begun: true, prepared: Object.fromEntries(attacker.tally) })
attacker.tally.clear()
attacker.begin()
const cpu = process.cpuUsage()
await Promise.race([attack.run(attacker), sleep(orders.seconds * 1000 + 200)])
const { user, system } = process.cpuUsage(cpu)
say({ tally: Object.fromEntries(attacker.tally), cpuSeconds: Math.round((user + system) / 1e4) / 100 })
process.exit(0)

function say(line: Begun | AttackReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
