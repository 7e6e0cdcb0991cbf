// The keys of the frame. Single letters do nothing while a person types, can be switched off, and are never
// the only way to an action.

import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useAddress } from '../ui/address.ts'
import { useSingleKeys } from '../ui/preferences.ts'
import { rangeOf, shifted, zoomedOut } from '../ui/time-range.ts'
import { moveRow } from './list-keys.ts'
import { hasTimeRange, type PageLink, pageLinks } from './page-links.ts'

interface KeyActions {
  readonly onPalette: () => void
  readonly onHelp: () => void
  readonly onGo: (to: PageLink['to']) => void
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

export function useKeys({ onGo, onHelp, onPalette }: KeyActions): void {
  const [state, change] = useAddress()
  const { pathname } = useLocation()
  const isOn = useSingleKeys()
  /** Whether `g` was the key before. */
  const goes = useRef(false)
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault()
        return onPalette()
      }
      if (!isOn || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return
      const link = goes.current ? pageLinks.find(({ key }) => key === event.key) : undefined
      goes.current = event.key === 'g'
      if (link !== undefined) return onGo(link.to)
      if (event.key === '/') event.preventDefault()
      if (event.key === '/') onPalette()
      else if (event.key === '?') onHelp()
      else if (event.key === 'j') moveRow(1)
      else if (event.key === 'k') moveRow(-1)
      if (!hasTimeRange(pathname)) return
      if (event.key === '[') change({ ...shifted(rangeOf(state), -1) })
      else if (event.key === ']') change({ ...shifted(rangeOf(state), 1) })
      else if (event.key === 'z') change({ ...zoomedOut(rangeOf(state)) })
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [state, change, pathname, isOn, onGo, onHelp, onPalette])
}
