// The approval rules in plain words.

import type { ApprovalRule } from '../../../../contract/deletion/governance.ts'

export const ruleTexts: Readonly<Record<ApprovalRule, { readonly label: string; readonly says: string }>> = {
  none: {
    label: 'never',
    says: 'Each owner or admin erases alone.',
  },
  full_erasures: {
    label: 'for large erasures',
    says: 'Needed to erase everything, a range without a start, or more than 31 days, also in parts within 31 days. Shorter retention needs it too.',
  },
  every_deletion: {
    label: 'for every erasure',
    says: 'Nobody erases anything alone. Shorter retention needs it too.',
  },
}
