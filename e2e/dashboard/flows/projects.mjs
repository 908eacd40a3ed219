// A project: created, shared, its rules written, its tasks ticked, and saved by two users at once.
import assert from 'node:assert/strict'
import { phone } from '../browser.mjs'

export async function aProjectIsMadeRenamedAndDeleted(someone, { user }) {
  const page = await someone(user)
  await page.go('/projects')
  await page.fill('main form[method=post] [name=name]', 'Lighthouse')
  await page.send('Create project')
  assert.equal(await page.heading(), 'Lighthouse')
  await page.follow('Settings', '.tabs')
  await page.fill('main [name=name]', 'Lighthouses')
  await page.send('Rename')
  assert.match(await page.heading(), /Lighthouses/)
  const remove = page.locator('section', { has: page.locator('#delete') }).locator('form')
  await remove.locator('input[type=text], input:not([type=hidden])').first().fill('wrong')
  page.expected = [400]
  await page.send('Delete the project')
  assert.ok(await page.locator('.wrong, .problem').first().isVisible(), 'a wrong name does not keep the project')
  await remove.locator('input:not([type=hidden])').first().fill('Lighthouses')
  await page.send('Delete the project')
  assert.equal(await page.heading(), 'Projects')
  assert.equal(await page.locator('ul.projects', { hasText: 'Lighthouses' }).count(), 0)
}

export async function aTaskIsTickedInPlaceAndWithoutScripts(someone, { user, user_id, project }) {
  const path = `/projects/${user_id}/${project}/todo`
  const page = await someone(user)
  await page.go(path)
  const box = (of) => of.locator('li', { hasText: 'T3' }).locator('input[type=checkbox]')
  assert.match(await page.textContent('#progress'), /2 of 5/)
  const version = Number(/Version (\d+)/.exec(await page.textContent('#version'))[1])
  await box(page).check()
  await page.waitForFunction(() => /3 of 5/.test(document.getElementById('progress').textContent))
  assert.equal(Number(/Version (\d+)/.exec(await page.textContent('#version'))[1]), version + 1,
    'the version is a stale one')
  await page.settle()
  await page.reload()
  assert.ok(await box(page).isChecked())
  const plain = await someone(user, undefined, { javaScriptEnabled: false })
  await plain.go(path)
  await box(plain).uncheck()
  await plain.send('Save')
  assert.match(await plain.textContent('#progress'), /2 of 5/)
}

export async function aTaskIsAddedAndOrderedByKeysButtonsAndMouse(someone, { user }) {
  const page = await someone(user)
  await page.go('/projects')
  await page.fill('main form[method=post] [name=name]', 'Ferry')
  await page.send('Create project')
  await page.follow('To-do', '.tabs')
  await page.fill('#task', 'paint the hull')
  await page.send('Add')
  for (const text of ['mend the sails', 'fill the tank']) {
    const version = await page.textContent('#version')
    await page.fill('#task', text)
    await page.keyboard.press('Enter')
    await page.waitForFunction((before) => document.getElementById('version').textContent !== before, version)
    await page.settle()
    assert.equal(await page.focused(), 'task')
    assert.equal(await page.inputValue('#task'), '')
  }
  const order = async () => (await page.locator('.boxes .task').allTextContents()).join(' ')
  assert.equal(await order(), 'T1 T2 T3')
  assert.match(await page.textContent('#progress'), /0 of 3/)
  const row = (id) => page.locator('.boxes > li', { hasText: id })
  const becomes = (want) => page.waitForFunction((ids) =>
    [...document.querySelectorAll('.boxes .task')].map((task) => task.textContent).join(' ') === ids, want)
  await row('T3').locator('input[type=checkbox]').focus()
  await page.keyboard.press('Alt+ArrowUp')
  await becomes('T1 T3 T2')
  await page.settle()
  assert.equal(await page.evaluate(() => document.activeElement.closest('li')?.querySelector('.task').textContent),
    'T3')
  await page.keyboard.press('Alt+ArrowUp')
  await becomes('T3 T1 T2')
  await page.settle()
  await row('T3').dragTo(row('T2'))
  await becomes('T1 T2 T3')
  await page.settle()
  const small = await someone(user, phone)
  await small.go(new URL(page.url()).pathname)
  await small.getByRole('button', { name: 'Move down: T1' }).tap()
  await small.waitForFunction(() => [...document.querySelectorAll('.boxes .task')].map((task) => task.textContent)
    .join(' ') === 'T2 T1 T3')
  const plain = await someone(user, undefined, { javaScriptEnabled: false })
  await plain.go(new URL(page.url()).pathname)
  await plain.fill('#task', 'leave')
  await plain.send('Add')
  await plain.getByRole('button', { name: 'Move up: T4' }).click()
  await plain.settle()
  assert.equal((await plain.locator('.boxes .task').allTextContents()).join(' '), 'T2 T1 T4 T3')
}

export async function aProjectsContentsAreTabs(someone, { user, user_id, project }) {
  for (const look of [undefined, phone]) {
    const page = await someone(user, look)
    await page.go(`/projects/${user_id}/${project}`)
    for (const tab of ['Memories', 'Files', 'Conversations', 'Rules', 'To-do', 'Context', 'Members']) {
      await page.locator('.tabs').getByRole('link', { name: tab, exact: true }).click()
      await page.settle()
      const here = page.locator('.tabs [aria-current=page]')
      assert.equal(await here.textContent(), tab)
      const box = await here.boundingBox()
      assert.ok(box.x >= 0 && box.x + box.width <= page.viewportSize().width, `${tab} is out of sight`)
    }
  }
}

