// The list of benches: what each measures, how long it takes, and the arguments with which its result is
// stored. docs/performance.md has the figures in this order; bench/README.md lists the benches.

export interface Bench {
  /** `ingest/http` is bench/ingest/http.ts, `neighbours` is bench/neighbours/neighbours.ts. */
  readonly name: string
  /** One sentence for the list. */
  readonly measures: string
  /** What the figures mean and which bar they must reach; a paragraph of docs/performance.md. */
  readonly reading: string
  /** Approximate duration with `args`, on two cores. */
  readonly minutes: number
  /** Arguments with which its result is stored. Empty where the defaults of the bench are right. */
  readonly args: readonly string[]
  /** Arguments, separated by spaces, with which each part runs once. The figures mean nothing. */
  readonly smallest: string
  /** What the machine needs besides the dependencies; without it, a part is reported as absent. */
  readonly wants?: string
}

const peerStores = 'Prometheus, PostgreSQL, InfluxDB and VictoriaMetrics from Debian'

export const benches: readonly Bench[] = [
  {
    name: 'ingest/http',
    measures: 'OTLP/HTTP to committed rows, beside the engine alone with the same rows',
    reading:
      'Senders and service share the cores; the engine alone uses all of them and gets prepared buffers, so the real ratios are higher. ' +
      '*Sustained* includes the time until all merges are done, for both. The latencies at 80 % are measured at four fifths of the sustained rate. ' +
      'Bars: 0.6 of the engine alone, and a p99 of 500 ms at 80 %.',
    minutes: 12,
    args: ['--seconds', '12'],
    smallest: '--signals logs --organisations 1 --seconds 1 --clients 4',
  },
  {
    name: 'ingest/decode',
    measures: 'how fast OTLP bodies become rows, without network and engine',
    reading:
      'Seconds are CPU time. The body is a batch of a Collector: eight resources with 256 records or more each.',
    minutes: 1,
    args: [],
    smallest: '0.1',
  },
  {
    name: 'ingest/peers',
    measures: 'the same gauges and counters into Lethe and into other common stores',
    reading:
      'Every store gets 3,840,000 points by its own protocol from 32 senders in a closed loop. A core means processor time of the server; senders do not count. ' +
      'Merged is the size on disk after the store has merged everything. With `--only victoria-metrics-text` it measures the text format of VictoriaMetrics.',
    minutes: 13,
    args: ['--only', 'lethe,lethe-remote-write,prometheus,victoria-metrics,influxdb,postgresql'],
    smallest: '--senders 2 --series 20 --rounds 6 --warm 1 --only lethe,postgresql',
    wants: peerStores,
  },
  {
    name: 'deletion/erase',
    measures:
      'erasing one organisation of 64 including its bytes on disk, beside deletes of the engine and of other common stores',
    reading:
      '*Gone* is the time until no file with the erased rows is left, watched from outside in the same way for every store; medians of five erasures for Lethe. ' +
      'The engine by day has the same 50 million rows in tables partitioned by day; the other stores, and Lethe once more, have 4 million gauges and counters. ' +
      'Files that stay are watched for two minutes at most. ' +
      'Bar: 100 times faster than the plain `ALTER DELETE`, and under one second.',
    minutes: 20,
    args: ['--points', '4000000', '--limit-seconds', '120'],
    smallest: '--rows 40000 --points 31000 --repeat 1 --limit-seconds 20 --only engine,prometheus',
    wants: peerStores,
  },
  {
    name: 'deletion/recent',
    measures: 'erasing the last hour of a week, with the parts of before linked and with all of them copied',
    reading:
      'A whole attempt, from the plan to the read-back, in one process without load. *Written* is what the kernel counts for the process, control plane included. ' +
      'Bar: the time does not depend on the size of the week where its parts are linked.',
    minutes: 1,
    args: [],
    smallest: '--rows 1000',
  },
  {
    name: 'query/reads',
    measures: 'detector windows, charts, searches and one trace, over ten million rows',
    reading:
      'Measured through the functions that serve HTTP requests. The largest organisation has a fifth of all rows, the middle one is the 21st of 64. The page cache is warm. ' +
      'Bar: a window of a day at a p50 of 10 ms.',
    minutes: 12,
    args: ['--rows', '10000000'],
    smallest: '--rows 2000 --seconds 0.01 --only trace',
  },
  {
    name: 'query/pages',
    measures: 'what the rows of a page of four megabytes cost the event loop, beside JSON as whole texts',
    reading:
      'From the bytes that the engine returns to the bytes of the response: parsing, counting items, and writing by the schema. Medians of wall time.',
    minutes: 1,
    args: [],
    smallest: '--rounds 1',
  },
  {
    name: 'detection/due',
    measures: 'a round of 1,000 detectors that are due at once, over ten million rows',
    reading: 'Read together, as the service does, beside one by one. Bar: 5 seconds on two cores.',
    minutes: 8,
    args: [],
    smallest: '--rows 2000 --detectors 20',
  },
  {
    name: 'detection/cost',
    measures: 'what each detection method costs, in buckets per second of one core',
    reading: 'The best of three rounds, by CPU time.',
    minutes: 5,
    args: [],
    smallest: 'threshold,absence',
  },
  {
    name: 'detection/nab',
    measures: 'every detection method on the Numenta Anomaly Benchmark',
    reading:
      '*Oracle* is NAB as it is usually published, with one threshold chosen with the labels; *held out* uses for each group the threshold of the other groups; ' +
      '*shipped* are the alarms of the default parameters. Bar: `auto` shipped at 62 or above.',
    minutes: 10,
    args: [],
    smallest: '--methods absence',
    wants: 'the data of NAB, in the folder that LETHE_NAB_DIR names',
  },
  {
    name: 'detection/field',
    measures: 'what the default method finds in labelled series of real operations, and what of it is right',
    reading:
      'KPIs of the AIOps Challenge 2018, judged on their second half, and rates and latencies of Microsoft’s cloud, judged from the 80th bucket, at a budget of one false alarm a week. ' +
      'Recall counts labelled events, and stretches of events less than an hour apart; precision counts alarms that overlap an event. No choice was made on the groups that are held out.',
    minutes: 10,
    args: [],
    smallest: '--series app1-01',
    wants: 'the data of the field, in the folder that LETHE_FIELD_DIR names',
  },
  {
    name: 'detection/budget',
    measures: 'false alarms over the alarm budget, and which planted incidents are found at that budget',
    reading:
      'Seeded series without incidents, of the kinds for which simple detectors fail. 1 is the budget, less is quieter; *at least* is the lower end of a one-sided 95 % interval. ' +
      'Bar: at most 1.5 in every family.',
    minutes: 60,
    args: ['', '7', '2'],
    smallest: 'robust_band 7 1 --families skewed --ways short,rare',
  },
  {
    name: 'detection/incidents',
    measures: 'planted incidents in generated telemetry: recall, precision and false alarms of `auto`',
    reading:
      'Two corpora with leaks, constant readings, lost rhythms and missing rises. An alarm matches an incident if it opens during the incident or within an hour after it. ' +
      '*Visible* are incidents that a person sees in a chart (bench/detection/visible.ts). The lowest edges of `auto` were chosen with seeds 1 and 2; these are seeds that no choice has seen. ' +
      'Bar: .9 of the visible at half a false alarm a series and week.',
    minutes: 9,
    args: ['auto', '1,7', '3', '--from', '3'],
    smallest: 'robust_band 7 1 --only lifelike',
  },
  {
    name: 'detection/system-detectors',
    measures: 'which incidents the system detectors and the demo’s detectors find',
    reading:
      'Run after run, as the service runs them. False alarms are counted on the same traffic without incidents.',
    minutes: 10,
    args: [],
    smallest: '1 --shop-seeds 1',
  },
  {
    name: 'detection/origin',
    measures: 'whether an incident names the service in which it began, for twelve kinds of fault',
    reading:
      'Shares of all faults; one that no detector noticed counts against both. Bars: 0.7 for the first candidate, 0.9 for the first three. ' +
      '*Without spans* is the same with all spans hidden: what the anomalies alone tell.',
    minutes: 3,
    args: [],
    smallest: '1 --services 1',
  },
  {
    name: 'storage/bytes',
    measures: 'bytes on disk of a row of each kind, for the telemetry of the demo’s shop',
    reading: 'Two weeks, merged to one part a partition.',
    minutes: 4,
    args: [],
    smallest: '--days 1',
  },
  {
    name: 'storage/records',
    measures: 'bytes on disk of a log record and a span, beside PostgreSQL',
    reading: 'The bodies of the ingest benches: random ids and words, which compress less than the shop’s.',
    minutes: 3,
    args: [],
    smallest: '--bodies 2',
    wants: 'PostgreSQL from Debian',
  },
  {
    name: 'console/chart',
    measures: 'the console’s chart of days, from its data to the painted frame',
    reading:
      'The built console in Chromium, without a graphics card, on its page Storage. *Drawn* is the time from parsed data until the first frame with the bars is on the screen, as the browser reports it, and includes the work of the whole page at its first opening. Parsing is before it. The *third frame* after the bars are in the page, which older results call drawn, needs two frames more. The browser loads the pages of its own address bar in each new window; that is switched off, and results of before have it. ' +
      'The least number of points is the baseline. The console itself has 62,000 points at most, three signals a day since 1970. Bar: 100,000 points in 300 ms.',
    minutes: 1,
    args: [],
    smallest: '--points 1200 --repeat 1',
    wants: 'Chromium from Debian',
  },
  {
    name: 'control',
    measures:
      'the same load on a control plane on SQLite and on PostgreSQL, and the statements of each request',
    reading:
      'Two services beside each other, each on a folder of its own; the rounds of a load alternate between them. PostgreSQL is on the same disk and reached by a socket; a network adds its time to each statement. ' +
      'Clients send in a closed loop, and a commit of telemetry waits 50 ms for others. Statements include those that begin and end transactions, and not those that a service sends without clients. ' +
      'What was sent is counted once for all requests that are acknowledged together. Erasures have almost no telemetry to remove. Aim: no look-up for a request that sends telemetry.',
    minutes: 5,
    args: [],
    smallest: '--seconds 0.3 --rounds 1 --detectors 8',
    wants: 'PostgreSQL from Debian',
  },
  {
    name: 'control/flush',
    measures:
      'what it costs to remove erased anomalies from the files of PostgreSQL, and how long readers and writers wait meanwhile',
    reading:
      'A control plane of 10,000 organisations with five detectors each. One organisation’s anomalies are deleted, then the three derived tables are written anew, as at the end of an erasure ([0041](decisions/0041-erased-on-postgresql.md)), while one client reads anomalies all the time and another one changes one 100 times a second. ' +
      'The longest waits are of all rounds; a statement that waits for five seconds is refused as busy. PostgreSQL is on the same disk, without other work.',
    minutes: 3,
    args: [],
    smallest: '--anomalies 1000 --organisations 100 --rounds 1',
    wants: 'PostgreSQL from Debian',
  },
  {
    name: 'control/flush-sqlite',
    measures:
      'what it costs to remove erased anomalies from the file of SQLite, and how long the event loop stands still meanwhile',
    reading:
      'One anomaly is deleted, then the derived tables are rewritten, as at the end of an erasure ([0060](decisions/0060-erased-on-sqlite.md)). ' +
      'Beside it: flushes where nothing was removed and where only another organisation has lost a row, and a VACUUM of the whole file.',
    minutes: 2,
    args: [],
    smallest: '--anomalies 300 --rounds 1',
  },
  {
    name: 'neighbours',
    measures: 'how more than sixty attacks by one organisation affect an honest one',
    reading:
      'The honest organisation sends at a fifth of the measured capacity, reads charts, erases and has detectors. ' +
      'Bars: its p99 at most twice the calm value or 500 ms, no refusal, 2,500 MB, quick charts again within 5 seconds. ' +
      'An attack that misses one is tried twice more; the middle one of the three trials is shown, with the refusals and the memory of all.',
    minutes: 50,
    args: [],
    smallest: '--seconds 2 --calm-seconds 2 --rate 5 --only token-guessing',
  },
]

export function benchNamed(name: string): Bench | undefined {
  return benches.find((bench) => bench.name === name)
}
