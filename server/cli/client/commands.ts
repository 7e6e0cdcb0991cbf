// stub
import type { Command } from 'commander'
export function addClientCommands(_program: Command): void {}
