// Finds the client of a request, as the key by which limits count. The address of the connection is used,
// because a client can't choose it. A reverse proxy has an address of its own there, so the header in which
// it names its client is used where the operator has named the proxy, and nowhere else.

import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'

/**
 * Headers in which proxies name their clients. Only one is read, because a proxy passes on the other one
 * unchanged.
 */
export const proxyHeaders = ['x-forwarded-for', 'forwarded'] as const
export type ProxyHeader = (typeof proxyHeaders)[number]

/** Chains of proxies are short; with more entries the client is the last one that was read. */
const hopsMax = 16

export class ClientAddresses {
  readonly header: ProxyHeader
  readonly #trusted = new BlockList()

  /** @param trusted addresses and networks, such as `10.0.0.0/8`; throws where one is neither */
  constructor(trusted: readonly string[], header: ProxyHeader) {
    this.header = header
    for (const entry of trusted) addNetwork(this.#trusted, entry)
  }

  /** Whether the peer of a connection is a proxy that the operator has named. */
  isProxy(peer: string | undefined): boolean {
    const address = addressIn(peer ?? '')
    return address !== null && this.#trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
  }

  /**
   * Returns the key of the client: its IPv4 address, or the /64 network of its IPv6 address, which is what
   * one customer gets. The header is read from its end, where the nearest proxy wrote, up to the first
   * address that is not a proxy's.
   *
   * @param named the value of {@link header}
   */
  keyOf(peer: string | undefined, named: string | undefined): string {
    let client = addressIn(peer ?? '')
    if (client === null) return 'unknown'
    let rest = named ?? ''
    for (let hop = 0; hop < hopsMax && rest !== '' && this.isProxy(client); hop++) {
      const comma = rest.lastIndexOf(',')
      const next = addressIn(this.#entryOf(rest.slice(comma + 1)))
      if (next === null) break
      client = next
      rest = rest.slice(0, Math.max(comma, 0))
    }
    return isIPv4(client) ? client : networkOf(client)
  }

  #entryOf(text: string): string {
    if (this.header === 'x-forwarded-for') return text
    return /(?:^|;)\s*for\s*=\s*"?([^";]*)/i.exec(text.trim())?.[1] ?? ''
  }
}

/**
 * Returns an IP address without brackets, port or zone; an IPv4 address where it is mapped into IPv6; null
 * for anything else.
 */
function addressIn(text: string): string | null {
  const bare = text.trim()
  const inside = /^\[([^\]]*)\](?::\d+)?$/.exec(bare)?.[1] ?? (/^([\d.]+):\d+$/.exec(bare)?.[1] || bare)
  const [address = ''] = inside.split('%')
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  return isIP(address) === 0 ? null : address
}

/** Returns the first four groups of an IPv6 address, which has many spellings. */
function networkOf(address: string): string {
  const { address: canonical } = new SocketAddress({ address, family: 'ipv6' })
  const [head = '', tail] = canonical.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const first = groups(head)
  const last = groups(tail ?? '')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  return `${[...first, ...new Array<string>(zeros).fill('0'), ...last].slice(0, 4).join(':')}::/64`
}

function addNetwork(list: BlockList, entry: string): void {
  const [address = '', bits, ...more] = entry.split('/')
  const version = isIP(address)
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const max = version === 4 ? 32 : 128
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= max)
  if (version === 0 || !isRange || more.length > 0) {
    throw new TypeError(`"${entry}" is neither an IP address nor a network such as 10.0.0.0/8.`)
  }
  list.addSubnet(address, Number(bits ?? max), family)
}
