// The administrators' pages: the audit log, and the settings of the server.
import assert from 'node:assert/strict'
import { phone } from '../browser.mjs'
import { look } from '../inspect.mjs'

const looks = [undefined, phone]

export async function whatAnAdminDidIsInTheAuditLogWhichIsVerified(someone, { user, other }) {
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/invitations')
    await page.send(/Create/)
    await page.go('/audit')
    const first = page.locator('section[aria-labelledby=entries] li').first()
    assert.match(await first.innerText(), new RegExp(`^${user} created a link for a new user`))
    const at = first.locator('time')
    const local = await page.evaluate(
      (at) => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at)),
        await at.getAttribute('datetime'))
    assert.equal(await at.textContent(), local, 'the time is not that of the browser')
    await page.follow('Links for new users', 'nav.chips')
    assert.ok((await page.locator('section[aria-labelledby=entries] li').count()) > 0)
    await page.go('/audit')
    await page.send('Verify')
    assert.match(await page.main(), /The log is intact/)
    const anchor = (await page.textContent('#anchor-now')).trim()
    assert.match(anchor, /^\d+:[0-9a-f]{64}$/)
    await look(page, 'the audit log, checked', { touch: how === phone })
    await page.click('summary:has-text("Compare with an anchor")')
    await page.fill('[name=anchor]', anchor.replace(/.$/, (last) => (last === '0' ? '1' : '0')))
    await page.send('Verify')
    assert.match(await page.main(), /The log was altered/)
    await look(page, 'the audit log, with a wrong anchor', { touch: how === phone })
  }
  const page = await someone(other)
  await page.go('/')
  assert.equal(await page.locator('.menu').getByRole('link', { name: 'Audit log' }).count(), 0)
  await page.go('/audit', 403)
  assert.match(await page.main(), /admin/i)
}

export async function aSettingOfTheServerIsChangedAndTakenBack(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/settings')
    const row = () => page.locator('section[aria-labelledby=limits] li', { hasText: 'Memory for the search index' })
    assert.match(await row().innerText(), /the default/)
    await row().locator('[name=value]').fill('64')
    await page.send('Change Memory for the search index')
    assert.match(await page.notice(), /64\.0 MiB, instead of/)
    assert.match(await row().innerText(), /64\.0 MiB · changed here/)
    await look(page, 'the settings, changed', { touch: how === phone })
    await page.send('Undo')
    assert.match(await row().innerText(), /the default/)
    // backups are made where the flag says, and as often as an admin says
    assert.match(await page.main(), /each verified by restoring it · set by --backup-to/)
    const hours = () => page.locator('section[aria-labelledby=limits] li', { hasText: 'Hours between backups' })
    await hours().locator('[name=value]').fill('48')
    await page.send('Change Hours between backups')
    assert.match(await hours().innerText(), /48 hours · changed here; the default is 24 hours/)
    await page.send('Undo')
    assert.match(await hours().innerText(), /24 hours · the default/)
    await row().locator('[name=value]').fill('0')
    page.expected = [400]
    await page.send('Change Memory for the search index')
    assert.match(await row().innerText(), /give a whole number from 1 to/)
    assert.match(await page.main(), /--embedder changes it/)
  }
}
