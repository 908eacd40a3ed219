// The first page, and the activity.
import assert from 'node:assert/strict'
import { patience, site } from '../browser.mjs'
import { call } from '../client.mjs'

export async function theOverviewLeadsOn(someone, { user }) {
  const page = await someone(user)
  await page.go('/')
  await page.click('#days-90')
  await page.waitForURL('**/?days=90')
  await page.settle()
  assert.equal(await page.getAttribute('#days-90', 'aria-current'), 'true')
  await page.goBack()
  await page.settle()
  assert.equal(await page.getAttribute('#days-90', 'aria-current'), null)
  const growth = page.locator('section[aria-labelledby=growth]')
  await growth.getByText('Show as a table').click()
  assert.ok(await growth.locator('table').isVisible())
  for (const place of ['memories', 'projects', 'files']) {
    await page.go('/')
    await page.locator('.tiles a', { hasText: new RegExp(place.slice(0, -1), 'i') }).first().click()
    await page.settle()
    assert.equal(new URL(page.url()).pathname, `/${place}`)
  }
}

// What a page requests after it is shown ends with a sentence and a link if that fails.
export async function whatComesLateCanFail(someone, { user }) {
  const page = await someone(user)
  const failures = [
    [/not available/, (request) => request.fulfill({ status: 503, contentType: 'text/html', body: '<html></html>' })],
    [/too many requests/, (request) => request.fulfill({ status: 429, body: 'Later' })],
    [/session has ended/, (request) => request.fulfill({ status: 401, body: 'Sign in' })],
  ]
  const late = (url) => ['/attention', '/trends'].includes(url.pathname)
  for (const [sentence, fail] of failures) {
    await page.route(late, fail)
    page.expected = [401, 429, 503]
    await page.goto(`${site}/`)
    for (const id of ['attention', 'trends']) {
      const place = page.locator(`#${id}`)
      await place.getByText(sentence).waitFor()
      assert.match(await place.innerText(), id === 'trends' ? /What clients did/ : /Needs attention/)
      assert.equal(await place.getByRole('link').getAttribute('href'), await place.getAttribute('hx-get'))
    }
    assert.equal(await page.innerText('#problems'), '')
    await page.unroute(late)
  }
  await page.locator('#attention').getByRole('link').click()
  await page.settle()
  assert.equal(new URL(page.url()).pathname, '/attention')
}

export async function theActivityIsFiltered(someone, { user, token }) {
  const page = await someone(user)
  await call(token, 'list_collections', {}, 'kettle/2.0')
  await assert.rejects(call(token, 'todo', { action: 'complete', project_id: 'atlas', task_id: 'T99' }, 'kettle/2.0'),
    /404/)
  await page.go('/activity')
  await page.click('details.filters summary')
  await page.fill('#client', 'kettle/2.0')
  await page.send('Show')
  let rows = await page.locator('main .calls li').allTextContents()
  assert.equal(rows.length, 2)
  await page.selectOption('#outcome', 'error')
  await page.send('Show')
  rows = await page.locator('main .calls li').allTextContents()
  assert.equal(rows.length, 1)
  assert.match(rows[0], /todo/)
  assert.match(page.url(), /client=kettle/)
  await page.fill('#client', 'noah')
  await page.send('Show')
  assert.match(await page.main(), /No calls match/)
  await page.goBack()
  await page.settle()
  assert.equal(await page.inputValue('#client'), 'kettle/2.0')
}

export async function newCallsAppearByThemselves(someone, { user, token }) {
  const page = await someone(user)
  await page.go('/activity')
  await page.click('#follow')
  await page.waitForURL('**live=1**')
  await call(token, 'list_collections', {}, 'teapot/3.0')
  await page.waitForFunction(() => document.querySelector('main').textContent.includes('teapot'), null,
    { timeout: 15_000 * patience })
}
