// Standard output of commands: lines for people, or one JSON document for a program. Parts of it may come
// from files that are being verified or from names that people chose, so control characters are escaped.

/** The option of every command that prints a result. */
export interface JsonOption {
  /** Print JSON instead of lines for people. */
  readonly json?: boolean
}

/** Prints a line for people. The text always stays one line: see {@link harmless}. */
export function print(line: string): void {
  process.stdout.write(`${harmless(line)}\n`)
}

/** As {@link print}, on standard error: messages besides the result. */
export function say(line: string): void {
  process.stderr.write(`${harmless(line)}\n`)
}

/** Prints one document. Control characters are escaped, so it parses to the same value. */
export function printJson(value: unknown): void {
  process.stdout.write(`${escapedJson(JSON.stringify(value, null, 2))}\n`)
}

/** As {@link printJson} on a single line, for a command that prints one document after another. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${escapedJson(JSON.stringify(value))}\n`)
}

/**
 * Writes a part of a document that another program made, unchanged, because its verification needs every
 * byte. On a terminal it is escaped as all JSON is. Returns false where the caller must wait for `drain`.
 */
export function printDocument(text: string): boolean {
  return process.stdout.write(process.stdout.isTTY === true ? escapedJson(text) : text)
}

/**
 * Control and format characters (Cc, Cf: C0, C1, those that change the direction of text) and the separators
 * of lines and paragraphs.
 */
const steering = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Returns the text as one line that cannot control a terminal: such characters are written as in JSON, for
 * example `\u000a` for a line break.
 */
export function harmless(text: string): string {
  return text.replace(steering, escapeOf)
}

/**
 * In JSON such characters occur only inside strings, where an escape means the same, and as line breaks of
 * the layout.
 */
function escapedJson(json: string): string {
  return json.replace(steering, (found) => (found === '\n' ? found : escapeOf(found)))
}

function escapeOf(found: string): string {
  const units = Array.from({ length: found.length }, (_, i) => found.charCodeAt(i))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
