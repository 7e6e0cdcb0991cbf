// A random cut forest (Guha, Mishra, Roy, Schrijvers 2016). Each tree divides a sample of the past by random
// cuts until every point is alone. A cut falls on a dimension in proportion to the extent of the points in
// it. A point far from the others is cut off early, so the depth at which it would be cut off measures how
// unusual it is. Points enter and leave a tree without a new draw of the rest; the tree always has the same
// distribution as one that is newly drawn from its present sample.
//
// - A point is a shingle: the last few values. It is stored as the index of its newest value, not copied.
// - The score is not the depth of one cut that was drawn, but the expectation over all possible cuts: at
//   each box on the way down, the probability that a cut separates the point from everything inside. The
//   terms (one over the depth, and a logarithm for a point that was seen before) are those that AWS
//   publishes with its library.
// - Each tree samples on its own, and older points fade exponentially: a new point replaces a random one
//   (Aggarwal 2006, biased reservoir sampling). Until the sample is full, nearly every point is taken.
//
// Cost per value: one descent of each tree (about twice the logarithm of its sample size, times the
// shingle) and a change of one tree in ten. Nothing overflows for values within 1e300, because ranges are
// added and never multiplied.

import type { DenseValues } from './dense-values.ts'
import { seededUniform } from './seeded-random.ts'
import { at } from './series.ts'

/** Below this probability, the rest of a descent cannot change the score noticeably. */
const leastShare = 1e-3
const none = -1

export interface ForestShape {
  readonly trees: number
  /** Points per tree. */
  readonly samplePoints: number
  /** Values per point. */
  readonly shinglePoints: number
  /** Mean age of the points in a tree, counted in points. */
  readonly historyPoints: number
}

/**
 * How unusual each point is among the points before it, at the index of its newest value: 0 where there is no
 * earlier point, NaN where a gap interrupts the point. Loops tree by tree and not value by value, so that the
 * tree in use stays in the processor's cache.
 */
export function forestScores({ runs, values }: DenseValues, shape: ForestShape): Float64Array {
  const scores = new Float64Array(values.length)
  const point = new Float64Array(shape.shinglePoints)
  for (let seed = 1; seed <= shape.trees; seed++) {
    const tree = new SampledTree(values, shape, seed)
    for (let i = 0; i < values.length; i++) {
      if ((runs[i] ?? 0) < shape.shinglePoints) continue
      for (let d = 0; d < point.length; d++) point[d] = at(values, i - d)
      scores[i] = at(scores, i) + tree.cuts.scoreOf(point) / shape.trees
      tree.consider(i)
    }
  }
  return scores.map((score, i) => ((runs[i] ?? 0) < shape.shinglePoints ? Number.NaN : score))
}

/** A tree, and the random choice of the points in its sample. */
class SampledTree {
  readonly cuts: CutTree
  readonly #uniform: () => number
  readonly #capacity: number
  /** Share of points taken once the sample is full. */
  readonly #steadyShare: number
  #size = 0

