// Proposals: accepted, edited, declined, several at once, undone; on a phone, and without scripts.
import assert from 'node:assert/strict'
import { phone, still, wide } from '../browser.mjs'

const { SHOTS } = process.env

const items = (page) => page.locator('main .rows > li')
const item = (page, text) => items(page).filter({ hasText: text }).first()
const shot = async (page, name) => {
  await still(page)
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/proposals-${name}.png`, fullPage: true })
}

export async function oneIsAcceptedAnotherEditedAndBothUndone(someone, { user }) {
  const page = await someone(user)
  await page.go('/proposals')
  await shot(page, 'light')
  const all = await items(page).count()
  assert.ok(all >= 4, `only ${all} proposals`)
  assert.match(await page.textContent('.menu [aria-current=page]'), new RegExp(`Proposals ${all} new`))
  await item(page, 'descaled').getByRole('button', { name: /^Accept: / }).click()
  await page.settle()
  assert.match(await page.notice(), /1 proposal accepted/)
  assert.equal(await items(page).count(), all - 1)
  await page.send('Undo')
  assert.match(await page.notice(), /Undone/)
  assert.equal(await items(page).count(), all)

  const change = item(page, 'so is the door')
  assert.ok(await change.locator('.diff ins').count() > 0, 'the difference is not shown')
  await change.locator('summary').click()
  await change.locator('textarea').fill('The tiles of the coast are blue and white,\nand the door is blue.')
  await shot(page, 'edit')
  await change.getByRole('button', { name: 'Accept with this text' }).click()
  await page.settle()
  assert.match(await page.notice(), /1 proposal accepted/)
  await shot(page, 'conflict')
  const stale = item(page, 'green now') // it was about the same memory
  assert.match(await stale.textContent(), /can no longer be accepted/)
  assert.equal(await stale.getByRole('button', { name: /^Accept/ }).count(), 0)
  await page.send('Undo')
  assert.equal(await items(page).count(), all)
  assert.equal(await page.getByText('can no longer be accepted').count(), 0)
}

export async function severalAreDeclinedAtOnceAndComeBack(someone, { user }) {
  const page = await someone(user)
  await page.go('/proposals')
  const all = await items(page).count()
  await item(page, 'descaled').locator('input[type=checkbox]').check()
  await item(page, 'green now').locator('input[type=checkbox]').check()
  await page.send('Decline selected')
  assert.match(await page.notice(), /2 proposals declined/)
  assert.equal(await items(page).count(), all - 2)
  await page.send('Undo')
  assert.equal(await items(page).count(), all)
}

export async function decidedOnAPhone(someone, { user }) {
  const page = await someone(user, phone)
  await page.go('/proposals')
  await shot(page, 'phone-dark')
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  assert.ok(overflow <= 0, `the page is ${overflow} pixels too wide`)
  await item(page, '厨房').getByRole('button', { name: /^Decline: / }).tap()
  await page.settle()
  assert.match(await page.notice(), /1 proposal declined/)
  await page.send('Undo')
  await item(page, '厨房').locator('summary').tap()
  await shot(page, 'phone-edit')
}

export async function decidedWithoutScripts(someone, { user }) {
  const page = await someone(user, wide, { javaScriptEnabled: false })
  await page.go('/proposals')
  const all = await items(page).count()
  await page.send(/^Accept all/)
  assert.match(await page.notice(), /proposals? accepted/)
  assert.ok(await items(page).count() < all, 'nothing was accepted')
  await page.send('Undo')
  assert.equal(await items(page).count(), all)
  await page.go('/proposals')
  await page.locator('main input[type=checkbox]').first().check()
  await page.send('Decline selected')
  await page.send('Undo')
  assert.equal(await items(page).count(), all)
}
