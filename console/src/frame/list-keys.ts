// Moves through a list by keys: the focus goes to the link or button of the previous or next row, so that
// Enter opens the row and a screen reader reads it. That element has the attribute `data-opens`.

/** Does nothing on a page without a list, and at the end of one. */
export function moveRow(step: 1 | -1): void {
  const openers = [...document.querySelectorAll<HTMLElement>('#page [data-opens]')]
  const { activeElement } = document
  const at = openers.findLastIndex((opener) => opener === activeElement || isBefore(opener, activeElement))
  openers[Math.max(0, at + step)]?.focus()
}

/** Whether the focus is behind the opener, such as in the details of its row. */
function isBefore(opener: HTMLElement, focused: Element | null): boolean {
  if (focused === null || focused.closest('#page') === null) return false
  return (opener.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0
}
