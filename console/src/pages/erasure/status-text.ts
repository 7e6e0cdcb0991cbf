// The status of a request in plain words. Nothing is called erased before separate code has counted it.

import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'

interface StatusText {
  readonly label: string
  readonly kind: 'ok' | 'work' | 'warn' | 'danger' | 'plain'
  /** The explanation for a first-time reader. */
  readonly says: string
}

export const statusTexts: Readonly<Record<DeletionRequest['status'], StatusText>> = {
  awaiting_approval: {
    label: 'waits for approval',
    kind: 'warn',
    says: 'A second owner or admin must approve it. Until then nothing is hidden.',
  },
  scheduled: {
    label: 'scheduled',
    kind: 'work',
    says: 'Nobody can read it any more. It is removed later, and can be cancelled until then.',
  },
  held: {
    label: 'held',
    kind: 'warn',
    says: 'A legal hold keeps a part of it. It continues when the hold is released.',
  },
  running: {
    label: 'running',
    kind: 'work',
    says: 'Nobody can read it any more. It is being removed from disk.',
  },
  verifying: {
    label: 'verifying',
    kind: 'work',
    says: 'It is removed. Separate code counts every store again.',
  },
  completed: {
    label: 'completed',
    kind: 'ok',
    says: 'Hidden, removed, and counted again: nothing of it is left.',
  },
  incomplete: {
    label: 'incomplete',
    kind: 'warn',
    says: 'An attempt did not finish. It is repeated by itself.',
  },
  failed: {
    label: 'failed',
    kind: 'danger',
    says: 'It was given up and stays hidden. Somebody must decide.',
  },
  cancelled: {
    label: 'cancelled',
    kind: 'plain',
    says: 'It was cancelled before anything was removed. It can be read again.',
  },
  rejected: {
    label: 'rejected',
    kind: 'plain',
    says: 'A second person rejected it. Nothing was hidden or removed.',
  },
  expired: {
    label: 'expired',
    kind: 'plain',
    says: 'Nobody approved it in time. Nothing was hidden or removed.',
  },
}

/** A number of the free-form detail; 0 where it is absent. */
export function numberIn({ detail }: DeletionRequest, name: string): number {
  const value = detail[name]
  return typeof value === 'number' ? value : 0
}

/** A text of the free-form detail; null where it is absent. */
export function textIn({ detail }: DeletionRequest, name: string): string | null {
  const value = detail[name]
  return typeof value === 'string' ? value : null
}

/** Ids of the legal holds that keep a part of it. */
export function holdsIn({ detail: { held_by } }: DeletionRequest): string[] {
  return Array.isArray(held_by) ? held_by.map(String) : []
}
