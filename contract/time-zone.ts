// Names of time zones, as people give them on the wire. What passes here every clock of the service knows.

/** Whether a name stands in the IANA database that the runtime brings, such as Europe/Berlin or UTC. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
