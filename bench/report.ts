// The output of a bench: rows of named tables. They are written as lines of JSON to standard output, each as
// soon as it is measured; `npm run bench` collects them, prints them as tables and stores them. Progress and
// remarks for people are written to standard error.

/** Cells by column. The name of a column has its unit. */
export type Row = Readonly<Record<string, string | number | boolean | null>>

export function report(table: string, ...rows: readonly Row[]): void {
  for (const row of rows) process.stdout.write(`${JSON.stringify({ table, ...row })}\n`)
}

/** Reports that something is not measured, and why: what the machine lacks. */
export function reportAbsent(what: string, why: string): void {
  process.stdout.write(`${JSON.stringify({ absent: what, why })}\n`)
}

/** Writes a remark for people. */
export function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}
