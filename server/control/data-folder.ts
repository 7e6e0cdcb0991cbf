// The data folder that a control plane belongs to: since their first start together it keeps the secret of
// the folder.

import type { Control } from './database.ts'

/** Returns the secret of the data folder; undefined where no service was started with this control plane. */
export async function folderSecretIn(control: Control): Promise<string | undefined> {
  const query = control.selectFrom('instance').select('value').where('key', '=', 'data_folder')
  return (await query.executeTakeFirst())?.value
}
