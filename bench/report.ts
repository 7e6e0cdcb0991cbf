// What a bench says: rows of named tables. They leave as lines of JSON on standard output, each as soon as it
// is measured, and `npm run bench` collects them, prints them as tables and keeps them. Progress and remarks
// for people go to standard error.

/** Cells by column. The name of a column says its unit. */
export type Row = Readonly<Record<string, string | number | boolean | null>>

export function report(table: string, ...rows: readonly Row[]): void {
  for (const row of rows) process.stdout.write(`${JSON.stringify({ table, ...row })}\n`)
}

/** Says that nothing is measured, and why: what the machine lacks. */
export function reportAbsent(what: string, why: string): void {
  process.stdout.write(`${JSON.stringify({ absent: what, why })}\n`)
}

/** A remark for whoever watches. */
export function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}
