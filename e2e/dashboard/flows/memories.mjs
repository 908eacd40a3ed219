// The list of memories: searched while typing, filtered, read, and many changed at once.
import assert from 'node:assert/strict'
import { call } from '../client.mjs'
import { phone } from '../browser.mjs'
import { figure, median } from '../figures.mjs'

export const stores = ['small', 'large']
const { STORE } = process.env

const rows = (page) => page.locator('#results tbody tr')
const found = async (page) => Number(/[\d,]+/.exec(await page.textContent('#found'))?.[0].replaceAll(',', '') ?? 0)

export async function searchAnswersAsOneTypes(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories')
  await page.keyboard.press('/')
  assert.equal(await page.focused(), 'q')
  page.transfers = []
  await page.locator('#q').pressSequentially('tiles of the coast', { delay: 160 })
  await page.waitForFunction(() => /\bmatch(es)?\b/.test(document.getElementById('found').textContent))
  await page.settle()
  assert.equal(await page.locator('#sort option:checked').textContent(), 'Best match')
  assert.match(page.url(), /q=tiles/)
  assert.match(await rows(page).first().textContent(), /tiles/i)
  assert.match(await page.locator('#results .score').first().textContent(), /words .*meaning/s)
  assert.ok((await page.locator('#results mark').count()) > 0, 'nothing is marked')
  const why = page.locator('#results .why').first()
  await why.locator('summary').click()
  assert.match(await why.locator('ul').innerText(), /[+-]\d\.\d\d/)
  const took = page.transfers.filter((request) => request.url().includes('/memories?'))
    .map((request) => [request.timing().responseStart - request.timing().requestStart, request.url()])
  assert.ok(took.length >= 3, `only ${took.length} searches`)
  figure('search as one types, median', median(took.map(([time]) => time)), 'ms', 50)
  figure('search as one types, slowest', Math.max(...took.map(([time]) => time)), 'ms', 50)
  await page.fill('#q', 'zzxxqq wwvv')
  await page.waitForURL('**q=zzxxqq**')
  await page.settle()
  await page.reload()
  assert.equal(await page.inputValue('#q'), 'zzxxqq wwvv')
}

export async function filtersNarrowTheListAndAreTakenOff(someone, { user, user_id }) {
  const page = await someone(user)
  await page.go('/memories')
  const all = await found(page)
  await page.locator('.filters > summary').click()
  await page.selectOption('#event_type', 'decision')
  await page.waitForURL('**event_type=decision**')
  await page.settle()
  const decisions = await found(page)
  assert.ok(decisions > 0 && decisions < all, `${decisions} of ${all}`)
  await page.selectOption('#project', `${user_id}/atlas`)
  await page.waitForURL('**project=**')
  await page.settle()
  const inAtlas = await found(page)
  assert.ok(inAtlas > 0 && inAtlas < decisions, `${inAtlas} of ${decisions}`)
  await page.goBack()
  await page.waitForURL((url) => !url.search.includes('project='))
  await page.settle()
  assert.equal(await found(page), decisions)
  assert.equal(await page.inputValue('#event_type'), 'decision')
  await page.locator('.chips').getByRole('link', { name: 'Clear filters' }).click()
  await page.settle()
  assert.equal(await found(page), all)
  await page.locator('.filters > summary').click()
  await page.fill('#tag', 'no such tag')
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => /No results/.test(document.getElementById('results').textContent))
}

export async function theFirstMemoryIsAboveTheFoldOfAPhone(someone, { user }) {
  const page = await someone(user, { ...phone, viewport: { width: 360, height: 640 } })
  for (const path of ['/memories', '/memories?q=tiles', '/memories?view=reading']) {
    await page.go(path)
    const box = await page.locator('#results .what, #results .reading .markdown').first().boundingBox()
    assert.ok(box.y + Math.min(box.height, 100) <= 640, `${path}: the first memory begins at ${box.y}`)
  }
}

export async function theBarForManyIsThereWhileSomethingIsChosen(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories')
  assert.equal(await page.locator('#bulk').isVisible(), false)
  const before = await rows(page).nth(2).boundingBox()
  await rows(page).first().locator('input[type=checkbox]').check()
  assert.equal(await page.locator('#bulk').isVisible(), true)
  assert.deepEqual(await rows(page).nth(2).boundingBox(), before) // nothing has moved
  await page.locator('#none').click()
  assert.equal(await page.locator('#bulk').isVisible(), false)
  await page.locator('#all-here').check()
  assert.match(await page.textContent('#chosen'), /25 selected/)
}

export async function arrowKeysGoThroughTheResults(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories?q=tiles')
  await page.focus('#q')
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp']) await page.keyboard.press(key)
  const first = await rows(page).first().locator('.what > a').getAttribute('href')
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), first)
  await page.keyboard.press('Escape')
  assert.equal(await page.focused(), 'q')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL(`**${first}`)
}

export async function weakerMatchesAreFolded(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories?sort=created_at_asc')
  await page.fill('#q', 'zzxxqq wwvv')
  await page.waitForFunction(() => /No matches/.test(document.getElementById('found').textContent))
  assert.ok(!page.url().includes('sort='), `${page.url()} has the order of the list`)
  assert.equal(await rows(page).first().isVisible(), false)
  assert.equal(await page.locator('#all-here').count(), 0, 'all are selected of a list that shows none')
  await page.locator('#weaker > summary').click()
  assert.equal(await rows(page).first().isVisible(), true)
}

