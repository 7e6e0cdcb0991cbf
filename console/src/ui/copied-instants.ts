// A copied instant is in UTC with all its digits, in every zone of the page.

import { useEffect } from 'react'

/** Returns the element of the one instant that is selected; null where more is selected, or less. */
function selectedInstant(): HTMLTimeElement | null {
  const selection = document.getSelection()
  if (selection === null || selection.rangeCount === 0) return null
  const { commonAncestorContainer: node } = selection.getRangeAt(0)
  const element = node instanceof Element ? node : node.parentElement
  const time = element?.closest('time') ?? null
  return time !== null && selection.toString().trim() === time.textContent ? time : null
}

export function useCopiedInstants(): void {
  useEffect(() => {
    const copy = (event: ClipboardEvent) => {
      const time = selectedInstant()
      if (time === null) return
      event.clipboardData?.setData('text/plain', time.dateTime)
      event.preventDefault()
    }
    document.addEventListener('copy', copy)
    return () => document.removeEventListener('copy', copy)
  }, [])
}
