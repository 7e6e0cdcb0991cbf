// The only error of the decoders: the request as a whole can't be read. The response is 400, and a client
// must not send the same bytes again (OTLP/HTTP, "Failures"). A single invalid record is not an error: it is
// counted as rejected and the rest of the request is stored (see faults.ts).

/** The message is one sentence for the client: the location in the request, then what is wrong there. */
export class OtlpDecodeError extends Error {
  override readonly name = 'OtlpDecodeError'
}

/**
 * The location of a reader in a request: five counters that are written while reading and become text only
 * when something is wrong. A counter is -1 outside its list.
 */
export class RecordLocation {
  resource = -1
  scope = -1
  record = -1
  point = -1
  /** The metric kind whose points are being read, for example `gauge`; empty for logs and spans. */
  kind = ''
  readonly #names: readonly [string, string, string]

  /** @param names the lists' names in OTLP/JSON, outermost first */
  constructor(names: readonly [string, string, string]) {
    this.#names = names
  }

  toString(): string {
    if (this.resource < 0) return 'request'
    let text = `${this.#names[0]}[${this.resource}]`
    if (this.scope >= 0) text += `.${this.#names[1]}[${this.scope}]`
    if (this.record >= 0) text += `.${this.#names[2]}[${this.record}]`
    if (this.kind !== '') text += `.${this.kind}`
    if (this.point >= 0) text += `.dataPoints[${this.point}]`
    return text
  }
}
