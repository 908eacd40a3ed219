// Promises of pages apart from tasks: filters in one line, days of the reader, the origin of a setting, and items that
// need attention, files of every kind, and similarity by language.
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
    const day = (offset) => new Intl.DateTimeFormat('sv', { timeZone: timezoneId })
      .format(new Date(Date.now() + offset * 86_400_000))
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
    for (const label of ['Memories per user', 'Past versions per user', 'Text per user', 'Files per user', 'Trash',
      'Calls kept for', 'Backups kept']) {
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
    assert.match((await page.locator('.calls li').first().innerText()).replaceAll(/\s+/g, ' '),
      /could not read a memory not found/)
  }
}

// Whatever text a file has, it is found by what it says, and the hit shows the file and the place.
export async function documentsOfEveryKindAreFoundByWhatTheySay(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const word = how === phone ? 'quince' : 'medlar'
    const files = {
      [`${word}.html`]: ['text/html',
        `<h1>Harvest</h1><script>hidden()</script><p>The ${word} is picked after the first frost.</p>`],
      [`${word}.csv`]: ['text/csv', `tree,shed\n${word},the shed behind the mill\n`],
      [`${word}.json`]: ['application/json', JSON.stringify({ tree: word, grafted: 'by the wheelwright' })],
      [`${word}.go`]: ['text/x-go', `package orchard\n\n// Prune cuts the ${word} in February.\nfunc Prune() {}\n`],
    }
    await page.go('/files')
    await page.locator('details.upload > summary').click()
    await page.setInputFiles('#file',
      Object.entries(files).map(([name, [mimeType, text]]) => ({ name, mimeType, buffer: Buffer.from(text) })))
    const send = page.locator('main').getByRole('button', { name: 'Upload' })
    if (await send.isVisible()) await send.click()
    await page.waitForFunction((names) =>
      names.every((name) => document.getElementById('files').textContent.includes(name)), Object.keys(files))
    for (const [name, query, hidden] of [[`${word}.html`, `${word} picked after frost`, /hidden\(\)/],
      [`${word}.csv`, `${word} shed behind the mill`],
      [`${word}.json`, `${word} grafted by the wheelwright`], [`${word}.go`, `prune cuts the ${word} in February`]]) {
      const hit = page.locator('section[aria-labelledby=documents] p', { hasText: name })
      for (let tries = 0; tries < 40; tries++) { // files are read in the background
        await page.go(`/memories?q=${encodeURIComponent(query)}`)
        if (await hit.count() > 0) break
        await page.waitForTimeout(500)
      }
      const shown = (await hit.first().innerText()).replaceAll(/\s+/g, ' ')
      assert.match(shown, new RegExp(word), `${name} is shown as ${shown}`)
      assert.match(await hit.first().locator('.meta').innerText(), /^(Harvest|grafted|tree|(line|row) \d+)/,
        `no place in ${shown}`)
      if (hidden) assert.doesNotMatch(shown, hidden)
    }
    await look(page, 'files found by what they say', { touch: how === phone })
  }
}

// In each language, what says the same is similar, and what only shares the language is not.
export async function similarityIsCalibratedByLanguage(someone, { user, token }) {
  const said = {
    english: ['The ferry to the island leaves at nine in the morning.',
      'At nine in the morning the ferry leaves for the island.', 'Otto is allergic to walnuts.',
        'The boiler was serviced in March.'],
    german: ['Die Fähre zur Insel fährt um neun Uhr morgens ab.', 'Um neun Uhr morgens fährt die Fähre zur Insel ab.',
      'Otto verträgt keine Walnüsse.', 'Der Heizkessel wurde im März gewartet.'],
    chinese: ['去岛上的渡轮早上九点出发。', '早上九点渡轮出发去岛上。', '奥托对核桃过敏。', '锅炉在三月份检修过。'],
  }
  for (const [language, texts] of Object.entries(said)) {
    for (const content of texts)
      await call(token, 'memory', { action: 'store', content, tags: ['calibrated', language] })
  }
  for (const how of looks) {
    const page = await someone(user, how)
    for (const [language, texts] of Object.entries(said)) {
      await page.go(`/graph?tag=${language}&show=list`)
      const similar = {}
      for (const row of await page.locator('table.connections tbody tr').all())
        similar[(await row.locator('td').first().innerText()).trim()] =
          Number(await row.locator('td').last().innerText())
      assert.deepEqual(texts.map((text) => similar[text]), [1, 1, 0, 0], `${language}: ${JSON.stringify(similar)}`)
    }
    await look(page, 'the table of the graph', { touch: how === phone })
  }
}
