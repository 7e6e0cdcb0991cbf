// A part of a page that is wider than a narrow screen and scrolls by itself. It takes the focus, so that keys
// scroll it too.

import type { ReactNode } from 'react'

interface ScrollingProps {
  /** Describes the content to a reader who reaches it by keys. */
  readonly label: string
  readonly className?: string
  readonly children: ReactNode
}

export function Scrolling({ children, className = '', label }: ScrollingProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys.
    <section className={`table-scroll ${className}`} tabIndex={0} aria-label={label}>
      {children}
    </section>
  )
}
