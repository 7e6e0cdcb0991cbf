// The list of keys, and the switch for those that are single letters.

import { Checkbox, Modal } from '@mantine/core'
import { setSingleKeys, useSingleKeys } from '../ui/preferences.ts'
import { pageLinks } from './page-links.ts'

const keys: readonly (readonly [keys: string, does: string])[] = [
  ['Ctrl K or /', 'go to a page or an erasure'],
  ...pageLinks.map(({ key, label }) => [`g ${key}`, label] as const),
  ['j and k', 'next and previous row of a list'],
  ['Enter', 'open the row'],
  ['[ and ]', 'earlier and later time range'],
  ['z', 'zoom out of the time range'],
  ['← → Home End', 'step through a chart that has the focus; with Shift, select'],
  ['?', 'this list'],
]

export function KeyHelp({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const isOn = useSingleKeys()
  return (
    <Modal opened={isOpen} onClose={onClose} title="Keys" closeButtonProps={{ 'aria-label': 'Close' }}>
      <table className="table">
        <tbody>
          {keys.map(([key, does]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Checkbox
        className="under-table"
        checked={isOn}
        onChange={(event) => setSingleKeys(event.currentTarget.checked)}
        label="Single letters and signs are keys; Ctrl K always is one"
      />
    </Modal>
  )
}
