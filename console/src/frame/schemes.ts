// The colour schemes that a person can choose; the browser keeps the choice.

export const schemes = [
  { scheme: 'auto', text: 'as the system' },
  { scheme: 'light', text: 'light' },
  { scheme: 'dark', text: 'dark' },
] as const
