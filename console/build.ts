// Builds the console into a folder: `node console/build.ts FOLDER`. The service runs it at the first start
// after a change. Names of files have a hash of their content, and nothing is written inline, so that the
// page runs under a policy that allows only files.

import { join } from 'node:path'
import process from 'node:process'
import react from '@vitejs/plugin-react'
import { build } from 'vite'
import { contractAsData } from './contract-as-data.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the folder to build into: node console/build.ts FOLDER')

await build({
  configFile: false,
  root: import.meta.dirname,
  base: '/console/',
  logLevel: 'warn',
  worker: { format: 'es' },
  plugins: [contractAsData(join(import.meta.dirname, '..', 'contract')), react()],
  build: {
    outDir: folder,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
  },
})
