// The checker of the black-box run, with histories made by hand: each promise is kept in one history, and
// broken in another that differs only in the responses. A checker that has never found anything would prove
// nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Checker } from './checker.ts'
import type { ControlPlane, Operation, Outcome, Selected, Value } from './history.ts'

const org = 'acme'
const always: Selected = { startS: null, endS: null, signals: ['metrics', 'logs', 'traces'] }
const span = { startS: 0, endS: 1000 }

/** Builds a history from operations and their outcomes. */
class HistoryBuilder {
  readonly checker = new Checker()
  #next = 0

  begin(op: Operation): (outcome?: Outcome, value?: Value) => void {
    const id = this.#next++
    this.checker.invoke(id, op)
    return (outcome = 'ok', value = {}) => this.checker.complete(id, outcome, value)
  }

  do(op: Operation, value: Value = {}, outcome: Outcome = 'ok'): this {
    this.begin(op)(outcome, value)
    return this
  }

  /** Sends rows of these numbers, each at the second of its number. */
  send(numbers: readonly number[], outcome: Outcome = 'ok', of = org): this {
    return this.do(sending(numbers, of), {}, outcome)
  }

  read(seen: readonly number[], of = org): this {
    return this.do(reading(of), { seen })
  }

  erase(key: string, selected: Selected = always, delayMinutes = 0): this {
    return this.do(erasing(key, selected, delayMinutes), {
      status: delayMinutes > 0 ? 'scheduled' : 'running',
    })
  }

  look(key: string, status: string | null): this {
    return this.do({ f: 'look', org, key }, { status })
  }

  backup(id: string): this {
    return this.do({ f: 'backup' }, { backup: id })
  }

  restore(backup: string, controlPlane: ControlPlane): this {
    this.checker.event({ f: 'process-ended' })
    return this.do({ f: 'restore', backup, controlPlane })
  }

  hold(key: string, selected: Selected = always): this {
    return this.do({ f: 'hold', org, key, selected })
  }

  certificate(
    key: string,
    backups: readonly string[],
    there: readonly string[],
    jws = 'signature',
    issued = 'a',
  ): this {
    const jti = `${key}/1-ffffffff-${issued}`
    return this.do({ f: 'certificate', org, key, backups: there }, { backups, jti, jws })
  }

  get kinds(): string[] {
    return this.checker.violations.map(({ kind }) => kind)
  }
}

const sending = (numbers: readonly number[], of = org): Operation => ({
  f: 'send',
  org: of,
  signal: 'logs',
  rows: numbers.map((n) => ({ n, timeS: n })),
})
const reading = (of = org): Operation => ({ f: 'read', org: of, signal: 'logs', span })
const erasing = (key: string, selected = always, delayMinutes = 0): Operation => ({
  f: 'erase',
  org,
  key,
  selected,
  delayMinutes,
})

/** Runs a history through a new checker; returns the kinds of its violations. */
function found(build: (history: HistoryBuilder) => unknown): string[] {
  const history = new HistoryBuilder()
  build(history)
  return history.kinds
}

describe('rows', () => {
  test('an acknowledged row that is missing is reported as lost', () => {
    assert.deepEqual(
      found((s) => s.send([1, 2]).read([1, 2])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1, 2]).read([1])),
      ['acknowledged row lost'],
    )
  })

  test('a row without a response may exist or not, but after it was seen it must stay', () => {
    assert.deepEqual(
      found((s) => s.send([1], 'unknown').read([]).read([1]).read([1])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1], 'unknown').read([1]).read([])),
      ['acknowledged row lost'],
    )
  })

  test('a row without a response that was absent after its process ended must not appear later', () => {
    const late = found((s) => {
      s.send([1], 'unknown')
      s.checker.event({ f: 'process-ended' })
      s.read([])
      s.read([1])
    })
    assert.deepEqual(late, ['absent row seen'])
  })

  test('a row exists once, and no other organisation sees it', () => {
    assert.deepEqual(
      found((s) => s.send([1]).read([1, 1])),
      ['row twice'],
    )
    assert.deepEqual(
      found((s) => s.send([1]).read([1], 'globex')),
      ['row of another organisation'],
    )
  })

  test('a read that began before the acknowledgement, or was cut off, proves no loss', () => {
    const early = found((s) => {
      const end = s.begin(reading())
      s.send([1])
      end('ok', { seen: [] })
    })
    assert.deepEqual(early, [])
    assert.deepEqual(
      found((s) => s.send([1]).do(reading(), { seen: [], isWhole: false }, 'fail')),
      [],
    )
  })

  test('counts are between the rows that must exist and those that may exist', () => {
    const count = (rows: number) =>
      found((s) => {
        s.send([1, 2])
        s.send([3], 'unknown')
        s.do({ f: 'count', org, selected: always }, { rows })
      })
    assert.deepEqual([count(2), count(3)], [[], []])
    assert.deepEqual([count(1), count(4)], [['counted too few'], ['counted too many']])
  })
})

