// The activity of clients, in sentences, in charts, and client by client.
import assert from 'node:assert/strict'
import { call } from '../client.mjs'
import { look } from '../inspect.mjs'

const said = async (page, within = '.calls li') =>
  (await page.locator(within).allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))

// clientOf makes a token on the page Connect, as a person does, and returns its value.
async function clientOf(page, name) {
  await page.go(`/connect?client=${encodeURIComponent(name)}`)
  await page.send(/Create a token/)
  return (await page.textContent('#value')).trim()
}

export async function deedsAreSentencesByDayAndByClient(someone, { user, project }) {
  const page = await someone(user)
  const token = await clientOf(page, 'Cursor')
  const { id } = await call(token, 'memory',
    { action: 'store', project_id: project, content: '# Deploy window\n\nThursdays at two.' }, 'cursor/2.0')
  await call(token, 'memory', { action: 'update', id, content: '# Deploy window\n\nTuesdays at two.' }, 'cursor/2.0')
  await call(token, 'memory', { action: 'search', tags: ['of no memory at all'] }, 'cursor/2.0')
  await assert.rejects(call(token, 'memory', { action: 'retrieve', id: 'of-no-memory' }, 'cursor/2.0'), /404/)
  await call(token, 'memory', { action: 'delete', id }, 'cursor/2.0')

  await page.go('/activity')
  assert.equal(await page.locator('.day h2').first().textContent(), 'Today')
  const all = await said(page)
  for (const sentence of [/Cursor stored “Deploy window” in The atlas/, /Cursor updated “Deploy window” in The atlas/,
    /Cursor deleted “Deploy window”/,
    /Cursor searched the memories/, /Cursor could not read a memory not found/]) assert.ok(
      all.some((text) => sentence.test(text)), `${sentence} is not in ${all.slice(0, 8).join(' | ')}`)

  // by action, including updates and deletions
  for (const [kind, has, lacks] of [['Updated', /updated “Deploy window”/, /deleted|stored/],
    ['Deleted', /deleted “Deploy window”/, /updated|stored/]]) {
    await page.locator('nav.chips').getByRole('link', { name: kind, exact: true }).click()
    await page.settle()
    const some = await said(page)
    assert.match(some[0], has)
    assert.ok(some.every((text) => !lacks.test(text.split(' · ')[0].replace(/“.*?”/g, ''))),
      `${kind} shows ${some.join(' | ')}`)
  }
  await page.go('/activity?group=client')
  assert.ok((await said(page, '.day h3')).some((text) => /^Cursor \d/.test(text)),
    'no group has the name of the client')

  // the chart has a bar of the calls with what failed, and one of the searches with those without hits
  const bar = page.locator('.uses li', { hasText: 'Cursor' }).first()
  assert.match(await bar.innerText(), /5 calls, 1 failed, 1 of 1 search without hits/)
  for (const part of ['.part', '.fault', '.found', '.nohits']) {
    const box = await bar.locator(part).boundingBox()
    assert.ok(box.width > 0, `the chart has no ${part}`)
  }

  // and the client's own page says what it read and wrote, and pauses and revokes it
  await bar.locator('a').click()
  await page.settle()
  const own = (await page.innerText('.client')).replaceAll(/\s+/g, ' ')
  assert.match(own, /Stored 1 Updated 1 Deleted 1 Failed 1/)
  await look(page, 'the activity of Cursor')
  await page.send('Pause')
  await assert.rejects(call(token, 'memory', { action: 'search', query: 'x' }), /403/)
  page.once('dialog', (dialog) => dialog.accept())
  await page.send('Revoke access')
  await assert.rejects(call(token, 'memory', { action: 'search', query: 'x' }), /401/)
  await page.go('/trash')
  assert.match((await page.locator('main li', { hasText: 'Deploy window' }).first().innerText())
    .replaceAll(/\s+/g, ' '), new RegExp(`in The atlas · deleted by ${user} through Cursor`))
}

// Hostile names are shown as text, and another user's client is not found by its address.
export async function hostileNamesAreTextAndOthersClientsStayTheirs(someone, { user, other }) {
  const page = await someone(user)
  await page.go('/tokens')
  const name = '<img src=x onerror="ran=1">界 ‮rekcah'
  await page.locator('main form[action$="/tokens"] input[name=name]').fill(name)
  await page.send('Create token')
  const token = (await page.textContent('#made-token')).trim()
  await call(token, 'list_collections', {}, 'client <b>of</b>')
  await page.go('/activity')
  assert.ok((await said(page))[0].includes('<img src=x'), `got ${(await said(page))[0]}`)
  assert.equal(await page.evaluate(() => globalThis.ran), undefined)
  const theirs = await page.locator('.uses a', { hasText: '<img' }).first().getAttribute('href')
  const stranger = await someone(other)
  await stranger.go(theirs)
  assert.match(await stranger.main(), /No calls match/)
  assert.equal(await stranger.locator('.client').count(), 0)
}
