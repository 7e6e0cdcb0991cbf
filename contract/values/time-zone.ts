// Names of time zones on the wire. Every clock of the service knows a name that passes here.

/** Whether the IANA database of the runtime has the name, such as Europe/Berlin or UTC. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
