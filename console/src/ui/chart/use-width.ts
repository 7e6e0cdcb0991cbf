// The width of an element, known before its first frame is painted: a chart is drawn with the page around it,
// and not two frames later.

import { type RefCallback, useCallback, useState } from 'react'

interface Measured {
  /** For the element. */
  readonly ref: RefCallback<HTMLElement>
  /** In pixels, without padding; zero until the element is in the page. */
  readonly width: number
}

/** Returns the width of the element with this `ref`, also when it changes. The element has no padding. */
export function useWidth(): Measured {
  const [width, setWidth] = useState(0)
  // React applies what a ref sets before it lets the browser paint.
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return
    const measure = () => setWidth(element.getBoundingClientRect().width)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return { ref, width }
}
