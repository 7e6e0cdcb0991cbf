// Copies the state of a scorer, so that a run can continue from it without changing it. The copy shares
// nothing that can change with the original: objects, arrays, maps, sets and typed arrays are copied once
// each, however often they are referred to. Functions are shared, so they must not keep state.
//
// State must be in ordinary fields: a field with `#` is invisible from outside its class, and its object
// could not be copied. Classes of scorers therefore use `private`, and a test copies every method's scorer.

/** Returns an independent copy of an object and of everything it refers to. */
export function copyState<T extends object>(state: T): T {
  return copyOf(state, new Map()) as T
}

/** Bytes of the numbers and of the fields that the state keeps: an estimate for limits. */
export function stateBytes(state: object): number {
  let bytes = 0
  const seen = new Set<object>()
  const open: unknown[] = [state]
  while (open.length > 0) {
    const each = open.pop()
    bytes += bytesPerField
    if (typeof each !== 'object' || each === null || seen.has(each)) continue
    seen.add(each)
    if (ArrayBuffer.isView(each)) bytes += each.byteLength
    else if (each instanceof Map) open.push(...each.keys(), ...each.values())
    else if (each instanceof Set) open.push(...each)
    else open.push(...Object.values(each))
  }
  return bytes
}

const bytesPerField = 16

type TypedArray = Float64Array | Float32Array | Int32Array | Uint32Array | Uint16Array | Uint8Array

function copyOf(value: unknown, copies: Map<object, object>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const known = copies.get(value)
  if (known !== undefined) return known
  if (ArrayBuffer.isView(value)) return keep((value as TypedArray).slice(), value, copies)
  if (Array.isArray(value)) {
    const copy: unknown[] = keep([], value, copies)
    for (const each of value) copy.push(copyOf(each, copies))
    return copy
  }
  if (value instanceof Map) {
    const copy = keep(new Map<unknown, unknown>(), value, copies)
    for (const [key, each] of value) copy.set(copyOf(key, copies), copyOf(each, copies))
    return copy
  }
  if (value instanceof Set) {
    const copy = keep(new Set<unknown>(), value, copies)
    for (const each of value) copy.add(copyOf(each, copies))
    return copy
  }
  const copy: Record<string, unknown> = keep(Object.create(Object.getPrototypeOf(value)), value, copies)
  for (const [name, each] of Object.entries(value)) copy[name] = copyOf(each, copies)
  return copy
}

function keep<T extends object>(copy: T, original: object, copies: Map<object, object>): T {
  copies.set(original, copy)
  return copy
}
