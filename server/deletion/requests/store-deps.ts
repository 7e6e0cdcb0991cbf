// What the store of requests needs from other rooms and from the rules of this one. Whatever decides about a
// request or changes something together with it reads and writes in the transaction of the request.

import type { Control, ControlTransaction } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import type { Clock } from '../../core/clock.ts'
import type { ClockReading } from '../../worker/clock-watch.ts'
import type { FindRelated } from './admission.ts'
import type { StoredDeletion } from './request.ts'
import type { DeletionSelection } from './selection.ts'
import type { Visibility } from './visibility.ts'

export interface RequestStoreDeps {
  readonly control: Control
  readonly clock: Clock
  readonly visibility: Visibility
  readonly findRelated: FindRelated
  /**
   * Looks at what a new request would leave, and returns what tells why it needs a second person; null where
   * it needs none. That reads in the transaction that writes the request, so that two requests at once can't
   * both pass.
   */
  readonly secondPersonTest: (
    asker: { readonly tenantId: string; readonly requester: Actor },
    selection: DeletionSelection,
    at: ClockReading,
  ) => Promise<CauseIn>
  /**
   * The same for a request that was accepted without a second person, before its first attempt. Throws where
   * it can't be told; then the request stays as it is, and hidden.
   */
  readonly secondPersonRetest: (request: StoredDeletion, at: ClockReading) => Promise<CauseIn>
  /** Returns what tells why a request of retention, the only ones of the system, must not begin. */
  readonly retentionRetest: (request: StoredDeletion) => Promise<CauseIn>
  /**
   * Clears what was derived from an organisation's telemetry and is not hidden with it. Called in each
   * transaction that hides something.
   */
  readonly clearDerived: (trx: ControlTransaction, tenantId: string) => Promise<void>
}

type CauseIn = (trx: ControlTransaction) => Promise<string | null>