export async function countsAreLinks(someone, { user, user_id, project }) {
  const page = await someone(user)
  const path = `/projects/${user_id}/${project}`
  const card = page.locator('.projects > li', { hasText: 'The atlas' })
  for (const [count, leads] of [[/^\d+ memor/, '/memories'], [/^\d+ member/, '/members'],
    [/^\d+ of \d+ tasks done/, '/todo']]) {
    await page.go('/projects')
    await card.getByRole('link', { name: count }).click()
    await page.settle()
    assert.equal(new URL(page.url()).pathname, path + leads)
  }
  for (const leads of ['memories', 'files', 'members']) {
    await page.go(path)
    const link = page.locator(`.facts a[href$="/${leads}"]`)
    const count = Number((await link.textContent()).replaceAll(',', ''))
    await link.click()
    await page.settle()
    assert.ok(count > 0 && (await page.main()).includes(String(count)), `${leads}: ${count}`)
  }
}

// A known user is found by a part of the name, invited by a click, and pending until the answer.
export async function someoneIsFoundAndInvited(someone, { user, other }) {
  const page = await someone(user)
  await page.go('/projects')
  await page.fill('main form[method=post] [name=name]', 'Pier')
  await page.send('Create project')
  await page.follow('Members', '.tabs')
  const found = page.locator('.people li', { hasText: other })
  await page.locator('#user').pressSequentially('zzz')
  await page.waitForFunction(() => !document.querySelector('.people li'))
  await page.locator('#user').fill('')
  await page.locator('#user').pressSequentially(other.slice(0, 2))
  await found.waitFor()
  await page.settle()
  await found.getByRole('button').click()
  await page.settle()
  assert.match(await page.main(), new RegExp(`${other} is invited`))
  assert.match((await page.locator('main li', { hasText: other }).first().innerText()).replaceAll(/\s+/g, ' '),
    new RegExp(`${other} reader pending`))
  const theirs = await someone(other)
  await theirs.go(new URL(page.url()).pathname, 404)
  await theirs.go('/project-invitations')
  assert.match(await theirs.main(), /Pier/)
  await page.send(/Withdraw/)
  await theirs.go('/project-invitations')
  assert.doesNotMatch(await theirs.main(), /Pier/)
}

export async function whoSavesSecondIsShownBothTexts(someone, { user, user_id, other, project }) {
  const path = `/projects/${user_id}/${project}/edit?text=do`
  const [first, second] = [await someone(user), await someone(other)]
  await first.go(path)
  await second.go(path)
  await first.fill('#content', '# Ours\n\n- write **tests** first\n')
  await first.waitForFunction(() => document.querySelector('#preview strong')?.textContent === 'tests')
  await first.send('Save')
  await second.fill('#content', '# Mine\n')
  second.expected = [400, 409]
  await second.send('Save')
  assert.match(await second.main(), /Someone else saved this text while you were editing it/)
  assert.match(await second.inputValue('#saved'), /# Ours/)
  assert.equal((await second.inputValue('#content')).trim(), '# Mine')
  await second.send('Replace with mine')
  await first.go(path)
  assert.match(await first.inputValue('#content'), /# Mine/)
}

export async function membersComeAndGo(someone, { user, user_id, other, project }) {
  const page = await someone(user)
  const path = `/projects/${user_id}/${project}/members`
  await page.go(path)
  await page.locator('li', { hasText: other }).getByRole('button', { name: /Remove/ }).click()
  await page.settle()
  const theirs = await someone(other)
  await theirs.go(path, 404)
  await page.go(path)
  await page.fill('#user', 'noah-of-this-name')
  await page.send('Invite')
  assert.match(await page.textContent('main'), /noah-of-this-name is invited/) // like any other name
  await page.locator('li', { hasText: 'noah-of-this-name' }).getByRole('button', { name: /Withdraw/ }).click()
  await page.settle()
  await page.fill('#user', other)
  await page.check('[name=role][value=reader]')
  await page.send('Invite')
  await theirs.go(path, 404)
  await theirs.go('/project-invitations')
  assert.match(await theirs.textContent('.menu'), /1 new/)
  await theirs.getByRole('button', { name: /Accept/ }).first().click()
  await theirs.settle()
  await theirs.go(path)
  await page.go(path)
  await page.locator('li', { hasText: other }).locator('select').selectOption('writer')
  await page.locator('li', { hasText: other }).getByRole('button', { name: /Change/ }).click()
  await page.settle()
  // until it is accepted
  assert.match((await page.locator('li', { hasText: other }).allTextContents()).join(' '), /writer\s+pending/)
  await theirs.go('/project-invitations')
  await theirs.getByRole('button', { name: /Accept/ }).first().click()
  await theirs.settle()
  await page.go(path)
  assert.match(await page.locator('li', { hasText: other }).first().textContent(), /writer/)
}

export async function whatAgentsAreGivenIsLookedAt(someone, { user, user_id, project }) {
  const page = await someone(user)
  await page.go(`/projects/${user_id}/${project}/context`)
  await page.locator('#query').pressSequentially('tiles of the coast')
  await page.waitForURL('**query=tiles**')
  await page.settle()
  assert.match(await page.textContent('#parts'), /tokens in total/)
  await page.goBack()
  await page.go(`/projects/${user_id}/${project}/modules?module=tiles`)
  assert.equal(await page.inputValue('#module'), 'tiles')
}
