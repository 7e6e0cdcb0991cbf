// A table with its column heads, which scrolls by itself where the screen is too narrow for it.

import type { ReactNode } from 'react'
import { Scrolling } from './scrolling.tsx'

/** The head of a column; of a column of numbers, which are aligned by their last digit. */
type Column = string | { readonly number: string }

interface TableProps {
  /** Describes the table to a reader who reaches it by keys. */
  readonly label: string
  /** With different names. */
  readonly columns: readonly Column[]
  readonly className?: string
  /** The rows. */
  readonly children: ReactNode
}

export function Table({ children, className = '', columns, label }: TableProps) {
  return (
    <Scrolling label={label}>
      <table className={`table ${className}`.trim()}>
        <thead>
          <tr>
            {columns.map((column) =>
              typeof column === 'string' ? (
                <th key={column} scope="col">
                  {column}
                </th>
              ) : (
                <th key={column.number} scope="col" className="number">
                  {column.number}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scrolling>
  )
}