  constructor(
    values: Float64Array,
    { historyPoints, samplePoints, shinglePoints }: ForestShape,
    seed: number,
  ) {
    this.#uniform = seededUniform(seed)
    this.#capacity = samplePoints
    this.#steadyShare = Math.min(1, samplePoints / historyPoints)
    this.cuts = new CutTree(values, samplePoints, shinglePoints, this.#uniform)
  }

  consider(index: number): void {
    const share = Math.max(this.#steadyShare, 1 - this.#size / this.#capacity)
    if (this.#uniform() >= share) return
    if (this.#size < this.#capacity) {
      this.cuts.insert(index, this.#size++)
      return
    }
    const slot = Math.floor(this.#uniform() * this.#capacity)
    this.cuts.remove(slot)
    this.cuts.insert(index, slot)
  }
}

/**
 * One tree. Nodes are numbers. Those below `#leafBase` are inner nodes, with two children, a box and a cut.
 * The others are leaves; each is one point, and equal points share a leaf. Values up to the cut go to the
 * left child. Every box is the smallest one around its points.
 */
class CutTree {
  readonly #values: Float64Array
  readonly #width: number
  readonly #uniform: () => number
  readonly #leafBase: number
  readonly #left: Int32Array
  readonly #right: Int32Array
  readonly #axis: Uint8Array
  readonly #cut: Float64Array
  /** Lower and upper edge of the box of each inner node, dimension by dimension. */
  readonly #edges: Float64Array
  /** Extent of the box of each inner node: the sum over all dimensions. */
  readonly #reach: Float64Array
  readonly #parent: Int32Array
  /** Points below each node, or in the leaf. */
  readonly #mass: Int32Array
  /** Of each leaf, index of the newest value of its point. */
  readonly #point: Int32Array
  readonly #leafOfSlot: Int32Array
  readonly #freeInner: number[] = []
  readonly #freeLeaves: number[] = []
  #root = none

  constructor(values: Float64Array, capacity: number, width: number, uniform: () => number) {
    this.#values = values
    this.#width = width
    this.#uniform = uniform
    this.#leafBase = capacity
    this.#left = new Int32Array(capacity)
    this.#right = new Int32Array(capacity)
    this.#axis = new Uint8Array(capacity)
    this.#cut = new Float64Array(capacity)
    this.#edges = new Float64Array(2 * capacity * width)
    this.#reach = new Float64Array(capacity)
    this.#parent = new Int32Array(2 * capacity)
    this.#mass = new Int32Array(2 * capacity)
    this.#point = new Int32Array(capacity)
    this.#leafOfSlot = new Int32Array(capacity)
    for (let i = capacity - 1; i >= 0; i--) {
      this.#freeInner.push(i)
      this.#freeLeaves.push(capacity + i)
    }
  }

  /**
   * Score of a point, newest value first. It does not depend on the sample size: a point in the middle of
   * the others scores about 1.
   */
  scoreOf(point: Float64Array): number {
    if (this.#root === none) return 0
    const edges = this.#edges
    const width = this.#width
    const leafBase = this.#leafBase
    let node = this.#root
    let depth = 0
    let share = 1
    let score = 0
    for (; node < leafBase; depth++) {
      // The distances to both edges exceed the extent of the box by twice the distance beyond it. This needs
      // no branch; near the leaves the processor would mispredict half of them. The rounding error of the
      // difference is negligible.
      const reach = at(this.#reach, node)
      let toLow = 0
      let toHigh = 0
      for (let d = 0, side = 2 * node * width; d < width; d++, side += 2) {
        const value = at(point, d)
        toLow += Math.abs(value - at(edges, side))
        toHigh += Math.abs(value - at(edges, side + 1))
      }
      const beyond = (toLow + toHigh - reach) / 2
      if (beyond > 0) {
        const cutOff = beyond / (reach + beyond)
        score += (share * cutOff) / (depth + 1)
        share *= 1 - cutOff
        if (share < leastShare) break
      }
      const isLeft = at(point, this.#axis[node] ?? 0) <= at(this.#cut, node)
      node = (isLeft ? this.#left[node] : this.#right[node]) ?? none
    }
    if (node >= leafBase) score += share * this.#leafScore(node, point, depth)
    return score * Math.log2(1 + (this.#mass[this.#root] ?? 0))
  }

  #leafScore(leaf: number, point: Float64Array, depth: number): number {
    const own = this.#point[leaf - this.#leafBase] ?? 0
    for (let d = 0; d < this.#width; d++) {
      if (at(this.#values, own - d) !== at(point, d)) return 1 / (depth + 1)
    }
    const [mass, all] = [this.#mass[leaf] ?? 0, this.#mass[this.#root] ?? 1]
    return (1 - mass / (2 * all)) / (depth + Math.log2(1 + mass))
  }

  /** Adds the point that ends with value `index`. `slot` names it for `remove`. */
  insert(index: number, slot: number): void {
    let node = this.#root
    let parent = none
    while (node !== none) {
      const isLeaf = node >= this.#leafBase
      if (isLeaf && this.#isSamePoint(node, index)) {
        this.#mass[node] = (this.#mass[node] ?? 0) + 1
        this.#leafOfSlot[slot] = node
        return
      }
      const cut = this.#drawCut(node, index)
      if (cut !== null) {
        this.#leafOfSlot[slot] = this.#branchOff(node, parent, index, cut)
        return
      }
      this.#addTo(node, index)
      parent = node
      node = this.#childOf(node, index)
    }
    this.#root = this.#newLeaf(index, none)
    this.#leafOfSlot[slot] = this.#root
  }

  /** Removes the point of a slot. */
  remove(slot: number): void {
    const leaf = this.#leafOfSlot[slot] ?? none
    const mass = (this.#mass[leaf] ?? 0) - 1
    this.#mass[leaf] = mass
    if (mass > 0) {
      this.#removeUpwards(this.#parent[leaf] ?? none, false)
      return
    }
    this.#freeLeaves.push(leaf)
    const parent = this.#parent[leaf] ?? none
    if (parent === none) {
      this.#root = none
      return
    }
    const sibling = (this.#left[parent] === leaf ? this.#right[parent] : this.#left[parent]) ?? none
    const above = this.#parent[parent] ?? none
    this.#freeInner.push(parent)
    this.#link(above, parent, sibling)
    this.#removeUpwards(above, true)
  }

  #childOf(node: number, index: number): number {
    const value = at(this.#values, index - (this.#axis[node] ?? 0))
    return (value <= at(this.#cut, node) ? this.#left[node] : this.#right[node]) ?? none
  }

  #isSamePoint(leaf: number, index: number): boolean {
    const own = this.#point[leaf - this.#leafBase] ?? 0
    for (let d = 0; d < this.#width; d++) {
      if (at(this.#values, own - d) !== at(this.#values, index - d)) return false
    }
    return true
  }

  /** The edges of a node's box in one dimension. The box of a leaf has no extent. */
  #lowOf(node: number, d: number): number {
    if (node < this.#leafBase) return at(this.#edges, 2 * (node * this.#width + d))
    return at(this.#values, (this.#point[node - this.#leafBase] ?? 0) - d)
  }

  #highOf(node: number, d: number): number {
    return node < this.#leafBase ? at(this.#edges, 2 * (node * this.#width + d) + 1) : this.#lowOf(node, d)
  }

  /**
   * Draws a random cut of the box around a node and a point. Returns null where the cut
   * does not separate the two.
   */
  #drawCut(node: number, index: number): { axis: number; at: number } | null {
    let beyond = 0
    for (let d = 0; d < this.#width; d++) beyond += this.#gapOf(node, index, d)
    // The cut falls anywhere in the box around both. It separates them where it falls
    // outside the node's own box.
    const isLeaf = node >= this.#leafBase
    const reach = isLeaf ? 0 : at(this.#reach, node)
    let rest = this.#uniform() * (reach + beyond)
    if (rest >= beyond && !isLeaf) return null
    let axis = 0
    for (let d = 0; d < this.#width; d++) {
      const gap = this.#gapOf(node, index, d)
      if (gap === 0) continue
      axis = d
      if (rest < gap) break
      rest -= gap
    }
    const value = at(this.#values, index - axis)
    const low = this.#lowOf(node, axis)
    const high = this.#highOf(node, axis)
    // Only a rounding error can move the cut past the gap. A cut at the lower end of the gap
    // always separates the two.
    if (value < low) return { axis, at: value + rest < low ? value + rest : value }
    return { axis, at: high + rest < value ? high + rest : high }
  }

  /** Distance of the point from a node's box in one dimension. */
  #gapOf(node: number, index: number, d: number): number {
    const value = at(this.#values, index - d)
    const low = this.#lowOf(node, d)
    if (value < low) return low - value
    const high = this.#highOf(node, d)
    return value > high ? value - high : 0
  }

  /** Puts a new leaf beside a node, below a new inner node that replaces it. Returns the leaf. */
  #branchOff(node: number, parent: number, index: number, cut: { axis: number; at: number }): number {
    const inner = this.#freeInner.pop() ?? none
    const leaf = this.#newLeaf(index, inner)
    for (let d = 0; d < this.#width; d++) {
      this.#edges[2 * (inner * this.#width + d)] = this.#lowOf(node, d)
      this.#edges[2 * (inner * this.#width + d) + 1] = this.#highOf(node, d)
    }
    this.#mass[inner] = this.#mass[node] ?? 0
    this.#addTo(inner, index)
    this.#axis[inner] = cut.axis
    this.#cut[inner] = cut.at
    const isBelow = at(this.#values, index - cut.axis) <= cut.at
    this.#left[inner] = isBelow ? leaf : node
    this.#right[inner] = isBelow ? node : leaf
    this.#link(parent, node, inner)
    this.#parent[node] = inner
    return leaf
  }

  #newLeaf(index: number, parent: number): number {
    const leaf = this.#freeLeaves.pop() ?? none
    this.#point[leaf - this.#leafBase] = index
    this.#mass[leaf] = 1
    this.#parent[leaf] = parent
    return leaf
  }

  /** Replaces the child `before` of `parent` by `after`. */
  #link(parent: number, before: number, after: number): void {
    this.#parent[after] = parent
    if (parent === none) this.#root = after
    else if (this.#left[parent] === before) this.#left[parent] = after
    else this.#right[parent] = after
  }

  #addTo(node: number, index: number): void {
    this.#mass[node] = (this.#mass[node] ?? 0) + 1
    let reach = 0
    for (let d = 0, side = 2 * node * this.#width; d < this.#width; d++, side += 2) {
      const value = at(this.#values, index - d)
      if (value < at(this.#edges, side)) this.#edges[side] = value
      if (value > at(this.#edges, side + 1)) this.#edges[side + 1] = value
      reach += at(this.#edges, side + 1) - at(this.#edges, side)
    }
    this.#reach[node] = reach
  }

  /**
   * Subtracts one point from a node and all nodes above it, and shrinks their boxes until one stays as it is.
   */
  #removeUpwards(from: number, mayShrink: boolean): void {
    let shrinks = mayShrink
    for (let node = from; node !== none; node = this.#parent[node] ?? none) {
      this.#mass[node] = (this.#mass[node] ?? 0) - 1
      if (shrinks) shrinks = this.#shrink(node)
    }
  }

  #shrink(node: number): boolean {
    const [left, right] = [this.#left[node] ?? none, this.#right[node] ?? none]
    let isSmaller = false
    let reach = 0
    for (let d = 0, side = 2 * node * this.#width; d < this.#width; d++, side += 2) {
      const low = Math.min(this.#lowOf(left, d), this.#lowOf(right, d))
      const high = Math.max(this.#highOf(left, d), this.#highOf(right, d))
      isSmaller ||= low !== at(this.#edges, side) || high !== at(this.#edges, side + 1)
      this.#edges[side] = low
      this.#edges[side + 1] = high
      reach += high - low
    }
    this.#reach[node] = reach
    return isSmaller
  }
}
