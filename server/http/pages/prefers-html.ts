// Chooses between two forms of a response. A client without a preference gets JSON.

/** Whether an Accept header (RFC 9110) asks for HTML by name, and not for JSON at least as much. */
export function prefersHtml(accept: string | undefined): boolean {
  const weightOf = (mediaType: string) => {
    const found = (accept ?? '')
      .toLowerCase()
      .split(',')
      .map((range) => range.split(';').map((part) => part.trim()))
      .find(([name]) => name === mediaType)
    if (found === undefined) return 0
    const weight = Number(found.find((part) => part.startsWith('q='))?.slice(2) ?? 1)
    return Number.isFinite(weight) ? weight : 0
  }
  return weightOf('text/html') > weightOf('application/json')
}
