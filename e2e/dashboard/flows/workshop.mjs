// Searches compared, the context of agents, and the keys that open pages.
import assert from 'node:assert/strict'
import { phone } from '../browser.mjs'
import { look } from '../inspect.mjs'

export async function ctrlKLeadsAnywhere(someone, { user }) {
  const page = await someone(user)
  await page.go('/activity')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('atlas')
  await page.waitForFunction(() => /atlas/i.test(document.querySelector('#palette .go a')?.textContent))
  await page.settle()
  await look(page, 'the palette')
  await page.emulateMedia({ colorScheme: 'dark' })
  await look(page, 'the palette (dark)')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/projects/**')
  await page.settle()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('trash')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/trash')
  await page.settle()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('harbour') // no page has this name: Enter waits for the results
  await page.keyboard.press('Enter')
  await page.waitForURL('**/harbour')
  await page.settle()
  await page.keyboard.press('Control+k')
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('#palette').isVisible(), false)
}

export async function aQuestionMarkTellsTheKeys(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories')
  await page.focus('#q')
  await page.keyboard.type('?')
  assert.equal(await page.inputValue('#q'), '?')
  await page.locator('h1').click()
  await page.keyboard.press('?')
  assert.match(await page.locator('#keys-help').innerText(), /Ctrl K/)
  await look(page, 'the keys')
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('#keys-help').isVisible(), false)
}

export async function twoSearchesAreCompared(someone, { user }) {
  for (const screen of [undefined, phone]) {
    const page = await someone(user, screen)
    await page.go('/memories?q=tiles+of+the+coast')
    await page.locator('.tools > summary').click()
    await page.follow('Compare two searches')
    assert.ok((await page.locator('#side-b ~ ol > li').count()) > 0)
    await page.selectOption('#b-least', '0.75')
    await page.waitForURL('**b_least=0.75**')
    await page.settle()
    assert.match(await page.locator('#sides').innerText(), /not in B/)
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await look(page, `two searches (${colorScheme})`, { touch: Boolean(screen) })
    }
  }
}

export async function theContextOfAgentsIsLookedAt(someone, { user, user_id, project }) {
  const page = await someone(user)
  await page.go('/context')
  await page.fill('#query', 'tiles of the coast')
  await page.waitForURL('**query=tiles**')
  await page.settle()
  const whole = await page.locator('#parts p b').first().textContent()
  await page.fill('#budget', '600')
  await page.locator('#budget').blur()
  await page.waitForURL('**budget=600**')
  await page.settle()
  assert.notEqual(await page.locator('#parts p b').first().textContent(), whole)
  assert.match(await page.main(), /left out |shortened /)
  assert.doesNotMatch(await page.innerText('#parts'), /[0-9a-f]{8}-[0-9a-f]{4}-/, 'ids that are meant for agents')
  await page.selectOption('#project', `${user_id}/${project}`)
  await page.waitForFunction(() => /Project rules/.test(document.getElementById('parts').textContent))
}
