// The page on which an organisation erases its own telemetry: what, when and why, a preview of the count, and
// the word that confirms it. Only the counted rows are erased.

import { useState } from 'react'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { useMay } from '../../api/session.ts'
import { useAddress } from '../../ui/address.ts'
import { Forbidden } from '../../ui/states.tsx'
import { ConfirmStep } from './confirm-step.tsx'
import { PreviewSummary } from './preview-summary.tsx'
import { problemOf, selectionOf } from './selection.ts'
import { usePreview } from './use-preview.ts'
import { WhatStep } from './what-step.tsx'
import { WhenStep } from './when-step.tsx'
import { WhyStep } from './why-step.tsx'

export function ErasePage() {
  const may = useMay(deletionOperations.create)
  return (
    <>
      <h1>Erase</h1>
      {may ? <EraseForm /> : <Forbidden operation={deletionOperations.create} what="erasing telemetry" />}
    </>
  )
}

function EraseForm() {
  const [state] = useAddress()
  const selection = selectionOf(state)
  const problem = problemOf(selection)
  const preview = usePreview(selection, problem === null)
  const [note, setNote] = useState('')
  return (
    <div className="steps">
      <WhatStep selection={selection} problem={problem} />
      <WhenStep selection={selection} />
      <WhyStep selection={selection} note={note} onNote={setNote} />
      <PreviewSummary preview={preview} problem={problem} />
      <ConfirmStep selection={selection} note={note} preview={preview} problem={problem} />
    </div>
  )
}
