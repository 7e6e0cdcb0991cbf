// The lower limit of a rate. A few events say little about their rate, so a bench that expects four of them
// prints this limit beside the ratio: the lower end of the exact one-sided interval for a Poisson law
// (Garwood 1936). Alarms of one series occur in groups, so the true interval is wider.

const confidence = 0.95

/** The smallest mean at which the probability of this many events or more is at least 5 %. */
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
