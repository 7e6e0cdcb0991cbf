// Copies a text. Over plain http on another machine a browser has no clipboard; then there is no button, and
// the text is selected by hand.

import { Button } from '@mantine/core'
import { useState } from 'react'

interface CopyButtonProps {
  readonly text: string
  readonly label?: string
}

export function CopyButton({ label = 'Copy', text }: CopyButtonProps) {
  const [copied, setCopied] = useState<string | null>(null)
  if (navigator.clipboard === undefined) return null
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(text)
  }
  return (
    <Button variant="default" onClick={() => void copy()}>
      {copied === text ? 'Copied' : label}
    </Button>
  )
}
