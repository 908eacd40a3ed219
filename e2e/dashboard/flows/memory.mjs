// One memory: edited, by two users at once, its versions restored, linked, archived, deleted, and all of it undone.
import assert from 'node:assert/strict'
import { call } from '../client.mjs'

export async function aMemoryIsEditedAndItsHistoryTellsHow(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}/edit`)
  const before = await page.inputValue('#content')
  await page.fill('#content', before.replace('fifty', 'sixty'))
  await page.waitForFunction(() => document.querySelector('#preview strong')?.textContent === 'sixty')
  await page.fill('#tags', 'tiles, coast, kettle')
  await page.send('Save')
  assert.match(await page.notice(), /saved/i)
  assert.match(await page.main(), /sixty/)
  await page.go(`/memories/${memory}/history`)
  assert.match(await page.locator('.states li').first().textContent(), /fifty/)
  assert.ok((await page.locator('.states del, .states ins').count()) > 0, 'no differences are marked')
  await page.send('Restore version 1')
  assert.match(await page.main(), /forty/)
  await page.send('Undo')
  assert.match(await page.notice(), /Undone/)
  await page.go(`/memories/${memory}`)
  assert.match(await page.main(), /sixty/)
}

export async function whoSavesAMemorySecondLosesNothing(someone, { user, other, memory }) {
  const [first, second] = [await someone(user), await someone(other)]
  await first.go(`/memories/${memory}/edit`)
  await second.go(`/memories/${memory}/edit`)
  await first.fill('#content', 'What anna wrote.')
  await first.send('Save')
  await second.fill('#content', 'What ben wrote.')
  second.expected = [400, 409]
  await second.send('Save')
  assert.match(await second.main(), /What anna wrote/)
  assert.equal((await second.inputValue('#content')).trim(), 'What ben wrote.')
  await second.send('Save this version')
  await first.go(`/memories/${memory}`)
  assert.match(await first.main(), /What ben wrote/)
}

export async function wrongMetadataIsToldBesideIt(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}/edit`)
  await page.fill('#metadata', '{"zoom": ')
  page.expected = [400]
  await page.send('Save')
  assert.ok(await page.locator('#metadata-wrong').isVisible())
  assert.equal(await page.inputValue('#metadata'), '{"zoom": ')
}

export async function whatOneHasTypedIsNotLostByLeaving(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}/edit`)
  await page.locator('#content').pressSequentially('typed')
  let asked = false
  page.once('dialog', (dialog) => {
    asked = dialog.type() === 'beforeunload'
    return dialog.dismiss()
  })
  await page.unfold()
  await page.locator('.menu nav a').first().click()
  await page.waitForTimeout(300)
  assert.ok(asked, 'no confirmation appeared')
  assert.match(page.url(), /\/edit$/)
}

// New and Edit are one form, and the page of a memory shows its text once, not again as its heading.
export async function oneFormWritesAMemoryAndItsPageSaysTheTextOnce(someone, { user, token }) {
  const text = 'Seven herons stand in the shallows before the rain comes.'
  const { id } = await call(token, 'memory', { action: 'store', content: text })
  const page = await someone(user)
  const fields = async (path) => {
    await page.go(path)
    return page.locator('main form :is(input:not([type=hidden]), textarea, select)')
      .evaluateAll((all) => all.map((one) => one.id || one.name))
  }
  const [edit, fresh] = [await fields(`/memories/${id}/edit`), await fields('/memories/new')]
  assert.deepEqual(edit.filter((field) => !fresh.includes(field)), [])
  await page.go(`/memories/${id}`)
  assert.equal((await page.main()).split(text).length - 1, 1)
}

export async function aMemoryIsArchivedAndDeletedAndComesBack(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}`)
  await page.send('Archive', '.quickly')
  assert.match(await page.main(), /Archived: agents/)
  await page.send('Undo')
  await page.go(`/memories/${memory}`)
  assert.doesNotMatch(await page.main(), /Archived: agents/)
  await page.send('Delete', '.quickly')
  await page.waitForURL((url) => !url.pathname.includes(memory))
  await page.send('Undo')
  await page.go(`/memories/${memory}`)
  assert.match(await page.main(), /Linked memories/)
}

export async function similarOnesAreShownAndLinksLeadOn(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}`)
  const alike = page.locator('section[aria-labelledby=alike]')
  await alike.locator('ul.linked a').or(alike.getByText('None that you can see')).first().waitFor()
  await page.locator('section[aria-labelledby=related] ul.linked a').first().click()
  await page.waitForURL((url) => !url.pathname.includes(memory))
  await page.settle()
  await page.goBack()
  await page.settle()
  assert.match(page.url(), new RegExp(memory))
}

export async function aFileIsStoredWithAMemoryAndTakenOff(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}`)
  await page.click('summary:has-text("Add a file")')
  await page.setInputFiles('#file', { name: 'kettle.txt', mimeType: 'text/plain', buffer: Buffer.from('blue\n') })
  await page.send('Upload and link')
  assert.match(await page.notice(), /kettle\.txt/)
  await page.send('Unlink kettle.txt')
  await page.go(`/memories/${memory}`)
  assert.doesNotMatch(await page.textContent('section[aria-labelledby=files] ul.rows'), /kettle\.txt/)
}

export async function memoriesAreLinkedBySearch(someone, { user, memory }) {
  const page = await someone(user)
  await page.go(`/memories/${memory}/edit`)
  const before = await page.locator('#linked input').count()
  await page.fill('#seek', 'kettle')
  await page.locator('#seen li').first().waitFor()
  const title = (await page.locator('#seen li').first().innerText()).slice(0, 20)
  await page.locator('#seen input').first().check()
  assert.equal(await page.locator('#linked input').count(), before + 1)
  await page.fill('#seek', 'zzxxqq')
  await page.settle()
  await page.send('Save')
  assert.ok((await page.locator('section[aria-labelledby=related]').innerText()).includes(title),
    `${title} is not linked`)
  await page.send('Undo')
}
