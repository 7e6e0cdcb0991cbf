// What a person chose for this browser, and not for a link: the time zone. Colours are kept by Mantine.

import { useSyncExternalStore } from 'react'
import { type Zone, zones } from './instants.ts'

const key = 'lethe-zone'
const listeners = new Set<() => void>()

function read(): Zone {
  const stored = localStorage.getItem(key)
  return zones.find((zone) => zone === stored) ?? 'local'
}

export function setZone(zone: Zone): void {
  localStorage.setItem(key, zone)
  for (const listener of listeners) listener()
}

export function useZone(): Zone {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, read)
}
