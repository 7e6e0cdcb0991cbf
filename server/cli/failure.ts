// How a command ends. Exit codes are a promise to scripts: they are listed in the help and in the README.

export const exitCodes = {
  /** A wrong option, a refusal, a failure. */
  failed: 1,
  /** Evidence is in order, and no trusted key vouches for it. */
  notVouchedFor: 2,
  /** The service can't be reached, or does not answer as one. */
  unreachable: 3,
  /** A deletion that was waited for ended otherwise than completed. */
  notCompleted: 4,
  /** A person pressed Ctrl-C or Ctrl-D at a question: what a shell reports of a program that SIGINT ended. */
  interrupted: 130,
  /** Whoever read the output has closed it: what a shell reports of a program that SIGPIPE ended. */
  closedPipe: 141,
} as const

/** Ends the command with a sentence for a person and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message)
    this.name = 'CommandFailure'
    this.exitCode = exitCode
  }
}
