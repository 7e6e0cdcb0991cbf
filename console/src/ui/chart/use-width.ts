// The width of an element, known before its first frame is painted: a chart is drawn with the page around it,
// and not two frames later.

import { type RefCallback, useCallback, useState } from 'react'
import { flushSync } from 'react-dom'

interface Measured {
  /** For the element. */
  readonly ref: RefCallback<HTMLElement>
  /** In pixels, without padding; zero until the element is in the page. */
  readonly width: number
}

/** Returns the width of the element with this `ref`, also when it changes. The element has no padding. */
export function useWidth(): Measured {
  const [width, setWidth] = useState(0)
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return
    // The browser tells the width between layout and paint, so it need not lay out the page once more for
    // it. What is set is applied at once, and so is painted in the same frame.
    const observer = new ResizeObserver(([entry]) => {
      flushSync(() => setWidth(entry?.contentRect.width ?? 0))
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return { ref, width }
}
