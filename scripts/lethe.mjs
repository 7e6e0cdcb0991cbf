#!/usr/bin/env node
// The `lethe` command: the command line of server/cli on the pinned Node.

import process from 'node:process'
import { run } from './run.mjs'

run('server/cli/lethe.ts', process.argv.slice(2))
