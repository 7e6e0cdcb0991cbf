// Is a count of alarms more than chance? A handful of events says little about their rate, so a bench that
// expects four prints beside the ratio what the rate is at least: the lower end of the exact one-sided
// interval for a Poisson law (Garwood 1936). Alarms of one series come in company rather than alone, which
// makes the true interval wider.

const confidence = 0.95

/** The smallest mean under which so many events or more happen in at least one case of twenty. */
export function leastMean(events: number): number {
  let low = 0
  let high = events
  for (let halvings = 0; halvings < 50; halvings++) {
    const middle = (low + high) / 2
    if (chanceOfAtLeast(events, middle) < 1 - confidence) low = middle
    else high = middle
  }
  return low
}

function chanceOfAtLeast(events: number, mean: number): number {
  let term = Math.exp(-mean)
  let fewer = 0
  for (let i = 0; i < events; i++) {
    fewer += term
    term *= mean / (i + 1)
  }
  return 1 - fewer
}
