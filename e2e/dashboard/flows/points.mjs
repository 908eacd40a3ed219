// Promises of pages apart from tasks: filters in one line, days of the reader, the origin of a setting, and items that
// need attention.
import assert from 'node:assert/strict'
import { call } from '../client.mjs'
import { phone, wide } from '../browser.mjs'
import { look } from '../inspect.mjs'

const looks = [wide, phone] // light and dark

export async function filtersAreOneLineAndChipsSayWhatIsFiltered(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/memories?event_type=decision&tag=tiles')
    assert.equal(await page.locator('details.filters').getAttribute('open'), null)
    const line = await page.locator('.memory-filters').boundingBox()
    assert.ok(line.height <= 60, `the filters are ${line.height} pixels high`)
    const chips = page.locator('.chips').first()
    assert.match((await chips.innerText()).replaceAll(/\s+/g, ' '), /decision.*tiles|tiles.*decision/)
    await chips.getByRole('link', { name: /decision/ }).first().click()
    await page.settle()
    assert.doesNotMatch(page.url(), /event_type=decision/)
    assert.match(page.url(), /tag=tiles/)
  }
}

// Days in filters are in the reader's time zone, which may be a day ahead of others.
export async function daysOfMemoriesAreThoseOfTheReader(someone, { user, token }) {
  await call(token, 'memory', { action: 'store', content: 'A memory of this very day.', tags: ['this-day'] })
  for (const [how, timezoneId] of [[wide, 'Pacific/Kiritimati'], [phone, 'Pacific/Pago_Pago']]) { // 25 hours apart
    const page = await someone(user, { ...how, timezoneId })
    await page.go('/activity')
    await page.waitForFunction((zone) => document.querySelector('#activity')?.dataset.zone === zone, timezoneId)
    const day = (offset) => new Intl.DateTimeFormat('sv', { timeZone: timezoneId }).format(new Date(Date.now() + offset * 86_400_000))
    await page.go(`/memories?tag=this-day&created_from=${day(0)}&created_to=${day(0)}`)
    assert.match(await page.innerText('#results'), /this very day/, `not found on ${day(0)} in ${timezoneId}`)
    for (const other of [-1, 1]) {
      await page.go(`/memories?tag=this-day&created_from=${day(other)}&created_to=${day(other)}`)
      assert.match(await page.innerText('#results'), /No results/, `found on ${day(other)} in ${timezoneId}`)
    }
  }
}

export async function quotasAndRetentionSayWhatSetThem(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/settings')
    const rows = page.locator('section[aria-labelledby=limits] li')
    for (const label of ['Memories per user', 'Past versions per user', 'Text per user', 'Files per user', 'Trash', 'Calls kept for', 'Backups kept']) {
      const row = rows.filter({ has: page.getByRole('heading', { name: label, exact: true }) })
      assert.match(await row.innerText(), /the default|changed here|set by --/, label)
    }
    const trash = rows.filter({ has: page.getByRole('heading', { name: 'Trash', exact: true }) })
    const before = (await trash.locator('.meta').innerText()).trim()
    await trash.locator('[name=value]').fill('60')
    await page.send('Change Trash')
    assert.match(await trash.innerText(), /60 days · changed here/)
    await look(page, 'the settings, with another time in the trash', { touch: how === phone })
    await page.send('Undo')
    assert.equal((await trash.locator('.meta').innerText()).trim(), before)
  }
}

export async function failedCallsNeedAttentionAndLeadToThemselves(someone, { user, token }) {
  await assert.rejects(call(token, 'memory', { action: 'retrieve', id: 'of-no-memory' }, 'lantern/1.0'), /404/)
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/')
    const item = page.locator('#attention li', { hasText: /calls? failed in the last 7 days/ })
    await item.getByRole('link').click()
    await page.settle()
    assert.match(page.url(), /outcome=error/)
    assert.match((await page.locator('.calls li').first().innerText()).replaceAll(/\s+/g, ' '), /could not read a memory not found/)
  }
}
