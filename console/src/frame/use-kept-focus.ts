// Restores the keyboard focus. A browser drops it where the element is removed, such as a button that opens
// another page, or disabled, such as a button during its request. The focus returns to the element as soon as
// it is enabled, or moves to the page where the element was removed. A press of the pointer beside all
// controls may drop it.

import { useEffect } from 'react'

/** The browser drops the focus in the frame after the change. */
function afterDrawing(act: () => void): void {
  requestAnimationFrame(() => requestAnimationFrame(act))
}

/** @param pageId id of the element that gets the focus of a removed one */
export function useKeptFocus(pageId: string): void {
  useEffect(() => {
    let last: Element | null = null
    let isLooking = false
    const remember = ({ target }: FocusEvent) => {
      last = target instanceof Element ? target : null
    }
    const forget = () => {
      last = null
    }
    const look = () => {
      isLooking = false
      if (last === null || document.activeElement !== document.body) return
      const next = last.isConnected ? last : document.getElementById(pageId)
      if (next instanceof HTMLElement) next.focus({ preventScroll: true })
    }
    const changes = new MutationObserver(() => {
      if (isLooking) return
      isLooking = true
      afterDrawing(look)
    })
    changes.observe(document.body, {
      subtree: true,
      childList: true,
      attributes: true,
      attributeFilter: ['disabled'],
    })
    document.addEventListener('focusin', remember)
    document.addEventListener('pointerdown', forget)
    return () => {
      changes.disconnect()
      document.removeEventListener('focusin', remember)
      document.removeEventListener('pointerdown', forget)
    }
  }, [pageId])
}
