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
 * Opens the link in the person's browser, where the output is a terminal on a desktop. Returns whether a
 * program to open it was started. Where there is none nothing else happens: the link was printed.
 */
export async function openInBrowser(
  link: string,
  env: NodeJS.ProcessEnv,
  isTerminal = process.stdout.isTTY === true,
): Promise<boolean> {
  const hasDesktop = (env.DISPLAY ?? env.WAYLAND_DISPLAY ?? '') !== ''
  if (!hasDesktop || !isTerminal) return false
  const opener = spawn('xdg-open', [link], { env, stdio: 'ignore', detached: true })
  opener.unref()
  return new Promise((resolve) => {
    opener.on('spawn', () => resolve(true)).on('error', () => resolve(false))
  })
}
