// The text of an actor is hashed and sealed in many places, so these tests fix its form; parsing it loses
// nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  type Actor,
  actorKinds,
  actorText,
  isSameActor,
  operatorActor,
  readActorText,
  systemActor,
  tokenActor,
} from './actor.ts'
import { newId } from './ids.ts'

/** Texts that could be mistaken for a part of the form. */
const someText = fc.string({ unit: fc.constantFrom(...'tok_ 1é():\n\u2028') })
const ada: Actor = { kind: 'person', id: 'per_01kb2m', name: 'Ada' }

describe('the text of an actor', () => {
  test('has the form that records have always had', () => {
    assert.equal(actorText(tokenActor('tok_01kb2m', 'ci')), 'token:ci (tok_01kb2m)')
    assert.equal(actorText(operatorActor('command-line')), 'operator:command-line')
    assert.equal(actorText(systemActor('restore-guard')), 'system:restore-guard')
  })

  test('contains only the id of a person', () => {
    assert.equal(actorText(ada), 'person:per_01kb2m')
    assert.deepEqual(readActorText('person:per_01kb2m'), { ...ada, name: ada.id })
  })

  test('is parsed as the same actor, whatever the name of a token looks like', () => {
    const disguises = ['', ' ', 'x (tok_fake)', 'system:retention', 'two\nlines', 'token:x (tok_1) (tok_2)']
    const names = fc.oneof(fc.constantFrom(...disguises), someText)
    fc.assert(
      fc.property(names, fc.nat(), (name, nowMs) => {
        const actor = tokenActor(newId('tok', nowMs), name)
        assert.deepEqual(readActorText(actorText(actor)), actor)
      }),
    )
    for (const actor of [operatorActor('first-start'), systemActor('deletion')]) {
      assert.deepEqual(readActorText(actorText(actor)), actor)
    }
  })

  test('of an unknown form is kept unchanged and has no id', () => {
    const odd = [
      'owner',
      '',
      'operator',
      'token:nameless',
      'token:x (tok_A)',
      'x (tok_1)',
      'system: x',
      'robot:x',
    ]
    for (const text of odd) {
      assert.deepEqual(readActorText(text), { kind: 'operator', id: '', name: text }, text)
    }
    const prefixes = fc.constantFrom('', ...actorKinds.map((kind) => `${kind}:`))
    fc.assert(
      fc.property(prefixes, someText, (prefix, rest) => {
        assert.equal(actorText(readActorText(prefix + rest)), prefix + rest)
      }),
    )
  })
})

test('actors are the same by kind and id, never by name, and never without an id', () => {
  const ci = tokenActor('tok_1', 'ci')
  assert.equal(isSameActor(ci, tokenActor('tok_1', 'another')), true)
  assert.equal(isSameActor(ci, tokenActor('tok_2', 'ci')), false)
  assert.equal(isSameActor(operatorActor('x'), systemActor('x')), false)
  const unknown = readActorText('owner')
  assert.equal(isSameActor(unknown, unknown), false)
})
