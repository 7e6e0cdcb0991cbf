// For tests: counts the formatters of dates that are made, each of which takes a tenth of a millisecond and
// 30 kB. The constructor is as before afterwards, also where the work throws.

/** How many formatters of dates `work` makes. */
export async function countFormatters(work: () => Promise<unknown>): Promise<number> {
  const original = Intl.DateTimeFormat
  let made = 0
  Intl.DateTimeFormat = new Proxy(original, {
    construct(target, args) {
      made++
      return Reflect.construct(target, args)
    },
  })
  try {
    await work()
  } finally {
    Intl.DateTimeFormat = original
  }
  return made
}
