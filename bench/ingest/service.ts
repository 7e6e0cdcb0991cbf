// The service as benches with many senders use it: in its own process, so that senders and server don't share
// an event loop, on an empty folder, with organisations whose secrets are known.

import { type Product, startProduct } from '../deletion/product.ts'

export interface Service extends Pick<Product, 'address' | 'pid' | 'stop'> {
  /** Owner tokens, one per organisation. */
  readonly secrets: readonly string[]
}

/** Resolves when the service is ready. */
export async function startService(
  dataDir: string,
  organisations: number,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const { address, pid, secretOf, stop } = await startProduct(dataDir, { organisations, env })
  return { address, pid, stop, secrets: Array.from({ length: organisations }, (_, i) => secretOf(i)) }
}
