// Renders the certificate as one printed page: the same facts in the same words, the whole signature, and how
// to check it without the service. The page loads and runs nothing. Every value is escaped where it is
// inserted.

import { createHash } from 'node:crypto'
import type { DeletionCertificate } from '../../../contract/deletion/certificate.ts'
import { jwksUri } from '../../../contract/deletion/certificate.ts'
import type { IssuedCertificate } from './store.ts'
import { style } from './style.ts'

/** Nothing may be loaded or run; only the page's own styles apply. */
const contentPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'`

/**
 * The policy for the header of the answer. The page has the part that a page can carry, for when it is saved.
 */
export const pagePolicy = `${contentPolicy}; frame-ancestors 'none'`

/** Markup in which every inserted value is escaped. */
class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Part = Markup | string | number | readonly Markup[]

/** Escapes every value that is not markup. */
function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.reduce((text, next, i) => text + render(parts[i - 1] ?? '') + next))
}

function render(part: Part): string {
  if (part instanceof Markup) return part.text
  if (typeof part === 'string') return escapeText(part)
  return typeof part === 'number' ? grouped(part) : part.map(({ text }) => text).join('')
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Separates thousands by narrow spaces, which can't be read as a decimal point. */
function grouped(value: number): string {
  return value.toString().replace(/\B(?=(?:\d{3})+$)/g, '\u202f')
}

/** A whole HTML document. */
export function renderPage({ certificate, jws, kid }: IssuedCertificate): string {
  const { jti, issued_at, request } = certificate
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy}">
<meta name="viewport" content="width=device-width">
<title>Deletion certificate ${request.request_id}</title>
<style>${new Markup(style)}</style>
</head>
<body>
<main>
<header>
<h1>Deletion certificate</h1>
<p class="number"><span>Number</span> <code>${jti}</code><br><span>Issued</span> <code>${issued_at}</code></p>
</header>
${statement(certificate)}
<div class="columns">
${selection(certificate)}
${times(certificate)}
</div>
${stores(certificate)}
<div class="columns">
${limits(certificate)}
${evidence(certificate, kid)}
</div>
${signature(jws, certificate)}
</main>
</body>
</html>
`.text
}

function statement({ supersedes, verification }: DeletionCertificate): Markup {
  return html`<p class="statement">The telemetry selected below was removed from every store of this service. A count of all
${Object.keys(verification.stores).length} stores afterwards, by ${verification.verified_by}, found ${verification.rows_remaining}
rows of it.${supersedes === null ? '' : html` This supersedes the certificate <code>${supersedes}</code>: the erasure was carried out again.`}</p>`
}

type Row = readonly [name: string, value: Markup | string]

function list(title: string, rows: readonly Row[]): Markup {
  const items = rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)
  return html`<section>
<h2>${title}</h2>
<dl>
${items}</dl>
</section>`
}

function selection({ organisation, request }: DeletionCertificate): Markup {
  const isAll = request.scope === 'all'
  return list('What was erased', [
    ['Organisation', html`<code>${organisation.tenant_id}</code>`],
    ['SHA-256 of its name', html`<code class="hash">${organisation.name_sha256}</code>`],
    ['Request', html`<code>${request.request_id}</code>`],
    ['Scope', isAll ? 'all telemetry of these signals' : 'a range of event time'],
    ['Signals', request.signals.join(', ')],
    ['From (inclusive)', instantOr(request.range_start, 'the beginning')],
    ['To (exclusive)', instantOr(request.range_end, 'open: everything stored')],
    ['Reason', request.reason?.replaceAll('_', ' ') ?? 'not given'],
    ['Requested by', request.requested_by],
    ['Approved by', request.approved_by ?? 'no approval was required'],
  ])
}

function times({ times, erasure, verification }: DeletionCertificate): Markup {
  return list('When and how', [
    ['Requested', instantOr(times.requested_at, '')],
    ['Approved', instantOr(times.approved_at, '–')],
    ['Hidden', instantOr(times.hidden_at, '')],
    ['Removed', instantOr(times.removed_at, '')],
    ['Verified', instantOr(times.verified_at, '')],
    ['Backups clear by', instantOr(times.backups_clear_by, 'no backup may contain a copy')],
    ['Carried out by', html`<code>${erasure.executed_by}</code>`],
    ['Category', erasure.category],
    ['Verification', verification.method],
    ...(erasure.erased_with === null
      ? []
      : [
          ['Erased with', html`<code>${erasure.erased_with}</code>, which selects all of this`] satisfies Row,
        ]),
  ])
}

function instantOr(instant: string | null, otherwise: string): Markup | string {
  return instant === null ? otherwise : html`<time>${instant}</time>`
}

const methodNames: Readonly<Record<string, string>> = {
  partition_dropped: 'partition dropped, or left to others',
  partition_rewritten: 'partition rewritten without them',
  partition_settled_after_crash: 'partition dropped or rewritten, resumed after a crash',
  rows_removed: 'rows and learnt expectations removed',
}

/** Every counted store; those without rows together on one line. */
function stores({ erasure, verification }: DeletionCertificate): Markup {
  const erased = erasure.stores.map(
    ({ store, method, partitions, rows, bytes }) =>
      html`<tr><td><code>${store}</code></td><td>${methodNames[method] ?? method}</td><td>${partitions === 0 ? '–' : partitions}</td><td>${rows}</td><td>${bytes}</td><td>${verification.stores[store] ?? 0}</td></tr>\n`,
  )
  const names = new Set(erasure.stores.map(({ store }) => store))
  const empty = Object.keys(verification.stores).filter((store) => !names.has(store))
  const rest = html`<tr class="empty"><td colspan="5">Had nothing selected: <code>${empty.join(', ')}</code></td><td>0</td></tr>\n`
  return html`<section>
<h2>Stores</h2>
<table>
<thead><tr><th>Store</th><th>Method</th><th>Partitions</th><th>Rows erased</th><th>Bytes</th><th>Rows counted after</th></tr></thead>
<tbody>
${erased}${empty.length === 0 ? '' : rest}</tbody>
<tfoot><tr><td colspan="3">Together</td><td>${erasure.rows}</td><td>${erasure.bytes}</td><td>${verification.rows_remaining}</td></tr></tfoot>
</table>
</section>`
}

function limits({ exclusions, late_data, backups }: DeletionCertificate): Markup {
  const items = exclusions.map((text) => html`<li>${text}</li>\n`)
  const copies = backups.map(
    ({ backup_id, taken_at, expires_at }) =>
      html`<li><code>${backup_id}</code>: taken ${taken_at ?? 'now'}, expires ${expires_at}</li>\n`,
  )
  return html`<section>
<h2>Not covered</h2>
<ul>
${items}${copies}</ul>
<p>Afterwards: ${late_data.meaning}</p>
</section>`
}

function evidence({ issuer, ledger }: DeletionCertificate, kid: string): Markup {
  return list('Evidence', [
    ['Ledger entry', `${ledger.seq}, which completed the request`],
    ['Its hash', html`<code class="hash">${ledger.hash}</code>`],
    ['Service', `${issuer.service} ${issuer.service_version}, schema ${issuer.schema_version}`],
    ['Engine', `${issuer.engine} ${issuer.engine_version}`],
    ['Instance', html`<code class="hash">${issuer.instance_sha256}</code>`],
    ['Key, Ed25519', html`<code class="hash">${kid}</code><br>its name is its RFC 7638 thumbprint (SHA-256)`],
  ])
}

function signature(jws: string, { request }: DeletionCertificate): Markup {
  return html`<section class="signature">
<h2>Signature</h2>
<p>A compact JWS (RFC 7515, EdDSA) over these facts in RFC 8785 form. To check it without the service: fetch
<code>${jwksUri}</code> of the service once, over a connection you trust, and keep it; save <code>${address(request.request_id)}</code>
or the text below; then run <code>lethe certificate verify FILE --jwks jwks.json</code>, or any JOSE library.</p>
<p class="jws">${jws}</p>
</section>`
}

function address(requestId: string): string {
  return `/usage/storage/deletions/${requestId}/certificate`
}
