// A binary search by a condition, as `std::partition_point` of C++.

/**
 * Returns the first index below `length` at which the condition holds; `length` where it never does.
 *
 * @param holds false up to some index and true from there on
 */
export function partitionPoint(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
