// A person who uses only the keyboard. Before every key, an element has the focus, shows it, and is in view.

import assert from 'node:assert/strict'
import type { Locator, Page } from 'playwright-core'
import { waitFor } from '../wait-for.ts'

/** More than the controls of any page. */
const tabsMax = 80

/** Why the focus can't be seen; empty where it can. */
const faultOfFocus = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body) return 'nothing has the focus'
  const name = focused.outerHTML.slice(0, 120)
  // The browser drops it with the next frame.
  if (focused.matches(':disabled')) return 'disabled: ' + name
  const box = focused.getBoundingClientRect()
  if (box.bottom <= 0 || box.top >= innerHeight) return 'outside of the view: ' + name
  const bar = document.querySelector('.bar').getBoundingClientRect()
  if (focused.closest('main') !== null && box.bottom <= bar.bottom) return 'behind the bar: ' + name
  const isRing = ({ outlineStyle, outlineWidth }) => outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2
  // A radio button that is drawn by its label shows the focus there.
  const isDrawn = getComputedStyle(focused).opacity !== '0'
  return isRing(getComputedStyle(isDrawn ? focused : focused.nextElementSibling)) ? '' : 'no ring: ' + name
})()`

interface Keyboard {
  /** Waits until this is shown, then presses Tab until it has the focus. */
  tabTo(target: Locator): Promise<void>
  press(key: string): Promise<void>
  type(text: string): Promise<void>
  /** Waits until the focus can be seen. */
  seeFocus(): Promise<void>
}

export function keyboardOf(page: Page): Keyboard {
  // The focus moves to a new page a moment after it has opened.
  const seeFocus = async () => {
    await waitFor(
      () => page.evaluate(faultOfFocus),
      (fault) => fault === '',
    )
  }
  const press = async (key: string) => {
    await seeFocus()
    await page.keyboard.press(key)
  }
  return {
    press,
    seeFocus,
    async tabTo(target) {
      await target.waitFor()
      for (let tabs = 0; tabs < tabsMax; tabs++) {
        // A button that was disabled gets its focus back some frames after it is enabled. Without the wait,
        // the key would move the focus away from it, and then over the end of the page.
        await seeFocus()
        if ((await target.and(page.locator(':focus')).count()) > 0) return
        await page.keyboard.press('Tab')
      }
      assert.fail(`${tabsMax} tabs do not reach ${target}`)
    },
    async type(text) {
      await seeFocus()
      await page.keyboard.type(text)
    },
  }
}
