// The bars of one series as one SVG path. Bars with a gap between them are rectangles. Bars without one have
// a common outline, which a browser without a graphics card fills in half the time.

/** Pixels of a bar from which on it has a gap to the next one. */
const gapFrom = 6

/**
 * @param tops where each bar ends above, in pixels downwards
 * @param bottoms where it ends below; the same where there is no bar
 * @param step from one bar to the next
 */
export function barsPath(
  tops: readonly number[],
  bottoms: readonly number[],
  left: number,
  step: number,
): string {
  const isBar = (i: number) => i < tops.length && tops[i] !== bottoms[i]
  const x = (i: number) => pixels(left + i * step)
  const y = (value: number | undefined) => pixels(value ?? 0)
  const gap = step > gapFrom ? Math.min(4, step * 0.2) : 0
  const width = pixels(step - gap)
  let path = ''
  for (let i = 0; i < tops.length; i++) {
    if (!isBar(i)) continue
    if (gap > 0) {
      path += `M${pixels(left + i * step + gap / 2)} ${y(tops[i])}h${width}V${y(bottoms[i])}h${-width}z`
      continue
    }
    path += `M${x(i)} ${y(bottoms[i])}`
    const first = i
    for (; isBar(i); i++) path += `V${y(tops[i])}H${x(i + 1)}`
    for (let back = i - 1; back >= first; back--) path += `V${y(bottoms[back])}H${x(back)}`
    path += 'z'
  }
  return path
}

/** A hundredth of a pixel is finer than any screen, and keeps the path short. */
const pixels = (value: number) => Math.round(value * 100) / 100
