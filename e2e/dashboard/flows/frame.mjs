// The common parts of all pages: the menu, the keyboard, ways back, and the end.
import assert from 'node:assert/strict'
import { phone, signIn } from '../browser.mjs'
import { look } from '../inspect.mjs'

export async function keysLeadThroughThePage(someone, { user }) {
  const page = await someone(user)
  await page.go('/profile')
  await page.keyboard.press('Tab')
  assert.equal(await page.focused(), 'Skip to content')
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
  await page.evaluate(() => document.querySelectorAll('.menu .folded').forEach((part) => (part.open = true)))
  await look(page, 'the menu', { touch: true })
  await link.tap()
  await page.settle()
  assert.equal(new URL(page.url()).pathname, '/')
}

export async function theMenuSaysWhereOneIs(someone, { user }) {
  const page = await someone(user)
  await page.go('/')
  const places = await page.locator('.menu nav a').evaluateAll((links) => links.map((link) => link.textContent))
  for (const place of places) {
    await page.evaluate(() => document.querySelectorAll('.menu .folded').forEach((part) => (part.open = true)))
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
  for (const name of ['Users', 'Invitations', 'Backup and restore'])
    assert.ok(!places.includes(name), `${name} is offered`)
  await page.go('/users', 403)
  assert.match(await page.main(), /admin/i)
}

export async function theMenuIsBesideANarrowWindowAndFits(someone, { user }) {
  const page = await someone(user, { colorScheme: 'light', viewport: { width: 900, height: 900 } })
  await page.go('/activity')
  const [menu, main] = [await page.locator('.menu nav').boundingBox(), await page.locator('main').boundingBox()]
  assert.ok(menu.x + menu.width <= main.x, 'the menu is above the page')
  assert.ok(await page.evaluate(() => document.querySelector('header').scrollHeight <= innerHeight),
    'the menu is higher than the window')
  assert.equal(await page.locator('.menu').getByRole('link', { name: 'Users' }).isVisible(), false)
  await page.go('/memories')
  const cut = await page.locator('.memories-list').first().evaluate((list) => list.scrollWidth - list.clientWidth)
  assert.ok(cut <= 0, `${cut} pixels of the table of memories are cut off`)
  await page.locator('.menu').getByText('Server').click()
  await page.follow('Users', '.menu')
  assert.equal(await page.heading(), 'Users')
  assert.equal(await page.locator('.menu').getByRole('link', { name: 'Users' }).isVisible(), true)
}

// The theme changes without a reload, and is kept for the next page and for the sign-in.
export async function aThemeIsChosenAndKept(someone, { user }) {
  for (const how of [undefined, phone]) {
    const page = await someone(user, how)
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await page.go('/memories/new')
    await page.fill('textarea', 'What is typed stays.')
    if (how) await page.tap('.menu > summary')
    const before = await ground()
    const other = how ? 'Light' : 'Dark'
    await page.send(other, '.menu')
    const after = await ground()
    assert.notEqual(after, before)
    assert.equal(await page.inputValue('textarea'), 'What is typed stays.')
    await page.go('/')
    assert.equal(await ground(), after)
    if (how) await page.tap('.menu > summary')
    assert.equal(await page.locator('.themes [aria-pressed=true]').innerText(), other)
    await page.send('System', '.menu')
    assert.equal(await ground(), before)
  }
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

// Typed text outlives a session: after a new sign-in in another window, or on the page that asks for it.
export async function whatIsTypedOutlivesANewSignIn(someone, { user }) {
  for (const how of [undefined, phone]) {
    const page = await someone(user, how)
    await page.go('/memories/new')
    page.expected = [401, 403] // the preview is asked for after the end of the session, too
    await page.fill('textarea[name=content]', 'Typed before the session ended.')
    await page.context().clearCookies()
    const other = await page.context().newPage()
    await signIn(Object.assign(other, { expected: [], transfers: [], waiting: new Set() }), user)
    page.expected = [403]
    await page.locator('form[action$="/memories/new"] button.primary').first().click()
    await page.settle()
    assert.match(await page.heading(), /still here/)
    assert.equal(await page.inputValue('textarea[name=content]'), 'Typed before the session ended.')
    page.expected = []
    await page.send('Send it again')
    assert.doesNotMatch(await page.heading(), /still here/)
  }
}

export async function offlineSaysSoAndSendsNothing(someone, { user }) {
  for (const how of [undefined, phone]) {
    const page = await someone(user, how)
    await page.go('/memories/new')
    const preview = page.waitForResponse('**/memories/preview')
    await page.fill('textarea[name=content]', 'Typed in a tunnel.')
    await preview
    await page.settle()
    await page.context().setOffline(true)
    await page.waitForSelector('#offline')
    await page.locator('form[action$="/memories/new"] button.primary').first().click()
    assert.match(await page.innerText('#problems'), /offline/i)
    assert.equal(await page.inputValue('textarea[name=content]'), 'Typed in a tunnel.')
    await page.context().setOffline(false)
    await page.waitForSelector('#offline', { state: 'detached' })
  }
}
