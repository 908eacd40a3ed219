// The users' tasks, each from the overview, with at most the number of clicks that docs/dashboard.md gives. Keys that
// send input count as clicks; typing does not.
import assert from 'node:assert/strict'
import { phone } from '../browser.mjs'
import { call } from '../client.mjs'
import { look } from '../inspect.mjs'

// counted begins a task of a page, and counts its clicks.
async function counted(page, path = '/') {
  const task = { clicks: 0 }
  const press = async (locator) => {
    task.clicks++
    await locator.first().click()
    await page.settle()
  }
  task.link = (name, within = 'main') => press(page.locator(within).getByRole('link', { name }))
  task.button = (name, within = 'main') => press(page.locator(within).getByRole('button', { name }))
  task.press = press
  task.enter = async () => {
    task.clicks++
    await page.keyboard.press('Enter')
    await page.settle()
  }
  // menu follows a link of the menu, which a phone folds
  task.menu = async (name) => {
    const folded = page.locator('.menu > summary')
    if (await folded.isVisible()) await press(folded)
    await press(page.locator('.menu').getByRole('link', { name, exact: true }))
  }
  task.took = (most, what) => assert.ok(task.clicks <= most + (folds ? 1 : 0),
    `${what} took ${task.clicks} clicks, more than ${most}`)
  await page.go(path)
  const folds = await page.locator('.menu > summary').isVisible()
  return task
}

const looks = [undefined, phone]

export async function aMemoryIsCorrected(someone, { user, token }) {
  for (const how of looks) {
    await call(token, 'memory',
      { action: 'store', content: `The ferry leaves at ${how ? 'nine' : 'eight'}, from pier two.` })
    const page = await someone(user, how)
    const task = await counted(page)
    await task.link(/The ferry leaves/, '.latest')
    await task.link('Edit', '.tabs')
    await page.fill('#content', 'The ferry leaves at ten, from pier two.')
    await task.button('Save')
    task.took(3, 'correcting a memory')
    assert.match(await page.main(), /ferry leaves at ten/)
  }
}

export async function someoneIsInvitedToAProject(someone, { user, project }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const task = await counted(page)
    await task.menu('Projects')
    await task.link('The atlas', 'main')
    await task.link('Members', '.tabs')
    await page.fill('#user', `guest-${how ? 'phone' : 'desk'}`)
    await task.button('Invite')
    task.took(4, `sharing ${project}`)
    assert.match(await page.main(), /guest-\S+ is invited/)
  }
}

export async function somethingIsRestoredAndDeletedAgain(someone, { user, token }) {
  for (const how of looks) {
    const { id } = await call(token, 'memory', { action: 'store', content: 'A note that is missed.' })
    await call(token, 'memory', { action: 'delete', id })
    const page = await someone(user, how)
    const task = await counted(page)
    await task.menu('Trash')
    const until = await page.locator('li', { hasText: 'A note that is missed.' }).locator('time').nth(1)
    const local = await page.evaluate(
      (at) => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at)),
        await until.getAttribute('datetime'))
    assert.equal(await until.textContent(), local, 'the time is not that of the browser')
    await task.button('Restore A note that is missed.')
    task.took(2, 'restoring')
    assert.match(await page.notice(), /“A note that is missed\.” is restored/)
    await page.send('Undo')
    assert.match(await page.main(), /A note that is missed/)
    await look(page, 'the trash', { touch: how === phone })
  }
}

export async function aProjectIsDeletedAndComesBack(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const name = how ? 'Raft' : 'Barge'
    await page.go('/projects')
    await page.fill('main form[method=post] [name=name]', name)
    await page.send('Create project')
    await page.follow('Settings', '.tabs')
    await page.locator('section', { has: page.locator('#delete') }).locator('input:not([type=hidden])').first()
      .fill(name)
    await page.send('Delete the project')
    assert.match(await page.notice(), /is deleted, with its memories/)
    await page.send('Undo')
    assert.equal(await page.heading(), name)
  }
}

export async function whatAnAgentDidIsFound(someone, { user, token }) {
  for (let i = 0; i < 15; i++) await call(token, 'list_collections', {}, 'lantern/1.0')
  for (const how of looks) {
    const page = await someone(user, how)
    const task = await counted(page)
    await task.link(/lantern/i, '#by-client, section[aria-labelledby=by-client]')
    task.took(1, "finding an agent's doings")
    assert.match(await page.main(), /lantern/i)
  }
}

export async function duplicatesAreResolved(someone, { user, token }) {
  for (const how of looks) {
    const word = how ? 'copper' : 'silver'
    for (const end of ['.', '!'])
      await call(token, 'memory',
        { action: 'store', content: `The ${word} lantern hangs beside the northern door${end}` })
    const page = await someone(user, how)
    const task = await counted(page)
    await task.link(/^Compare: .*near-duplicate memories/, '#attention')
    await task.press(page.locator('.alike', { hasText: `${word} lantern` })
      .getByRole('link', { name: 'Compare and merge' }))
    await task.button('Merge')
    task.took(3, 'resolving duplicates')
    await page.go('/trash')
    assert.match(await page.main(), new RegExp(`${word} lantern`))
  }
}

export async function aTaskIsAdded(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const task = await counted(page)
    await task.menu('Projects')
    await task.link('The atlas', 'main')
    await task.link('To-do', '.tabs')
    await page.fill('#task', `oil the ${how ? 'gate' : 'hinge'}`)
    await task.enter()
    task.took(4, 'adding a task')
    await page.waitForFunction(() => /oil the (gate|hinge)/.test(document.querySelector('.boxes').textContent))
  }
}

