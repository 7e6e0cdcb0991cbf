// Names of services in results, with a bound on their bytes. A name may be as long as any attribute, so a
// hundred of them can take megabytes in one line of a result. A cut name is never taken for a whole one.

import { pageBytes } from '../../core/input/cursor.ts'
import { raw, type Sql, sql, uint } from '../sql.ts'

/** As many characters as a filter by service accepts. */
const shownLength = 1_024

/**
 * The name of a service in a column of texts, cut where it is longer than a filter accepts. A cut one ends
 * with an ellipsis, which makes it longer than that too: nobody can filter by it, or take it for the name of
 * another service.
 */
export function shownName(column: string): Sql {
  return raw(
    `if(lengthUTF8(${column}) > ${shownLength}, concat(substringUTF8(${column}, 1, ${shownLength}), '…'), ${column})`,
  )
}

/** The most bytes of a result whose rows become a page: little more than {@link withinPage} leaves. */
export const pageResultBytes = 2 * pageBytes + (64 << 10)

/**
 * Returns the first rows of an ordered statement: as many as may fit into a page, and one that does not where
 * there are more.
 *
 * @param columns of the statement that are returned
 * @param bytes of a row, at most those of its JSON
 * @param order of the statement
 */
export function withinPage(statement: Sql, columns: Sql, bytes: Sql, order: Sql): Sql {
  return sql`SELECT ${columns} FROM (SELECT *, sum(${bytes}) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - ${bytes} AS bytes_before
FROM (${statement})) WHERE bytes_before <= ${uint(pageBytes)} ORDER BY ${order}`
}
