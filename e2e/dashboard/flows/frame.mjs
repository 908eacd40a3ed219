// What all pages have in common: the menu, the keyboard, ways back, and the end.
import assert from 'node:assert/strict'
import { phone, signIn } from '../browser.mjs'

export async function keysLeadThroughThePage(someone, { user }) {
  const page = await someone(user)
  await page.go('/profile')
  await page.keyboard.press('Tab')
  assert.equal(await page.focused(), 'Skip to the content')
  await page.keyboard.press('Enter')
  assert.equal(await page.focused(), 'main')
}

export async function slashLeadsToTheSearch(someone, { user }) {
  const page = await someone(user)
  await page.go('/profile')
  await page.keyboard.press('/')
  await page.waitForURL('**/memories#search')
  await page.waitForFunction(() => document.activeElement?.type === 'search')
  await page.go('/profile')
  await page.focus('[name=email]')
  await page.keyboard.press('End')
  await page.keyboard.press('/')
  assert.match(await page.inputValue('[name=email]'), /\/$/, 'a slash that is typed into a field stays there')
}

export async function theMenuOpensOnAPhone(someone, { user }) {
  const page = await someone(user, phone)
  await page.go('/profile')
  const link = page.locator('.menu').getByRole('link', { name: 'Overview' })
  assert.equal(await link.isVisible(), false)
  await page.tap('.menu > summary')
  assert.equal(await link.isVisible(), true)
  await page.keyboard.press('Escape')
  assert.equal(await link.isVisible(), false)
  await page.tap('.menu > summary')
  await link.tap()
  await page.settle()
  assert.equal(new URL(page.url()).pathname, '/')
}

export async function theMenuSaysWhereOneIs(someone, { user }) {
  const page = await someone(user)
  await page.go('/')
  const places = await page.locator('.menu nav a').evaluateAll((links) => links.map((link) => link.textContent))
  for (const place of places) {
    await page.follow(place, '.menu')
    assert.equal(await page.textContent('.menu [aria-current=page]'), place)
  }
  await page.goBack()
  await page.settle()
  assert.equal(await page.textContent('.menu [aria-current=page]'), places.at(-2))
}

export async function whoIsNoAdminIsToldSo(someone, { other }) {
  const page = await someone(other)
  await page.go('/')
  const places = await page.locator('.menu nav a').allTextContents()
  for (const name of ['Users', 'Invitations', 'Backup and restore']) assert.ok(!places.includes(name), `${name} is offered`)
  await page.go('/users', 403)
  assert.match(await page.main(), /admin/i)
}

export async function signingOutEndsIt(someone, { user }) {
  const page = await someone(null)
  await signIn(page, user)
  await page.send('Sign out', 'header')
  assert.match(await page.notice(), /signed out/)
  await page.goBack()
  await page.reload()
  assert.equal(await page.heading(), 'Sign in')
}

export async function whoSignsInComesToThePageThatWasAskedFor(someone, { user }) {
  const page = await someone(null)
  await page.go('/users')
  assert.equal(await page.heading(), 'Sign in')
  await page.fill('main [name=username]', user)
  await page.fill('main [name=password]', 'nine blue kettles')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/users')
}

export async function aSessionThatHasEndedLeadsToTheSignIn(someone, { user }) {
  const page = await someone(user)
  await page.go('/profile')
  await page.context().clearCookies()
  await page.fill('[name=email]', 'anna@example.org')
  page.expected = [401, 403]
  await page.send('Save')
  assert.match(await page.main(), /Sign in|out of date/)
}
