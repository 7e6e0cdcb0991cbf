// The reasons for which a single record is refused while the rest of its request is stored, and every limit
// that leads to such a refusal. Nothing is ever shortened to fit: a truncated value would look like a true
// one. The same request in protobuf and in JSON must result in the same reasons although its fields arrive in
// different orders, so of several faults of one record the one that is listed first is reported.

/**
 * Attributes of one record, resource or scope. SDKs keep 128 by default; more than eight times that is a
 * mistake.
 */
export const maxAttributes = 1_024

/**
 * Length of an attribute key, in UTF-16 units. Keys are in a dictionary of the column, which must stay small;
 * the longest key of the semantic conventions has less than 100.
 */
export const maxKeyLength = 1_024

/**
 * Length of a metric name, in UTF-16 units. The specification allows 255; other sources allow somewhat more.
 */
export const maxMetricNameLength = 1_024

/**
 * Length of every other text except a log body, in UTF-16 units: enough for a stack trace (16 KiB are
 * common), and small enough that a page of records fits into memory.
 */
export const maxTextLength = 32_768

/**
 * Length of a log body, in UTF-16 units: as large as the default limit of a request, so that a body is never
 * the reason.
 */
export const maxBodyLength = 1_048_576

/**
 * Nested arrays and maps in one attribute value. Real values have one or two levels; the limit prevents a
 * stack overflow.
 */
export const maxNesting = 32

/** Buckets, quantiles, exemplars, events or links of one record. SDKs stop at 160 buckets and 128 events. */
export const maxListLength = 4_096

/**
 * Exclusive end of the times that the engine can store, nanoseconds since 1970: 2149-06-01. A week is
 * identified by its Monday as a 16-bit day number, which ends on 2149-06-06.
 */
export const endOfTimeNs = 5_661_792_000_000_000_000n

/** Reasons in the order of priority; each follows "2 points: " in a response. */
export const faultReasons = [
  'time is 0',
  'time is outside 1970-01-01 to 2149-06-01',
  'start time is outside 1970-01-01 to 2149-06-01',
  'time of an exemplar or event is outside 1970-01-01 to 2149-06-01',
  'trace id is missing or not 16 bytes',
  'span id is missing or not 8 bytes',
  'parent span id is not 8 bytes',
  'metric name is empty',
  `metric name is longer than ${maxMetricNameLength}`,
  'point has no value',
  'bucket counts do not fit the bounds',
  'severity number is outside 0 to 255',
  `more than ${maxAttributes} attributes`,
  `attribute key is longer than ${maxKeyLength}`,
  `attribute value is longer than ${maxTextLength}`,
  `attribute value or body is nested deeper than ${maxNesting}`,
  `body is longer than ${maxBodyLength}`,
  `text is longer than ${maxTextLength}`,
  `more than ${maxListLength} buckets, quantiles, exemplars, events or links`,
  'label name is empty or stands twice',
  'native histogram of a gauge',
  'native histogram with fractional counts',
  'native histogram of an unknown schema',
  'native histogram whose counts do not fit its spans',
] as const

/** An index of {@link faultReasons}, or {@link noFault}. The smaller one of two faults is reported. */
export type Fault = number

/**
 * Larger than every fault, so that `Math.min` combines the faults of a record with those of its resource and
 * scope.
 */
export const noFault: Fault = faultReasons.length

export const fault = {
  timeIsZero: 0,
  timeOutside: 1,
  startOutside: 2,
  innerTimeOutside: 3,
  traceId: 4,
  spanId: 5,
  parentSpanId: 6,
  noName: 7,
  nameTooLong: 8,
  noValue: 9,
  bucketMismatch: 10,
  severity: 11,
  tooManyAttributes: 12,
  keyTooLong: 13,
  valueTooLong: 14,
  nestedTooDeep: 15,
  bodyTooLong: 16,
  textTooLong: 17,
  listTooLong: 18,
  labels: 19,
  gaugeHistogram: 20,
  fractionalCounts: 21,
  unknownSchema: 22,
  spanMismatch: 23,
} as const satisfies Record<string, Fault>
