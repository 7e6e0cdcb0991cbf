// Mantine with the colours of the console. Its own combinations fail the contrast of WCAG AA in part, so each
// variant takes colours from the tokens, which were measured.

import { createTheme, type VariantColorsResolver } from '@mantine/core'

/** Grounds, borders and texts of Mantine's parts in the dark scheme, from light to dark. */
const dark = [
  '#e6eaf0',
  '#c3cad4',
  '#a0aab8',
  '#76818f',
  '#333c48',
  '#262e38',
  '#1b2129',
  '#14181f',
  '#101319',
  '#0b0e13',
] as const

export const theme = createTheme({
  colors: { dark },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  defaultRadius: 'sm',
  cursorType: 'pointer',
  respectReducedMotion: true,
  focusRing: 'auto',
})

const token = (name: string) => `var(--${name})`

/** `color="red"` is for what erases or is broken, everything else has the accent. */
export const variantColours: VariantColorsResolver = ({ color, variant }) => {
  const ink = token(color === 'red' ? 'danger' : 'accent')
  const none = 'transparent'
  if (variant === 'filled') {
    return {
      background: ink,
      hover: ink,
      color: token(color === 'red' ? 'on-danger' : 'on-accent'),
      border: 'none',
    }
  }
  if (variant === 'default') {
    const edge = `1px solid ${token('edge')}`
    return { background: token('bg'), hover: token('surface'), color: token('text'), border: edge }
  }
  const border = variant === 'outline' ? `1px solid ${ink}` : 'none'
  return { background: none, hover: token('surface'), color: ink, border }
}
