// Everything is exported, and the export is previewed and imported again.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { patience } from '../browser.mjs'

export async function anExportIsBroughtInAgain(someone, { user }) {
  const page = await someone(user)
  await page.go('/transfer')
  const [download] = await Promise.all(
    [page.waitForEvent('download'), page.locator('main').getByRole('button', { name: 'Download the export' }).click()])
  const lines = fs.readFileSync(await download.path(), 'utf8').trim().split('\n')
  assert.ok(lines.length > 40, `only ${lines.length} lines`)
  for (const line of lines) JSON.parse(line)
  const file = { name: 'export.jsonl', mimeType: 'application/x-ndjson', buffer: Buffer.from(lines.join('\n') + '\n') }
  await page.go('/transfer')
  await page.setInputFiles('#file', file)
  await page.check('[name=look]')
  await page.send('Import')
  await page.waitForFunction(() => /complete and can be imported/.test(document.querySelector('main').textContent),
    null, { timeout: 30_000 * patience })
  await page.go('/transfer')
  await page.setInputFiles('#file', file)
  if (await page.isChecked('[name=look]')) await page.uncheck('[name=look]')
  await page.send('Import')
  await page.waitForFunction(() => /Unchanged/.test(document.querySelector('main').textContent), null,
    { timeout: 30_000 * patience })
}
