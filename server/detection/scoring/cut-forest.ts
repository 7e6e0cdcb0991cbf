// A random cut forest (Guha, Mishra, Roy, Schrijvers 2016): trees that cut a sample of the past at random, dimension by
// dimension in proportion to how far it reaches, until every point is alone. What lies apart from the rest is cut off
// early, so the depth at which a point would be cut off says how odd it is. A tree is kept as it would have been drawn of
// its present sample: points join and leave without the rest being drawn anew.
//
// - A point is a shingle: the last few values. It is kept as the index of its newest value, not copied.
// - The score is not the depth of one cut that was drawn but the expectation over all that could be: at each box on the
//   way down, how likely would a cut separate the point from everything inside? The terms, one over the depth and a
//   logarithm for what was seen before, are those AWS publishes with its library.
// - Each tree samples on its own, older points fading exponentially: a newcomer replaces a random one (Aggarwal 2006,
//   biased reservoir sampling). At first nearly everything is taken.
//
// Cost per value: a way down each tree, about twice the logarithm of its sample times the shingle, and a change of one
// tree in ten. Nothing overflows for values within 1e300, because ranges are added and never multiplied.

import type { DenseValues } from './dense-values.ts'
import { seededUniform } from './seeded-random.ts'
import { at } from './series.ts'

/** With less left to lose the rest of a way down can't matter. */
const leastShare = 1e-3
const none = -1

export interface ForestShape {
  readonly trees: number
  /** Points per tree. */
  readonly samplePoints: number
  /** Values per point. */
  readonly shinglePoints: number
  /** Mean age of the points in a tree, in points seen. */
  readonly historyPoints: number
}

/**
 * How odd each value is as the end of a point, among the points before it: 0 where there is none before it, NaN where a
 * gap cuts the point. Tree by tree and not value by value, so that the tree at work stays in the processor's cache.
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

/** A tree and the lot that decides which points it holds. */
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
    const seat = Math.floor(this.#uniform() * this.#capacity)
    this.cuts.remove(seat)
    this.cuts.insert(index, seat)
  }
}

/**
 * One tree. Nodes are numbers: below `#leafBase` those with two children, their box and their cut; from there on leaves,
 * each a point. Equal points share a leaf. A value up to the cut goes left. Every box is the smallest around its points.
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
  /** Lower and upper edge of each inner box, dimension by dimension. */
  readonly #edges: Float64Array
  /** How far each inner box reaches, all dimensions added up. */
  readonly #reach: Float64Array
  readonly #parent: Int32Array
  /** Points below each node, or in the leaf. */
  readonly #mass: Int32Array
  /** Of each leaf, index of the newest value of its point. */
  readonly #point: Int32Array
  readonly #leafOfSeat: Int32Array
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
    this.#leafOfSeat = new Int32Array(capacity)
    for (let i = capacity - 1; i >= 0; i--) {
      this.#freeInner.push(i)
      this.#freeLeaves.push(capacity + i)
    }
  }

  /**
   * Of a point, newest value first. In units that do not depend on the size of the sample: about 1 for one in the middle
   * of the others.
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
      // Distances to both edges exceed the box by twice what lies beyond it. No branch, which near the leaves would be
      // guessed wrong half of the time; what rounding leaves of the difference is far below what matters.
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

  /** Adds the point that ends with value `index`; `seat` is how it is called when it leaves. */
  insert(index: number, seat: number): void {
    let node = this.#root
    let parent = none
    while (node !== none) {
      const isLeaf = node >= this.#leafBase
      if (isLeaf && this.#isSamePoint(node, index)) {
        this.#mass[node] = (this.#mass[node] ?? 0) + 1
        this.#leafOfSeat[seat] = node
        return
      }
      const cut = this.#drawCut(node, index)
      if (cut !== null) {
        this.#leafOfSeat[seat] = this.#branchOff(node, parent, index, cut)
        return
      }
      this.#takeIn(node, index)
      parent = node
      node = this.#childOf(node, index)
    }
    this.#root = this.#newLeaf(index, none)
    this.#leafOfSeat[seat] = this.#root
  }

  /** Takes the point of a seat out. */
  remove(seat: number): void {
    const leaf = this.#leafOfSeat[seat] ?? none
    const mass = (this.#mass[leaf] ?? 0) - 1
    this.#mass[leaf] = mass
    if (mass > 0) {
      this.#giveUp(this.#parent[leaf] ?? none, false)
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
    this.#giveUp(above, true)
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

  /** Edges of the box of a node along one dimension; a leaf is a box without extent. */
  #lowOf(node: number, d: number): number {
    if (node < this.#leafBase) return at(this.#edges, 2 * (node * this.#width + d))
    return at(this.#values, (this.#point[node - this.#leafBase] ?? 0) - d)
  }

  #highOf(node: number, d: number): number {
    return node < this.#leafBase ? at(this.#edges, 2 * (node * this.#width + d) + 1) : this.#lowOf(node, d)
  }

  /** A random cut of the box around a node and the point; null where it does not part the two. */
  #drawCut(node: number, index: number): { axis: number; at: number } | null {
    let beyond = 0
    for (let d = 0; d < this.#width; d++) beyond += this.#gapOf(node, index, d)
    // The cut falls anywhere in the box around both, and parts them where it falls outside the node's own.
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
    // Only rounding can carry the lot past the gap; a cut at its lower end parts them always.
    if (value < low) return { axis, at: value + rest < low ? value + rest : value }
    return { axis, at: high + rest < value ? high + rest : high }
  }

  /** How far the point lies outside the box of a node along one dimension. */
  #gapOf(node: number, index: number, d: number): number {
    const value = at(this.#values, index - d)
    const low = this.#lowOf(node, d)
    if (value < low) return low - value
    const high = this.#highOf(node, d)
    return value > high ? value - high : 0
  }

  /** Puts a new leaf beside a node, under a new one that takes its place; answers the leaf. */
  #branchOff(node: number, parent: number, index: number, cut: { axis: number; at: number }): number {
    const inner = this.#freeInner.pop() ?? none
    const leaf = this.#newLeaf(index, inner)
    for (let d = 0; d < this.#width; d++) {
      this.#edges[2 * (inner * this.#width + d)] = this.#lowOf(node, d)
      this.#edges[2 * (inner * this.#width + d) + 1] = this.#highOf(node, d)
    }
    this.#mass[inner] = this.#mass[node] ?? 0
    this.#takeIn(inner, index)
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

  /** Puts `after` where `before` hung. */
  #link(parent: number, before: number, after: number): void {
    this.#parent[after] = parent
    if (parent === none) this.#root = after
    else if (this.#left[parent] === before) this.#left[parent] = after
    else this.#right[parent] = after
  }

  #takeIn(node: number, index: number): void {
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

  /** One point fewer from a node upwards; boxes shrink for as long as they do. */
  #giveUp(from: number, mayShrink: boolean): void {
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
