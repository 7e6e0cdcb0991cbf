// Names of time zones on the wire. A name that is accepted here is valid in every part of the service.

/**
 * Names that were accepted, those that were asked for last at the end. To find out takes 40 µs, and stored
 * mutes and detectors are read by their schemas at each run. A name has many spellings, so there is a limit.
 */
const accepted = new Set<string>()
const acceptedMax = 4096

/** Whether the IANA database of the runtime has the name, such as Europe/Berlin or UTC. */
export function isTimeZone(name: string): boolean {
  if (!accepted.delete(name)) {
    try {
      new Intl.DateTimeFormat('en', { timeZone: name })
    } catch {
      return false
    }
  }
  accepted.add(name)
  const [oldest] = accepted.size > acceptedMax ? accepted : []
  if (oldest !== undefined) accepted.delete(oldest)
  return true
}
