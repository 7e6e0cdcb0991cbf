// What a command writes to standard output: lines for a person, or one JSON document for a program. Parts of it may
// come from what is being checked or from names people chose, so nothing in it may steer the terminal.

/** The option every command has that answers something. */
export interface JsonOption {
  /** Print JSON in place of lines for a person. */
  readonly json?: boolean
}

/** A line for a person, or several; control and format characters are replaced. */
export function print(line: string): void {
  process.stdout.write(`${harmless(line)}\n`)
}

/** As {@link print}, on standard error: what is said beside the answer. */
export function say(line: string): void {
  process.stderr.write(`${harmless(line)}\n`)
}

/** One document. Control and format characters stand in it as escapes, so it parses to the same value. */
export function printJson(value: unknown): void {
  process.stdout.write(`${escaped(JSON.stringify(value, null, 2))}\n`)
}

/** As {@link printJson} on a single line, for a command that prints one document after another. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${escaped(JSON.stringify(value))}\n`)
}

export function harmless(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, '\ufffd')
}

/** JSON has control and format characters only inside strings, where an escape means the same; line breaks are layout. */
function escaped(json: string): string {
  return json.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, (found) =>
    Array.from({ length: found.length }, (_, i) => {
      return `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`
    }).join(''),
  )
}