describe('erasures', () => {
  test('rows of the selection are visible to nobody from the 202 on', () => {
    assert.deepEqual(
      found((s) => s.send([1]).erase('e').read([])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1]).erase('e').read([1])),
      ['hidden row seen'],
    )
  })

  test('a read in progress at the 202 may have them or not', () => {
    const beside = (seen: number[]) =>
      found((s) => {
        s.send([1])
        const end = s.begin(reading())
        s.erase('e')
        end('ok', { seen })
      })
    assert.deepEqual([beside([]), beside([1])], [[], []])
  })

  test('erased rows are never seen again, by any reader', () => {
    const erased = (then: (s: HistoryBuilder) => void) =>
      found((s) => {
        s.send([1])
        s.erase('e')
        s.look('e', 'completed')
        then(s)
      })
    assert.deepEqual(
      erased((s) => s.read([])),
      [],
    )
    assert.deepEqual(
      erased((s) => s.read([1])),
      ['erased row seen'],
    )
    assert.deepEqual(
      erased((s) => s.do({ f: 'probe', org, n: 1 }, { seen: [1] })),
      ['erased row seen'],
    )
    assert.deepEqual(
      erased((s) => s.do({ f: 'count', org, selected: always }, { rows: 1 })),
      ['counted too many'],
    )
    const inFile = { seen: [1], files: ['data.bin'] }
    assert.deepEqual(
      erased((s) => s.do({ f: 'search-files' }, inFile)),
      ['bytes of an erased row on the disk'],
    )
  })

  test('only the selection is erased; rows of a neighbour and later rows stay', () => {
    const early: Selected = { ...always, startS: 0, endS: 10 }
    const kinds = (seen: number[], others: number[]) =>
      found((s) => {
        s.send([5, 10])
        s.send([6], 'ok', 'globex')
        s.erase('e', early)
        s.look('e', 'completed')
        s.send([7])
        s.read(seen)
        s.read(others, 'globex')
      })
    assert.deepEqual(kinds([10, 7], [6]), [])
    assert.deepEqual(kinds([10], [6]), ['acknowledged row lost'])
    assert.deepEqual(kinds([7], [6]), ['acknowledged row lost'])
    assert.deepEqual(kinds([10, 7], []), ['acknowledged row lost'])
  })

  test('rows that arrive during the erasure may be erased with it; rows that a later read has returned stay', () => {
    const kinds = (first: number[], second: number[]) =>
      found((s) => {
        s.erase('e')
        s.send([1])
        s.look('e', 'completed')
        s.read(first)
        s.read(second)
      })
    assert.deepEqual([kinds([], []), kinds([1], [1])], [[], []])
    assert.deepEqual(kinds([1], []), ['acknowledged row lost'])
    assert.deepEqual(kinds([], [1]), ['absent row seen'])
  })

  test('a row seen while the erasure still hid it is a violation', () => {
    const seen = found((s) => {
      s.erase('e')
      s.send([1])
      s.read([1])
      s.look('e', 'running')
    })
    assert.deepEqual(seen, ['hidden row seen'])
  })

  test('a cancelled erasure makes all rows visible again, also those that arrived meanwhile', () => {
    const kinds = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.erase('e', always, 60)
        s.send([2])
        s.read([])
        s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
        s.read(seen)
      })
    assert.deepEqual(kinds([1, 2]), [])
    assert.deepEqual(kinds([1]), ['acknowledged row lost'])
    assert.deepEqual(kinds([2]), ['acknowledged row lost'])
  })

  test('after a cancel without a response, both outcomes are possible until the status is read', () => {
    const kinds = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.erase('e', always, 60)
        s.do({ f: 'cancel', org, key: 'e' }, {}, 'unknown')
        s.read([1])
        s.look('e', status)
        s.read(seen)
      })
    assert.deepEqual(kinds('cancelled', [1]), [])
    assert.deepEqual(kinds('completed', [1]), ['erased row seen'])
  })

  test('an accepted erasure stays known, and a completed one stays completed', () => {
    const status = (...statuses: (string | null)[]) =>
      found((s) => {
        s.erase('e')
        for (const one of statuses) s.look('e', one)
      })
    assert.deepEqual(status('running', 'completed', 'completed'), [])
    assert.deepEqual(status(null), ['an accepted deletion is unknown'])
    assert.deepEqual(status('completed', 'running'), ['a completed deletion is not completed any more'])
    assert.deepEqual(status('completed', 'cancelled'), ['a completed deletion was cancelled'])
  })

  test('a verification finds nothing where nothing can be left', () => {
    const verify = (isClean: boolean, then: (s: HistoryBuilder) => void = () => {}) =>
      found((s) => {
        s.send([1])
        s.erase('e')
        s.look('e', 'completed')
        then(s)
        s.do({ f: 'verify', org, key: 'e' }, { isClean, remaining: {} })
      })
    assert.deepEqual(verify(true), [])
    assert.deepEqual(verify(false), ['verification finds rows where there are none'])
    assert.deepEqual(
      verify(false, (s) => s.send([2])),
      [],
    )
    const hiddenSince = (s: HistoryBuilder) => {
      s.send([2])
      s.erase('later')
    }
    assert.deepEqual(
      verify(false, hiddenSince),
      [],
      'rows that another erasure hides exist until they are erased',
    )
  })
})

