// `lethe ledger`, `lethe audit` and `lethe certificate`: export and verify evidence. Definitions only; a
// command loads its code when it runs.

import type { Command } from 'commander'
import { ofOrg, withExamples, withJson } from './help.ts'
import { config } from './operator.ts'

const jwks = [
  '--jwks <KEYS>',
  'trust these keys (a saved /.well-known/jwks.json) instead of this data folder’s',
] as const

export function addChainCommands(program: Command): void {
  for (const [chain, what] of [
    ['ledger', 'every change of deletion requests'],
    ['audit', 'who did what'],
  ] as const) {
    const command = program.command(chain).description(`the ${chain} of an organisation: ${what}`)
    const load = () => import('../evidence.ts')
    withExamples(
      command
        .command('export')
        .description('write it to standard output as NDJSON that ends with a signed checkpoint')
        .addOption(ofOrg())
        .action(async (options) => (await load()).exportEvidence(await config(), chain, options)),
      `lethe ${chain} export --org acme > ${chain}.ndjson`,
    )
    withExamples(
      withJson(command.command('verify'))
        .description('check an exported FILE, or every chain of this data folder; exits 1 if it is broken')
        .argument('[FILE]', 'an export')
        .option('--org <tenant_id>', 'only this organisation')
        .option(...jwks)
        .option('--live', 'also check that the chain of this data folder continues the FILE')
        .action(async (file, options) => {
          process.exitCode = await (await load()).verifyEvidence(await config(), chain, file, options)
        }),
      `lethe ${chain} verify`,
      `lethe ${chain} verify ${chain}.ndjson --jwks jwks.json`,
    )
  }
}

export function addCertificateCommands(program: Command): void {
  const certificate = program.command('certificate').description('certificates of deletions')
  withExamples(
    withJson(certificate.command('verify'))
      .description(
        'check a certificate without the service; exits 1 if it is not valid, 2 without a trusted key',
      )
      .argument('<FILE>', 'the JSON form, or the text of its signature')
      .option(...jwks)
      .action(async (file, options) => {
        const { verifyCertificate } = await import('../certificate.ts')
        process.exitCode = await verifyCertificate(await config(), file, options)
      }),
    'lethe certificate verify certificate.json --jwks jwks.json',
  )
}
