// Keeps the focus of somebody who uses the keyboard. A browser drops it where the element is removed, as a
// button is that opens another page, or is disabled, as a button is while it works. It returns to the element
// as soon as that can take it, and goes to the page where the element is gone. A pointer that is pressed
// beside everything may drop it.

import { useEffect } from 'react'

/** The focus is dropped in the step after a change is drawn. */
function afterDrawing(act: () => void): void {
  requestAnimationFrame(() => requestAnimationFrame(act))
}

/** @param pageId of the element that takes the focus of one that is gone */
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
