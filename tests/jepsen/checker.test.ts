// The checker of the black-box run, with histories made by hand: each promise kept in one, and
// broken in another that differs by what the service answered. A checker that has never found
// anything would prove nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Checker } from './checker.ts'
import type { ControlPlane, Operation, Outcome, Selected, Value } from './history.ts'

const org = 'acme'
const always: Selected = { startS: null, endS: null, signals: ['metrics', 'logs', 'traces'] }
const span = { startS: 0, endS: 1000 }

/** A history that is written by saying what was done and what was answered. */
class Story {
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

  /** Rows of these numbers, each at the second of its number. */
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

/** Tells a story to a fresh checker; answers the kinds of what it found. */
function found(tell: (story: Story) => unknown): string[] {
  const story = new Story()
  tell(story)
  return story.kinds
}

describe('rows', () => {
  test('what was acknowledged is there, or it is lost', () => {
    assert.deepEqual(
      found((s) => s.send([1, 2]).read([1, 2])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1, 2]).read([1])),
      ['acknowledged row lost'],
    )
  })

  test('what was never answered may be there or not, but once it was seen it stays', () => {
    assert.deepEqual(
      found((s) => s.send([1], 'unknown').read([]).read([1]).read([1])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1], 'unknown').read([1]).read([])),
      ['acknowledged row lost'],
    )
  })

  test('what was never answered does not come any more when its process has ended and it was not there', () => {
    const late = found((s) => {
      s.send([1], 'unknown')
      s.checker.event({ f: 'process-ended' })
      s.read([])
      s.read([1])
    })
    assert.deepEqual(late, ['row back from nowhere'])
  })

  test('a row is there once, and nobody else sees it', () => {
    assert.deepEqual(
      found((s) => s.send([1]).read([1, 1])),
      ['row twice'],
    )
    assert.deepEqual(
      found((s) => s.send([1]).read([1], 'globex')),
      ['row of somebody else'],
    )
  })

  test('a read that began before the acknowledgement, or broke off, proves no loss', () => {
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

  test('counts lie between what must and what may be there', () => {
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
  test('what was there is seen by nobody from the 202 on', () => {
    assert.deepEqual(
      found((s) => s.send([1]).erase('e').read([])),
      [],
    )
    assert.deepEqual(
      found((s) => s.send([1]).erase('e').read([1])),
      ['hidden row seen'],
    )
  })

  test('a read under way at the 202 may have either', () => {
    const beside = (seen: number[]) =>
      found((s) => {
        s.send([1])
        const end = s.begin(reading())
        s.erase('e')
        end('ok', { seen })
      })
    assert.deepEqual([beside([]), beside([1])], [[], []])
  })

  test('what is erased is never seen again, whoever asks', () => {
    const erased = (then: (s: Story) => void) =>
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

  test('only what is selected goes; a neighbour and what comes afterwards stay', () => {
    const early: Selected = { ...always, startS: 0, endS: 10 }
    const tell = (seen: number[], others: number[]) =>
      found((s) => {
        s.send([5, 10])
        s.send([6], 'ok', 'globex')
        s.erase('e', early)
        s.look('e', 'completed')
        s.send([7])
        s.read(seen)
        s.read(others, 'globex')
      })
    assert.deepEqual(tell([10, 7], [6]), [])
    assert.deepEqual(tell([10], [6]), ['acknowledged row lost'])
    assert.deepEqual(tell([7], [6]), ['acknowledged row lost'])
    assert.deepEqual(tell([10, 7], []), ['acknowledged row lost'])
  })

  test('what arrives while it is at work may go with it; what a read has shown afterwards stays', () => {
    const tell = (first: number[], second: number[]) =>
      found((s) => {
        s.erase('e')
        s.send([1])
        s.look('e', 'completed')
        s.read(first)
        s.read(second)
      })
    assert.deepEqual([tell([], []), tell([1], [1])], [[], []])
    assert.deepEqual(tell([1], []), ['acknowledged row lost'])
    assert.deepEqual(tell([], [1]), ['row back from nowhere'])
  })

  test('what was seen while it was still hiding was seen wrongly', () => {
    const seen = found((s) => {
      s.erase('e')
      s.send([1])
      s.read([1])
      s.look('e', 'running')
    })
    assert.deepEqual(seen, ['hidden row seen'])
  })

  test('a cancelled one gives everything back, also what came meanwhile', () => {
    const tell = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.erase('e', always, 60)
        s.send([2])
        s.read([])
        s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
        s.read(seen)
      })
    assert.deepEqual(tell([1, 2]), [])
    assert.deepEqual(tell([1]), ['acknowledged row lost'])
    assert.deepEqual(tell([2]), ['acknowledged row lost'])
  })

  test('a cancel that was never answered leaves both open until somebody looks', () => {
    const tell = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.erase('e', always, 60)
        s.do({ f: 'cancel', org, key: 'e' }, {}, 'unknown')
        s.read([1])
        s.look('e', status)
        s.read(seen)
      })
    assert.deepEqual(tell('cancelled', [1]), [])
    assert.deepEqual(tell('completed', [1]), ['erased row seen'])
  })

  test('what was taken stays on record, and what is completed stays so', () => {
    const status = (...statuses: (string | null)[]) =>
      found((s) => {
        s.erase('e')
        for (const one of statuses) s.look('e', one)
      })
    assert.deepEqual(status('running', 'completed', 'completed'), [])
    assert.deepEqual(status(null), ['a deletion that was taken is not on record'])
    assert.deepEqual(status('completed', 'running'), ['a completed deletion is not completed any more'])
    assert.deepEqual(status('completed', 'cancelled'), ['a completed deletion was cancelled'])
  })

  test('a count finds nothing left where nothing can be', () => {
    const verify = (isClean: boolean, then: (s: Story) => void = () => {}) =>
      found((s) => {
        s.send([1])
        s.erase('e')
        s.look('e', 'completed')
        then(s)
        s.do({ f: 'verify', org, key: 'e' }, { isClean, remaining: {} })
      })
    assert.deepEqual(verify(true), [])
    assert.deepEqual(verify(false), ['verify finds rows where none are'])
    assert.deepEqual(
      verify(false, (s) => s.send([2])),
      [],
    )
    const hiddenSince = (s: Story) => {
      s.send([2])
      s.erase('later')
    }
    assert.deepEqual(verify(false, hiddenSince), [], 'what another one hides is there until it is erased')
  })
})

