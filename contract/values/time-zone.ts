// Names of time zones on the wire. A name that is accepted here is valid in every part of the service.

/** Whether the IANA database of the runtime has the name, such as Europe/Berlin or UTC. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