export async function aDocumentIsFoundByWhatItSays(someone, { user, token }) {
  await call(token, 'upload_document',
    { filename: 'tides.md', content: '# Tides\n\nThe spring tide reaches the sluice at dawn.' })
  for (const how of looks) {
    const page = await someone(user, how)
    const task = await counted(page)
    await page.keyboard.press('/')
    await page.waitForURL('**/memories*')
    await page.settle()
    await page.locator('#q').pressSequentially('spring tide sluice')
    await page.waitForFunction(() => /tides\.md/.test(document.querySelector('main').textContent))
    await page.settle()
    assert.match(await page.locator('section[aria-labelledby=documents]').innerText(), /tides\.md.*line 3/s,
      'the place is not shown')
    await task.link(/tides\.md/)
    task.took(1, 'finding a document')
    assert.match(await page.main(), /tides\.md/)
  }
}

export async function aClientIsConnectedAndRevoked(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const task = await counted(page)
    await task.menu('Connect')
    assert.doesNotMatch(await page.content(), /mcp_[A-Za-z0-9_-]{20}/, 'a token is shown without being asked for')
    assert.match(await page.locator('main section h2').first().textContent(), /by signing in/)
    await look(page, 'connect', { touch: how === phone })
    await task.press(page.locator('main button[data-copy]'))
    task.took(2, 'connecting a client')
    await page.follow('Another client', 'nav.clients')
    await page.send('Create a token')
    const revoking = await counted(page, '/connect')
    await revoking.link('Tokens')
    page.once('dialog', (dialog) => dialog.accept())
    await revoking.button(/^Revoke Client/)
    assert.match(await page.notice(), /Token revoked/)
    revoking.took(2, 'revoking a token')
  }
}

// Names and titles stand for things; ids are on their own pages, where one click copies them.
export async function noListShowsIds(someone, { user, memory, file }) {
  const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i
  for (const how of looks) {
    const page = await someone(user, how)
    for (const path of ['/', '/attention', '/trends', '/memories', '/memories?q=tiles', '/memories?view=reading',
      '/memories/duplicates', '/files', '/projects', '/trash',
      '/activity', '/activity?group=client', '/connected', '/tokens', '/clients', '/proposals', '/project-invitations',
        '/users', '/invitations', '/graph', '/map']) {
      await page.go(path)
      const shown = uuid.exec(await page.innerText('main'))
      assert.equal(shown?.[0], undefined, `${path} shows an id`)
    }
    for (const path of [`/memories/${memory}`, `/files/${file}`]) {
      await page.go(path)
      await page.locator('button[data-copy=id]').first().click()
      await page.waitForFunction(() => /Copied|Chosen/.test(document.querySelector('button[data-copy=id]').textContent))
    }
  }
}

// A new memory has the same form as an existing one: a preview, links found by a search, and errors at their fields.
export async function aMemoryIsWrittenWithAPreviewAndALink(someone, { user, token }) {
  await call(token, 'memory', { action: 'store', content: 'Otters sleep under the pier.' })
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/memories/new')
    await page.locator('#content').pressSequentially('The **pier** was mended.')
    await page.waitForFunction(() => document.querySelector('#preview strong')?.textContent === 'pier')
    await page.locator('#seek').pressSequentially('otters sleep')
    await page.waitForFunction(() => /Otters sleep/.test(document.getElementById('seen').textContent))
    await page.settle()
    await page.locator('#seen label', { hasText: 'Otters sleep' }).first().click()
    await page.fill('#metadata', 'source: mail')
    await look(page, 'a new memory', { touch: how === phone })
    await page.send('Save')
    assert.match(await page.notice(), /Memory stored/)
    if (/merge/.test(page.url())) continue // nearly the same as the one from before
    assert.match(await page.main(), /Otters sleep under the pier/)
    await page.send('Undo')
  }
}

export async function theOverviewHasTrendsAndWhatNeedsAttention(someone, { user, token }) {
  await call(token, 'memory', { action: 'search', query: 'tiles' }, 'lantern/1.0')
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/')
    await page.waitForSelector('#trends .trends')
    assert.match(await page.innerText('#trends'), /Searches with hits\s+\d+%/)
    for (const link of await page.locator('#attention li a').all()) assert.match(await link.getAttribute('href'), /^\//)
    await page.locator('#trends summary').click()
    await look(page, 'the overview', { touch: how === phone })
  }
}

// What one user typed is not shown to another who signs in on the same browser.
export async function whatWasTypedIsShownToItsWriterAlone(someone, { user, other }) {
  const page = await someone(user)
  await page.go('/memories/new')
  await page.fill('#content', 'Only for my own eyes, and a text of more than sixty characters.')
  await page.context().clearCookies()
  page.expected = [401, 403]
  await page.locator('form[action$="/memories/new"] button.primary').first().click()
  await page.settle()
  assert.doesNotMatch(await page.content(), /my own eyes|my\+own\+eyes/)
  await page.fill('main [name=username]', other)
  await page.fill('main [name=password]', 'nine blue kettles')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => !url.pathname.startsWith('/login') && !url.pathname.startsWith('/memories'))
  await page.settle()
  assert.doesNotMatch(await page.content(), /my own eyes/)
}
