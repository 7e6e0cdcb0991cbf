// The owner of work on the event loop: an organisation, or the address of a client without a valid token.

const addressPrefix = 'address '

/** @param address null where proxies hide it: their clients without a token share one owner */
export function loopOwner(tenantId: string | null | undefined, address: string | null | undefined): string {
  return tenantId ?? `${addressPrefix}${address ?? 'behind a proxy'}`
}

export function isOrganisation(owner: string): boolean {
  return !owner.startsWith(addressPrefix)
}
