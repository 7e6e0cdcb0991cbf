// Takes the signals of a crash back from native code, so that a crash ends the process at once. The embedded
// engine installs handlers that pass the crash to a thread which only its own server has, and then wait 300 s
// for it. Meanwhile nobody is answered, or other threads work with a broken engine.

/** Signals of a crash, and the one of Ctrl-Z, which the engine treats as a crash. */
const fatalSignals = [
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
  'SIGTSTP',
] as const satisfies readonly NodeJS.Signals[]

/**
 * Gives these signals the action of the operating system again. Call it in the main thread right after native
 * code installed its handlers. The runtime has no function for this, but it restores the default action when
 * the last listener of a signal is removed.
 */
export function restoreFatalSignals(): void {
  const none = () => {}
  for (const signal of fatalSignals) {
    process.on(signal, none)
    process.off(signal, none)
  }
}
