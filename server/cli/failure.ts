// How a command ends. Exit codes never change their meaning, because scripts use them; the help and
// docs/command-line.md list them.

export const exitCodes = {
  /** A wrong option, a refusal, a failure. */
  failed: 1,
  /** Evidence is consistent, but no trusted key was given to verify its signature. */
  notVouchedFor: 2,
  /** The service can't be reached, or the response is not from a service. */
  unreachable: 3,
  /** The command waited for a deletion, and it ended with another status than completed. */
  notCompleted: 4,
  /**
   * A person pressed Ctrl-C or Ctrl-D at a question: the code that shells use for a program ended by SIGINT.
   */
  interrupted: 130,
  /** The reader of the output closed it: the code that shells use for a program ended by SIGPIPE. */
  closedPipe: 141,
} as const

/** Ends the command with a sentence for people and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number
  /** Lines printed below the sentence. */
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
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission',
  EROFS: 'it is on a read-only disk',
  ENOSPC: 'the disk is full',
}

/**
 * Returns a sentence for people where Node could not open, read or write a file; null for any other error.
 */
export function fileSentence(error: Error): string | null {
  if (!('code' in error) || !('path' in error)) return null
  const reason = fileReasons[String(error.code)]
  return reason === undefined ? null : `${error.path} can't be opened: ${reason}.`
}
