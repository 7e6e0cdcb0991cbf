// Well-formed bodies with a rare meaning: attribute lists that repeat a key, few or many, and metrics whose
// data changes its kind. Random and damaged messages contain these too rarely.

import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { below, copyOf, encodeFields, type Node, parseFields, type Random } from './mutate.ts'
import { requestType } from './otlp-messages.ts'

/** Returns the body with keys of one attribute list repeated, or null where it has none. */
export function repeatKeys(signal: Signal, body: Buffer, random: Random): Buffer | null {
  return change(signal, body, (nodes) => {
    const list = pick(listsWith(nodes, 'KeyValue'), random)
    if (list === undefined) return false
    const given = list.filter(({ type }) => type?.name === 'KeyValue')
    const { number = 1 } = given[0] ?? {}
    // A few keys are compared with each other; many use a lookup.
    const fresh = Array.from({ length: random() < 0.3 ? 17 + below(random, 20) : 0 }, (_, i) =>
      entry(number, [textNode(1, `key-${i}`)], random),
    )
    list.push(...fresh)
    for (let i = 0; i <= below(random, 4); i++) {
      const fields = pick([...given, ...fresh], random)?.value ?? []
      const key = Array.isArray(fields) ? fields.filter((field) => field.number === 1) : []
      list.splice(below(random, list.length + 1), 0, entry(number, key, random))
    }
    return true
  })
}

const dataNumbers = [5, 7, 9, 10, 11]
const isData = ({ number, value }: Node) => dataNumbers.includes(number) && Array.isArray(value)

/**
 * Returns the body with one metric's data followed or preceded by data of another kind, or null where it has
 * no data.
 */
export function changeKind(body: Buffer, random: Random): Buffer | null {
  return change('metrics', body, (nodes) => {
    const metrics = listsWith(nodes, 'Metric').flatMap((list) =>
      list.flatMap(({ value, type }) => (type?.name === 'Metric' && Array.isArray(value) ? [value] : [])),
    )
    const all = metrics.flatMap((metric) => metric.filter(isData))
    const metric = pick(
      metrics.filter((fields) => fields.some(isData)),
      random,
    )
    const own = metric?.find(isData)
    if (metric === undefined || own === undefined) return false
    const others = all.filter(({ number }) => number !== own.number)
    const other = pick(others, random) ?? { ...own, number: own.number === 5 ? 7 : 5 }
    metric.splice(below(random, metric.length + 1), 0, copyOf(other))
    if (random() < 0.3) metric.push(copyOf(own))
    return true
  })
}

function change(signal: Signal, body: Buffer, work: (nodes: Node[]) => boolean): Buffer | null {
  const nodes = parseFields(requestType(signal), body)
  return nodes !== null && work(nodes) ? Buffer.from(encodeFields(nodes)) : null
}

/** Every list of fields in the tree that has a message of the type. */
function listsWith(nodes: Node[], typeName: string): Node[][] {
  const inner = nodes.flatMap(({ value }) => (Array.isArray(value) ? listsWith(value, typeName) : []))
  return nodes.some(({ type }) => type?.name === typeName) ? [nodes, ...inner] : inner
}

const pick = <T>(list: readonly T[], random: Random): T | undefined => list[below(random, list.length)]

/** A `KeyValue` with these fields and its own value. */
function entry(number: number, key: readonly Node[], random: Random): Node {
  const value: Node = {
    number: 2,
    wireType: 2,
    type: null,
    value: [textNode(1, `value-${below(random, 1e6)}`)],
  }
  return { number, wireType: 2, type: null, value: [...key.map(copyOf), value] }
}

function textNode(number: number, text: string): Node {
  const bytes = Buffer.from(text)
  return { number, wireType: 2, type: null, value: Buffer.concat([Buffer.from([bytes.length]), bytes]) }
}
