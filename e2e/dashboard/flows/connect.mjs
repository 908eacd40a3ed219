// A user connects a client, sees it call, and finds the call under Activity.
import assert from 'node:assert/strict'
import { patience, phone } from '../browser.mjs'
import { call } from '../client.mjs'

export const stores = ['empty', 'small']

export async function aClientIsConnectedAndItsFirstCallIsSeen(someone, { user }) {
  const page = await someone(user)
  await page.go('/connect')
  const clients = await page.locator('nav.clients a').allTextContents()
  assert.ok(clients.length >= 5, `only ${clients.length} clients`)
  await page.follow('Claude Code', 'nav.clients')
  await page.send(/Create a token/)
  const pasted = (await page.locator('main pre code').first().textContent()).trim()
  const token = /mcp_[A-Za-z0-9_-]+/.exec(await page.main())[0]
  assert.ok(pasted.includes(token), 'the token is not in the text to paste')
  await page.locator('main button[data-copy]').first().click()
  await page.waitForFunction(() => /Copied|Chosen/.test(document.querySelector('main button[data-copy]').textContent))
  assert.match(await page.textContent('#first-call'), /Waiting for the first call/)
  await call(token, 'memory', { action: 'store', content: 'The kettle is blue.' })
  await page.waitForFunction(() => /Connected: .*kettle/.test(document.getElementById('first-call').textContent), null,
    { timeout: 15_000 * patience })
  await page.go('/activity')
  assert.match(await page.main(), /kettle/)
  await page.go('/')
  assert.match(await page.main(), /The kettle is blue/)
  await page.goBack()
  await page.settle()
  assert.equal(await page.heading(), 'Activity')
}

export async function aTokenIsMadeWithoutScripts(someone, { user }) {
  const page = await someone(user, undefined, { javaScriptEnabled: false })
  await page.go('/connect?client=Cursor')
  await page.check('[name=access][value=read]')
  await page.send(/Create a token/)
  const token = /mcp_[A-Za-z0-9_-]+/.exec(await page.textContent('main'))[0]
  await call(token, 'memory', { action: 'search', query: 'kettle' })
  await assert.rejects(call(token, 'memory', { action: 'store', content: 'x' }), /403/)
}

export async function aTokenEndsAndIsLimitedToAProject(someone, { user, project }) {
  if (process.env.STORE !== 'small') return // the empty one has no project
  const page = await someone(user)
  await page.go('/connect?client=Cursor')
  assert.match(await page.locator('#days option:checked').textContent(), /in 90 days/)
  await page.selectOption('#days', { label: 'in 30 days' })
  await page.locator('summary', { hasText: 'Only some projects' }).click()
  await page.locator('label', { hasText: 'The atlas' }).locator('input').check()
  await page.send(/Create a token/)
  const token = (await page.textContent('#value')).trim()
  const found = await call(token, 'memory', { action: 'search', limit: 100 })
  const projects = new Set(found.results.flatMap((group) => group.memories).map((memory) => memory.metadata.project_id))
  assert.deepEqual([...projects], [project])
  await page.go('/tokens')
  assert.match((await page.locator('main li', { hasText: 'Cursor' }).first().innerText()).replaceAll(/\s+/g, ' '),
    /expires in (29|30) days/)
}

// The overview of a new account shows the first steps, and follows the client's progress without a reload.
export async function aNewAccountIsLedToItsFirstSearch(someone, { user }) {
  if (process.env.STORE !== 'empty') return // other flows count the users of the small store
  for (const how of [undefined, phone]) {
    const admin = await someone(user, how)
    await admin.go('/invitations')
    await admin.send(/Create/)
    const link = new URL((await admin.textContent('#link')).trim())
    const page = await someone(null, how)
    await page.go(link.pathname + link.search)
    await page.fill('[name=username]', how ? 'newcomer-phone' : 'newcomer')
    await page.fill('[name=password]', 'nine blue kettles')
    await page.press('[name=password]', 'Enter')
    await page.settle()
    assert.doesNotMatch(await page.content(), /mcp_[A-Za-z0-9_-]{20}/, 'a token is shown without being asked for')
    await page.follow('Another client', 'nav.clients')
    await page.send('Create a token')
    const token = (await page.textContent('#value')).trim()
    await page.go('/')
    assert.equal(await page.locator('.path > li').count(), 3)
    await page.follow('Cursor', '.path nav')
    await page.locator('#path-connect button[data-copy]').click() // one click copies
    await page.waitForFunction(
      () => /Copied|Chosen/.test(document.querySelector('#path-connect button[data-copy]').textContent))
    await page.fill('#path-ask', 'colour of the kettle')
    await call(token, 'memory', { action: 'store', content: 'The first kettle is blue.' })
    await page.waitForFunction(() => /Connected: /.test(document.getElementById('path-connect').textContent), null,
      { timeout: 15_000 * patience })
    await page.waitForFunction(() => /first kettle/.test(document.getElementById('path-store').textContent), null,
      { timeout: 15_000 * patience })
    assert.equal(await page.inputValue('#path-ask'), 'colour of the kettle', 'what was typed is gone')
    await page.press('#path-ask', 'Enter')
    await page.settle()
    assert.match(await page.textContent('#path-search'), /first kettle is blue/)
    assert.match(await page.textContent('#path-status'), /All three steps are done/)
    await page.follow('Show the overview', '#path-status')
    assert.equal(await page.locator('#path').count(), 0)
  }
}