describe('holds', () => {
  test('rows under a hold stay, and the erasure does not complete', () => {
    const kinds = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.hold('h')
        s.erase('e')
        s.look('e', status)
        s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
        s.read(seen)
      })
    assert.deepEqual(kinds('held', [1]), [])
    assert.deepEqual(kinds('held', []), ['acknowledged row lost'])
    assert.ok(kinds('completed', []).includes('completed despite a hold'))
  })

  test('rows are erased after the release', () => {
    const released = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.hold('h')
        s.erase('e')
        s.look('e', 'held')
        s.do({ f: 'release', org, key: 'h' })
        s.look('e', 'completed')
        s.read(seen)
      })
    assert.deepEqual([released([]), released([1])], [[], ['erased row seen']])
  })

  test('a hold that was placed stays known', () => {
    const looked = found((s) => s.hold('h').do({ f: 'look-hold', org, key: 'h' }, { status: null }))
    assert.deepEqual(looked, ['hold lost'])
  })
})

describe('restores', () => {
  test('rows of the backup exist after a restore, later rows do not', () => {
    const kinds = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.backup('b')
        s.send([2])
        s.restore('b', 'keep')
        s.read(seen)
      })
    assert.deepEqual(kinds([1]), [])
    assert.deepEqual([kinds([]), kinds([1, 2])], [['acknowledged row lost'], ['absent row seen']])
  })

  test('a later backup restores rows that an earlier one did not have', () => {
    const again = found((s) => {
      s.backup('b1')
      s.send([1])
      s.backup('b2')
      s.restore('b1', 'keep')
      s.read([])
      s.restore('b2', 'keep')
      s.read([1])
    })
    assert.deepEqual(again, [])
  })

  for (const controlPlane of ['keep', 'from-backup'] as const)
    test(`rows erased after the backup do not come back (${controlPlane})`, () => {
      const kinds = (seen: number[]) =>
        found((s) => {
          s.send([1])
          s.backup('b')
          s.erase('e')
          s.look('e', 'completed')
          s.restore('b', controlPlane)
          s.look('e', 'completed')
          s.read(seen)
        })
      assert.deepEqual([kinds([]), kinds([1])], [[], ['erased row seen']])
    })

  test('a completed erasure that a restore puts on hold can’t be cancelled', () => {
    const cancelled = found((s) => {
      s.send([1])
      s.hold('h')
      s.erase('e')
      s.backup('b')
      s.do({ f: 'release', org, key: 'h' })
      s.look('e', 'completed')
      s.restore('b', 'from-backup')
      s.look('e', 'held')
      s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
      s.read([1])
    })
    assert.deepEqual(cancelled, ['a completed deletion was cancelled', 'erased row seen'])
  })

  test('an erasure that had not begun may be unknown to the control plane of a backup, a completed one may not', () => {
    const kinds = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.backup('b')
        s.erase('e', always, 60)
        s.look('e', status)
        s.restore('b', 'from-backup')
        s.look('e', null)
        s.read(seen)
      })
    assert.deepEqual([kinds('scheduled', [1]), kinds('scheduled', [])], [[], ['acknowledged row lost']])
    assert.deepEqual(kinds('completed', []), ['a completed deletion is unknown'])
  })

  test('a cancelled erasure that waits in the backup hides again after its restore', () => {
    const revived = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.erase('e', always, 60)
        s.backup('b')
        s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
        s.restore('b', 'from-backup')
        s.look('e', 'scheduled')
        s.read(seen)
      })
    // What it hid when the backup was taken may or may not be in the backup, as far as a client can know.
    assert.deepEqual([revived([]), revived([1])], [[], ['hidden row seen']])
  })
})

describe('certificates', () => {
  const certified = (named: string[], there: string[], jws?: string) =>
    found((s) => {
      s.send([1])
      s.backup('b')
      s.erase('e')
      s.look('e', 'completed')
      s.certificate('e', ['b'], ['b'])
      s.certificate('e', ['b'], ['b'], jws)
      s.send([2])
      s.backup('c')
      s.erase('f')
      s.look('f', 'completed')
      s.certificate('f', named, there)
    })

  test('name every existing backup that has a row of the selection', () => {
    assert.deepEqual(certified(['c'], ['b', 'c']), [])
    assert.deepEqual(certified([], ['b', 'c']), ['backup not named'])
    assert.deepEqual(
      certified([], ['b']),
      [],
      'removed backups, and backups without its rows, need not be named',
    )
  })

  test('are issued again under another number by an older control plane', () => {
    const issuedAgain = (issued: string) =>
      found((s) => {
        s.send([1])
        s.erase('e')
        s.backup('b')
        s.look('e', 'completed')
        s.certificate('e', ['b'], ['b'])
        s.restore('b', 'from-backup')
        s.certificate('e', ['b'], ['b'], 'another signature', issued)
      })
    assert.deepEqual(issuedAgain('b'), [])
    assert.deepEqual(issuedAgain('a'), ['certificate changed'])
  })

  test('always have the same bytes', () => {
    assert.deepEqual(certified(['c'], ['c'], 'another signature'), ['certificate changed'])
  })
})
