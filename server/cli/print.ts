// What a command writes to standard output: lines for a person, or one JSON document for a program. Parts of
// it may come from what is being checked or from names people chose, so nothing in it may steer the terminal.

/** The option every command has that answers something. */
export interface JsonOption {
  /** Print JSON in place of lines for a person. */
  readonly json?: boolean
}

/** A line for a person. Whatever the text holds, it stays one line: see {@link harmless}. */
export function print(line: string): void {
  process.stdout.write(`${harmless(line)}\n`)
}

/** As {@link print}, on standard error: what is said beside the answer. */
export function say(line: string): void {
  process.stderr.write(`${harmless(line)}\n`)
}

/** One document. What could steer a terminal stands in it as escapes, so it parses to the same value. */
export function printJson(value: unknown): void {
  process.stdout.write(`${escapedJson(JSON.stringify(value, null, 2))}\n`)
}

/** As {@link printJson} on a single line, for a command that prints one document after another. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${escapedJson(JSON.stringify(value))}\n`)
}

/**
 * A piece of a document that somebody else wrote, byte for byte, because a check of it needs every
 * byte. On a terminal, where nobody checks it, it is escaped as every JSON is. False where the
 * caller must wait for `drain`.
 */
export function printDocument(text: string): boolean {
  return process.stdout.write(process.stdout.isTTY === true ? escapedJson(text) : text)
}

/**
 * Control and format characters (Cc, Cf: C0, C1, those that turn the direction of text) and the separators
 * of lines and paragraphs.
 */
const steering = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * The text as one line that steers nothing: what would is written as JSON writes it, such as
 * `\u000a` for a line break.
 */
export function harmless(text: string): string {
  return text.replace(steering, escapeOf)
}

/** JSON has such characters only inside strings, where an escape means the same; line breaks are layout. */
function escapedJson(json: string): string {
  return json.replace(steering, (found) => (found === '\n' ? found : escapeOf(found)))
}

function escapeOf(found: string): string {
  const units = Array.from({ length: found.length }, (_, i) => found.charCodeAt(i))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
