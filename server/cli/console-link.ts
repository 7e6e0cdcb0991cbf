// The link that signs a person in to the console, and the browser that opens it. The code in the link works
// once; it is behind the #, which browsers send to no server and put into no log.

import { spawn } from 'node:child_process'
import type { App } from '../app.ts'
import type { Actor } from '../core/actor.ts'

/** Returns a link that signs in once as the token with this secret. */
export async function signInLink(app: App, address: string, secret: string, actor: Actor): Promise<string> {
  return `${address}/console/sign-in#code=${await app.createSignInCode(secret, actor)}`
}

/**
 * Opens the link in the person's browser, where the output is a terminal on a desktop. Where that fails
 * nothing happens: the link was printed.
 */
export function openInBrowser(link: string, env: NodeJS.ProcessEnv): void {
  const hasDesktop = (env.DISPLAY ?? env.WAYLAND_DISPLAY ?? '') !== ''
  if (!hasDesktop || process.stdout.isTTY !== true) return
  spawn('xdg-open', [link], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}
