// How a command ends. Exit codes are a promise to scripts: they are listed in the help and
// in docs/command-line.md.

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
  /** Lines below the sentence. */
  readonly details: readonly string[]

  constructor(message: string, exitCode: number = exitCodes.failed, details: readonly string[] = []) {
    super(message)
    this.details = details
    this.name = 'CommandFailure'
    this.exitCode = exitCode
  }
}

const fileReasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of its path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'it is on a disk that is read-only',
  ENOSPC: 'the disk is full',
}

/**
 * What Node says of a file that can't be opened, read or written, for a person; null
 * where it says another thing.
 */
export function fileSentence(error: Error): string | null {
  if (!('code' in error) || !('path' in error)) return null
  const reason = fileReasons[String(error.code)]
  return reason === undefined ? null : `${error.path} can't be opened: ${reason}.`
}
