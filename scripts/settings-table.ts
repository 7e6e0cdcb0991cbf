// Writes the table of settings into docs/operating.md from the schemas of server/config/settings.ts: `npm run
// settings`. A test fails while the page differs from the schemas.

import { readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { Settings, settingDescriptions } from '../server/config/settings.ts'

export const page = fileURLToPath(new URL('../docs/operating.md', import.meta.url))

/**
 * Returns the page with a new table between its markers. Throws where a marker or a description is missing.
 */
export function withSettings(text: string): string {
  const begin = '<!-- settings:begin -->\n'
  const [head, middle] = text.split(begin)
  const tail = middle?.split('<!-- settings:end -->')[1]
  if (head === undefined || tail === undefined) throw new Error(`${page} has lost the markers of its table.`)
  return `${head}${begin}\n${renderSettings()}\n<!-- settings:end -->${tail}`
}

function renderSettings(): string {
  const rows = Object.entries(Settings.shape).map(([name, schema]) => {
    const about = settingDescriptions.get(schema)
    if (about === undefined) throw new Error(`${name} has no description; see server/config/settings.ts.`)
    const values = about.unit === undefined ? about.values : `${about.values} ${about.unit}`
    return [`\`${name}\``, about.default, values, about.description]
  })
  const lines = [['setting', 'default', 'values', 'what it sets'], ['---', '---', '---', '---'], ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(page, withSettings(readFileSync(page, 'utf8')))
}
