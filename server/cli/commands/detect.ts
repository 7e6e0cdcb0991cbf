// `lethe detect`: runs a detector on a file. The definition only; the command loads its code when it runs.

import { type Command, Option } from 'commander'
import { methodChoices } from './choices.ts'
import { withExamples, withJson } from './help.ts'

export function addDetectCommand(program: Command): void {
  withExamples(
    withJson(program.command('detect'))
      .description('find anomalies in a file with the code of the detectors, without a service')
      .requiredOption('--csv <FILE>', 'lines of timestamp,value; - is standard input')
      .addOption(
        new Option(
          '--method <key>',
          'the detection method; robust_band where absent, auto with --as-served',
        ).choices([...methodChoices]),
      )
      .option('--params <JSON>', 'its params, as a detector takes them', '{}')
      .option('--grouped', 'lines are timestamp,group,value: a series for each group')
      .option('--step <minutes>', 'width of a bucket (default: the usual distance between two points)')
      .addOption(
        new Option('--scores', 'print each bucket with its score, and the band after it, as CSV').conflicts(
          'json',
        ),
      )
      .option('--chart', 'draw the series with its band; the default where a terminal shows the output')
      .option('--no-chart', 'draw nothing')
      .option('--svg <FILE>', 'write a chart of the series, its band and its anomalies to FILE')
      .option('--deploys <FILE>', 'lines of timestamp,version, which the chart marks')
      .addOption(
        new Option(
          '--as-served',
          'what a detector of the service would have recorded, run after run on its schedule',
        ).conflicts(['scores', 'grouped', 'step']),
      )
      .option('--suggest', 'with --as-served: what is proposed from the first part of the file')
      .option('--budget <alarms>', 'with --as-served: false alarms a week that are accepted; 1 where absent')
      .action(async (options) => (await import('../detect.ts')).detect(options)),
    'lethe detect --csv latency.csv --method seasonal_band --svg latency.svg',
    'journalctl -o short-unix -u web | awk \'{print int($1)",1"}\' | lethe detect --csv - --method rate_test',
    'lethe detect --csv fleet.csv --grouped --method peer_outlier --json',
    'lethe detect --csv requests.csv --as-served --budget 1 --json',
  )
}
