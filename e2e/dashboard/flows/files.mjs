// Files: dropped, viewed, described, linked to a memory, deleted; and sent by a form without scripts.
import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import { phone } from '../browser.mjs'
import { call } from '../client.mjs'
import { look } from '../inspect.mjs'

// dropped drops files onto the page, as from another window.
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
  await dropped(page, [{ name: 'kettle.md', type: 'text/markdown', text: '# Kettle\n\n**blue** one\n' },
    { name: 'kettle.svg', type: 'image/svg+xml', text: script }])
  await page.waitForFunction(() => document.querySelectorAll('#files td.name a').length > 0
    && /kettle\.md/.test(document.getElementById('files').textContent)
      && /kettle\.svg/.test(document.getElementById('files').textContent))
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
  await page.setInputFiles('#file',
    { name: 'plain.txt', mimeType: 'text/plain', buffer: Buffer.from('sent by a form\n') })
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

// zip makes an archive of one entry.
function zip(name, text) {
  const [plain, packed] = [Buffer.from(text), zlib.deflateRawSync(text)]
  const common = Buffer.alloc(26) // the part that both headers of the entry share
  common.writeUInt16LE(20, 0)
  common.writeUInt16LE(8, 4)
  common.writeUInt32LE(zlib.crc32(plain), 10)
  common.writeUInt32LE(packed.length, 14)
  common.writeUInt32LE(plain.length, 18)
  common.writeUInt16LE(name.length, 22)
  const entry = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed])
  const listed = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, Buffer.alloc(14), Buffer.from(name)])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(listed.length, 12)
  end.writeUInt32LE(entry.length, 16)
  return Buffer.concat([entry, listed, end])
}

// A hostile file is kept, its page shows the text that was read, and other files are found by their texts.
export async function hostileFilesHarmNobody(someone, { user }) {
  const paragraph = '<w:p><w:r><w:t>weight upon weight </w:t></w:r></w:p>'
  const heavy =
    `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${paragraph.repeat(1e6)}</w:body></w:document>`
  const [header, catalog, pages] = ['%PDF-1.4\n', '1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n',
    '2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>endobj\n']
  const at = (offset) => `${String(offset).padStart(10, '0')} 00000 n \n`
  const loop =
    `${header}${catalog}${pages}xref\n0 3\n0000000000 65535 f \n${at(header.length)}${at(header.length + catalog.length)}trailer<</Size 3/Root 1 0 R>>\nstartxref\n${header.length + catalog.length + pages.length}\n%%EOF\n`
  for (const how of [undefined, phone]) {
    const [page, word] = [await someone(user, how), how ? 'phone' : 'desk']
    await page.go('/files')
    await page.locator('details.upload > summary').click()
    await page.setInputFiles('#file', [
      { name: `heavy-${word}.docx`, mimeType: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
        buffer: zip('word/document.xml', heavy) },
      { name: `loop-${word}.pdf`, mimeType: 'application/pdf', buffer: Buffer.from(loop) },
      { name: `broken-${word}.pdf`, mimeType: 'application/pdf', buffer: Buffer.from(loop.slice(0, 150)) },
      { name: `honest-${word}.md`, mimeType: 'text/markdown', buffer: Buffer.from(`The ${word} keeps a pelican.\n`) },
    ])
    const send = page.locator('main').getByRole('button', { name: 'Upload' })
    if (await send.isVisible()) await send.click()
    await page.waitForFunction((word) => ['heavy', 'loop', 'broken', 'honest'].every(
      (one) => document.querySelector('#files td.name')?.closest('table').textContent.includes(`${one}-${word}`)), word)
    assert.match(await page.locator('#sending').innerText(),
      new RegExp(
        `honest-${word}\\.md: stored; (found by its text: 2\\d characters in 1 passage|its text is being read)`))
    for (const [name, said] of [[`heavy-${word}.docx`, /Found by its text: .* the beginning only/],
      [`loop-${word}.pdf`, /Not found by its text: its pages have no text/],
      [`broken-${word}.pdf`, /Not found by its text: it could not be read: it is not a PDF file, or a broken one/]]) {
      await page.go(`/files?name=${name}`)
      await page.follow(name, '#files')
      for (let i = 0; i < 60 && /Not read yet/.test(await page.main()); i++) {
        await page.waitForTimeout(250)
        await page.reload()
      }
      assert.match((await page.locator('section[aria-labelledby=known]').innerText()).replaceAll(/\s+/g, ' '), said)
      await look(page, `the page of ${name}`, { touch: how === phone })
    }
    await page.go(`/memories?q=${word}+keeps+pelican`)
    await page.waitForFunction((word) => document.querySelector('main').textContent.includes(`honest-${word}.md`), word)
  }
}
