// Starts the console: providers, and the router in the root element.

import './style/mantine.css'
import './style/tokens.css'
import './style/frame.css'
import './style/parts.css'
import './style/pages.css'
import './style/settings.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/query-client.ts'
import { router } from './router.tsx'
import { theme, variantColours } from './theme.ts'

/** Mantine writes style elements; the policy of the page allows those with the nonce of this response. */
function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? ''
}

// Dialogs write a style element that stops the page behind them from scrolling; their library takes its nonce
// from this name.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() })

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no root element.')

createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={{ ...theme, variantColorResolver: variantColours }}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
