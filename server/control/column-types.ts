// Types of columns that every table of the control plane shares.

import type { ColumnType } from 'kysely'

/** Written once; an update of it fails the type check. */
export type Fixed<T> = ColumnType<T, T, never>
