// The first page, and the activity.
import assert from 'node:assert/strict'
import { patience } from '../browser.mjs'
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
