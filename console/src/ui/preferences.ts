// Preferences that are stored in this browser and not in the address: the time zone, and whether single
// letters are keys. Colours are kept by Mantine.

import { useSyncExternalStore } from 'react'
import { type Zone, zones } from './instants.ts'

const [zoneKey, singleKeysKey] = ['lethe-zone', 'lethe-single-keys']
const listeners = new Set<() => void>()

function store(key: string, value: string): void {
  localStorage.setItem(key, value)
  for (const listener of listeners) listener()
}

function usePreference<T>(read: () => T): T {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, read)
}

function readZone(): Zone {
  const stored = localStorage.getItem(zoneKey)
  return zones.find((zone) => zone === stored) ?? 'local'
}

export function setZone(zone: Zone): void {
  store(zoneKey, zone)
}

export function useZone(): Zone {
  return usePreference(readZone)
}

/** Off for somebody whose speech or hardware types letters that were not meant as keys. */
export function setSingleKeys(isOn: boolean): void {
  store(singleKeysKey, isOn ? 'on' : 'off')
}

export function useSingleKeys(): boolean {
  return usePreference(() => localStorage.getItem(singleKeysKey) !== 'off')
}
