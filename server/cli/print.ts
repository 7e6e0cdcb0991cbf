// A line for a person. Parts of it may come from what is being checked or from names people chose, so nothing in it
// may steer the terminal.

export function print(line: string): void {
  process.stdout.write(`${line.replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, '\ufffd')}\n`)
}
