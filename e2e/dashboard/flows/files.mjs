// Files: dropped, looked at, described, linked to a memory, deleted; and sent by a form where there are no scripts.
import assert from 'node:assert/strict'
import { call } from '../client.mjs'

// dropped lets files fall onto the page, as from another window.
async function dropped(page, files) {
  const data = await page.evaluateHandle((files) => {
    const data = new DataTransfer()
    for (const { name, type, text } of files) data.items.add(new File([text], name, { type }))
    return data
  }, files)
  for (const kind of ['dragenter', 'dragover', 'drop']) await page.dispatchEvent('#drop', kind, { dataTransfer: data })
}

export async function filesAreDroppedLookedAtAndLinked(someone, { user, token }) {
  const page = await someone(user)
  await page.go('/files')
  const script = '<svg xmlns="http://www.w3.org/2000/svg"><script>globalThis.ran="dropped"</script></svg>'
  await dropped(page, [{ name: 'kettle.md', type: 'text/markdown', text: '# Kettle\n\n**blue** one\n' }, { name: 'kettle.svg', type: 'image/svg+xml', text: script }])
  await page.waitForFunction(() => document.querySelectorAll('#files td.name a').length > 0 && /kettle\.md/.test(document.getElementById('files').textContent) && /kettle\.svg/.test(document.getElementById('files').textContent))
  await page.settle()
  await page.follow('kettle.md', '#files')
  assert.equal(await page.textContent('.markdown strong'), 'blue')
  const { id } = await call(token, 'memory', { action: 'store', content: 'The kettle has a drawing of its own.' })
  await page.locator('#find').pressSequentially('kettle drawing')
  await page.waitForFunction(() => /drawing of its own/.test(document.getElementById('found').textContent))
  await page.settle()
  await page.locator('#found li', { hasText: 'drawing of its own' }).getByRole('button').click()
  await page.settle()
  await page.go(`/memories/${id}`)
  assert.match(await page.textContent('section[aria-labelledby=files]'), /kettle\.md/)
  await page.go('/files?name=kettle.svg')
  await page.follow('kettle.svg', '#files')
  assert.equal(await page.evaluate(() => globalThis.ran), undefined)
  await page.locator('summary', { hasText: 'Delete the file' }).click()
  page.once('dialog', (dialog) => dialog.accept())
  await page.send(/^Delete/)
  await page.go('/files?name=kettle.svg')
  assert.match(await page.textContent('#files'), /No files match/)
}

export async function aFileIsSentWithoutScripts(someone, { user }) {
  const page = await someone(user, undefined, { javaScriptEnabled: false })
  await page.go('/files')
  await page.locator('details.upload > summary').click()
  await page.setInputFiles('#file', { name: 'plain.txt', mimeType: 'text/plain', buffer: Buffer.from('sent by a form\n') })
  await page.send('Upload')
  await page.go('/files?name=plain.txt')
  await page.follow('plain.txt', '#files')
  assert.match(await page.textContent('pre.shown'), /sent by a form/)
}

export async function theListOfFilesIsFiltered(someone, { user }) {
  const page = await someone(user)
  await page.go('/files')
  await page.fill('#name', 'map.png')
  await page.waitForURL('**name=map.png**')
  await page.settle()
  assert.ok((await page.locator('#files td.name').count()) >= 1)
  await page.fill('#name', 'no such file')
  await page.waitForFunction(() => /No files match/.test(document.getElementById('files').textContent))
}