export async function foldedMatchesAreNotSelectedWithTheOthers(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories?q=tiles+of+the+coast')
  const [seen, all] = [await page.locator('#results tbody input[type=checkbox]:visible').count(),
    await rows(page).count()]
  assert.ok(seen > 0 && seen < all, `${seen} of ${all} are shown`)
  await page.locator('#all-here').check()
  assert.match(await page.textContent('#chosen'), new RegExp(`^${seen} selected`))
  assert.ok(await page.locator('#all-here').isChecked())
}

export async function theReadingViewShowsTheTexts(someone, { user }) {
  const page = await someone(user)
  await page.go('/memories')
  await page.locator('.views').getByRole('link', { name: 'Reading' }).click()
  await page.settle()
  assert.ok((await page.locator('.reading .markdown').count()) > 5)
  await page.locator('.reading').getByRole('link', { name: /Open|Read more/ }).first().click()
  await page.waitForURL(/\/memories\/[0-9a-f-]{36}$/)
  await page.goBack()
  await page.settle()
  assert.ok((await page.locator('.reading').count()) > 0)
}

export async function excerptsShowMarkdown(someone, { user, token }) {
  if (STORE !== 'small') return
  await call(token, 'memory',
    { action: 'store',
      content: '## Kettles of the **harbour**\n\n- the *blue* one: `kettle --twice`\n- [a list](https://kettles.example/)\n' })
  const page = await someone(user)
  await page.go('/memories?q=kettles+of+the+harbour')
  const cell = page.locator('#results .what').first()
  assert.doesNotMatch(await cell.innerText(), /\*\*|##|`|\]\(/)
  // in parts, where words are marked
  assert.equal((await cell.locator('code').allTextContents()).join(''), 'kettle --twice')
  // a word of the search, and emphasized
  assert.match((await cell.locator('mark b').allTextContents()).join(' '), /harbour/)
}

// choose ticks the first n rows and returns their addresses.
async function choose(page, n) {
  const paths = []
  for (let i = 0; i < n; i++) {
    await rows(page).nth(i).locator('input[type=checkbox]').check()
    paths.push(await rows(page).nth(i).locator('th a').getAttribute('href'))
  }
  assert.match(await page.textContent('#chosen'), new RegExp(`${n} selected`))
  return paths
}

export async function manyAreTaggedAndItIsTakenBack(someone, { user }) {
  if (STORE !== 'small') return
  const page = await someone(user)
  await page.go('/memories')
  await choose(page, 3)
  await page.locator('#bulk summary', { hasText: 'Tag' }).click()
  await page.fill('#bulk-tag', 'kettle')
  await page.send('Add')
  assert.match(await page.notice(), /3 memories/)
  await page.go('/memories?tag=kettle')
  assert.equal(await found(page), 3)
  await page.goBack()
  await page.settle()
  await page.send('Undo')
  assert.match(await page.notice(), /Undone/)
  await page.go('/memories?tag=kettle')
  assert.match(await page.textContent('#results'), /No results/)
}

export async function manyAreDeletedAndComeBack(someone, { user }) {
  if (STORE !== 'small') return
  const page = await someone(user)
  await page.go('/memories')
  const before = await found(page)
  const paths = await choose(page, 2)
  await page.locator('#bulk').getByRole('button', { name: 'Delete' }).click()
  await page.settle()
  await page.waitForFunction(() => document.querySelector('main h2')?.textContent === 'Delete 2 memories?')
  await page.send('Delete')
  await page.waitForFunction(() => document.querySelector('main [role=status] + form, main .notice form'))
  assert.equal(await found(page), before - 2)
  const gone = await someone(user)
  await gone.go(paths[0], 404)
  await page.send('Undo')
  await page.go('/memories')
  assert.equal(await found(page), before)
  await gone.go(paths[0])
}

export async function theListWorksWithoutScripts(someone, { user }) {
  if (STORE !== 'small') return
  const page = await someone(user, undefined, { javaScriptEnabled: false })
  await page.go('/memories')
  await page.fill('#q', 'tiles of the coast')
  await page.keyboard.press('Enter')
  await page.settle()
  assert.match(await page.textContent('#found'), /\bmatch(es)?\b/)
  await rows(page).first().locator('input[type=checkbox]').check()
  await page.locator('#bulk').getByRole('button', { name: 'Archive' }).click()
  await page.settle()
  assert.match(await page.notice(), /archived/)
  await page.send('Undo')
  assert.match(await page.notice(), /Undone/)
}

export async function nearDuplicatesAreMadeOneAndComeApart(someone, { user, token }) {
  if (STORE !== 'small') return
  const [first, second] =
    [await call(token, 'memory', { action: 'store', content: 'The blue kettle is on the upper shelf by the window.',
      tags: ['one'] }),
    await call(token, 'memory', { action: 'store', content: 'The blue kettle is on the upper shelf, by the window.',
      tags: ['two'] })]
  const page = await someone(user)
  await page.go('/memories/duplicates')
  await page.locator('.alike', { hasText: 'upper shelf' }).getByRole('link', { name: 'Compare and merge' }).click()
  await page.settle()
  await page.send('Merge')
  const left = await someone(user)
  const answers = []
  for (const { id } of [first, second]) {
    left.expected = [404]
    answers.push((await left.goto(`http://memory.test/memories/${id}`)).status())
  }
  assert.deepEqual(answers.sort(), [200, 404])
  await page.send('Undo')
  for (const { id } of [first, second]) await left.go(`/memories/${id}`)
}
