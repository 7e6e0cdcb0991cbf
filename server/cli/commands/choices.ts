// Values of options, for help and completion. They repeat the contract, whose schemas take several times as
// long to load as the command line itself; a test compares the two.

import type { DeletionStatus } from '../../../contract/deletion/requests.ts'
import type { MethodKey } from '../../../contract/detection/methods.ts'
import type { Role } from '../../../contract/role.ts'

export const roleChoices = ['owner', 'admin', 'member', 'viewer', 'ingest'] as const satisfies readonly Role[]

export const methodChoices = [
  'threshold',
  'robust_band',
  'seasonal_band',
  'record_range',
  'shape_discord',
  'spectral_residual',
  'sub_pca',
  'level_shift',
  'absence',
  'rate_test',
  'rcf',
  'peer_outlier',
  'auto',
] as const satisfies readonly MethodKey[]

export const statusChoices = [
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'verifying',
  'completed',
  'incomplete',
  'failed',
  'cancelled',
  'rejected',
  'expired',
] as const satisfies readonly DeletionStatus[]

export const reasonChoices = [
  'leaked_secret',
  'personal_data',
  'bad_data',
  'offboarding',
  'cost',
  'retention',
  'other',
] as const
