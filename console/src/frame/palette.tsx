// The command palette: it opens pages, runs commands, and opens the erasure of a typed or pasted id.

import { Modal, TextInput, useMantineColorScheme } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { signOut, useMe } from '../api/session.ts'
import { setZone } from '../ui/preferences.ts'
import type { RangeFor } from './carried-range.ts'
import { pageLinks, settingsLinks } from './page-links.ts'
import { schemes } from './schemes.ts'

interface PaletteProps {
  readonly isOpen: boolean
  readonly rangeFor: RangeFor
  readonly onClose: () => void
  readonly onHelp: () => void
}

interface Command {
  readonly label: string
  readonly says: string
  readonly run: () => void
}

export function Palette({ isOpen, onClose, onHelp, rangeFor }: PaletteProps) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const listId = useId()
  const found = useCommands(text, rangeFor, onHelp)
  useEffect(() => {
    if (isOpen) setText('')
  }, [isOpen])
  const run = (command: Command | undefined) => {
    if (command === undefined) return
    onClose()
    command.run()
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') run(found[chosen])
    if (step === undefined) return
    event.preventDefault()
    setChosen((chosen + step + found.length) % Math.max(1, found.length))
  }
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="Go to"
      yOffset="15vh"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <TextInput
        data-autofocus
        label="Go to a page, or paste the id of an erasure"
        role="combobox"
        aria-expanded
        aria-controls={listId}
        aria-activedescendant={found.length > 0 ? `${listId}-${chosen}` : undefined}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value)
          setChosen(0)
        }}
        onKeyDown={press}
      />
      <div id={listId} role="listbox" aria-label="Commands" className="palette">
        {found.map((command, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the chosen option.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys.
          <div
            key={command.label}
            id={`${listId}-${i}`}
            role="option"
            aria-selected={i === chosen}
            className="palette-item"
            onClick={() => run(command)}
          >
            <span>{command.label}</span> <span className="muted">{command.says}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="muted">Nothing has this name.</p>}
    </Modal>
  )
}

function useCommands(text: string, rangeFor: RangeFor, onHelp: () => void): readonly Command[] {
  const { tenant_id: organisation } = useMe()
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const wanted = text.trim().toLowerCase()
  if (/^del_[0-9a-z]+$/.test(wanted)) {
    const params = { organisation, requestId: wanted }
    return [
      {
        label: wanted,
        says: 'this erasure',
        run: () => void navigate({ to: '/$organisation/erasures/$requestId', params }),
      },
    ]
  }
  const all: readonly Command[] = [
    ...pageLinks.map(({ label, says, to }) => ({
      label,
      says,
      run: () => void navigate({ to, params: { organisation }, search: rangeFor(to) as never }),
    })),
    ...settingsLinks.map(({ label, says, to }) => ({
      label,
      says,
      run: () => void navigate({ to, params: { organisation } }),
    })),
    { label: 'Times in UTC', says: 'change the zone', run: () => setZone('utc') },
    { label: 'Times in the zone of this browser', says: 'change the zone', run: () => setZone('local') },
    ...schemes.map(({ scheme, text }) => ({
      label: `Colours: ${text}`,
      says: 'change the colours',
      run: () => setColorScheme(scheme),
    })),
    { label: 'Keys', says: 'the list of keys', run: onHelp },
    { label: 'Sign out', says: 'end this session', run: () => void signOut() },
  ]
  return all.filter(({ label, says }) => `${label} ${says}`.toLowerCase().includes(wanted))
}