describe('holds', () => {
  test('what is held survives, and the erasure does not complete', () => {
    const tell = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.hold('h')
        s.erase('e')
        s.look('e', status)
        s.do({ f: 'cancel', org, key: 'e' }, { status: 'cancelled' })
        s.read(seen)
      })
    assert.deepEqual(tell('held', [1]), [])
    assert.deepEqual(tell('held', []), ['acknowledged row lost'])
    assert.ok(tell('completed', []).includes('completed although held'))
  })

  test('what is released is erased', () => {
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

  test('a hold that was placed stays on record', () => {
    const looked = found((s) => s.hold('h').do({ f: 'look-hold', org, key: 'h' }, { status: null }))
    assert.deepEqual(looked, ['hold lost'])
  })
})

describe('restores', () => {
  test('what the backup holds is there, what came after it is not', () => {
    const tell = (seen: number[]) =>
      found((s) => {
        s.send([1])
        s.backup('b')
        s.send([2])
        s.restore('b', 'keep')
        s.read(seen)
      })
    assert.deepEqual(tell([1]), [])
    assert.deepEqual([tell([]), tell([1, 2])], [['acknowledged row lost'], ['row back from nowhere']])
  })

  test('a later backup brings back what an earlier one had not', () => {
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
    test(`what was erased after the backup does not come back (${controlPlane})`, () => {
      const tell = (seen: number[]) =>
        found((s) => {
          s.send([1])
          s.backup('b')
          s.erase('e')
          s.look('e', 'completed')
          s.restore('b', controlPlane)
          s.look('e', 'completed')
          s.read(seen)
        })
      assert.deepEqual([tell([]), tell([1])], [[], ['erased row seen']])
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

  test('an erasure that had not begun may be forgotten with the control plane of a backup, a completed one not', () => {
    const tell = (status: string, seen: number[]) =>
      found((s) => {
        s.send([1])
        s.backup('b')
        s.erase('e', always, 60)
        s.look('e', status)
        s.restore('b', 'from-backup')
        s.look('e', null)
        s.read(seen)
      })
    assert.deepEqual([tell('scheduled', [1]), tell('scheduled', [])], [[], ['acknowledged row lost']])
    assert.deepEqual(tell('completed', []), ['a completed deletion is not on record'])
  })

  test('a cancelled erasure that the backup knows as waiting hides again', () => {
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
    // What it hid when the backup was taken may or may not be in it, as far as a client can know.
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

  test('name every backup that is there and holds a row of theirs', () => {
    assert.deepEqual(certified(['c'], ['b', 'c']), [])
    assert.deepEqual(certified([], ['b', 'c']), ['backup not named'])
    assert.deepEqual(certified([], ['b']), [], 'who is gone needn’t be named, nor who holds nothing of it')
  })

  test('are issued anew under another number by a control plane from before', () => {
    const anew = (issued: string) =>
      found((s) => {
        s.send([1])
        s.erase('e')
        s.backup('b')
        s.look('e', 'completed')
        s.certificate('e', ['b'], ['b'])
        s.restore('b', 'from-backup')
        s.certificate('e', ['b'], ['b'], 'another signature', issued)
      })
    assert.deepEqual(anew('b'), [])
    assert.deepEqual(anew('a'), ['certificate changed'])
  })

  test('are the same bytes ever after', () => {
    assert.deepEqual(certified(['c'], ['c'], 'another signature'), ['certificate changed'])
  })
})
