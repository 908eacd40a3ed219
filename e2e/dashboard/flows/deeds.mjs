// The activity of clients and the trash: read, paused, erased; and the changes that admins make to accounts.
import assert from 'node:assert/strict'
import { phone, site } from '../browser.mjs'
import { look } from '../inspect.mjs'

const looks = [undefined, phone] // light and dark

async function call(token, args, name = 'memory') {
  return fetch(`${process.env.LISTENING}/tools/call`, {
    method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name, arguments: args }),
  })
}

export async function aClientIsPausedWhereItsCallsAre(someone, { user, token }) {
  await call(token, { action: 'search', tags: ['of no memory'] })
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/activity')
    assert.match(await page.main(), /without hits/)
    await look(page, 'activity', { touch: how === phone })
    await page.follow('By client')
    await look(page, 'activity by client', { touch: how === phone })
    await page.locator('.uses a').first().click()
    await page.settle()
    await look(page, 'the activity of a client', { touch: how === phone })
    await page.send('Pause')
    assert.match(await page.notice(), /Paused/)
    assert.equal((await call(token, { action: 'search', query: 'x' })).status, 403)
    await page.send('Resume')
    assert.match(await page.notice(), /Resumed/)
    assert.equal((await call(token, { action: 'search', query: 'x' })).status, 200)
  }
}

export async function whatIsErasedIsNamedAndAskedFor(someone, { user, token }) {
  for (const how of looks) {
    const { content } = await (await call(token, { action: 'store', content: 'A note to throw away.' })).json()
      .then((answer) => ({ content: JSON.parse(answer.content?.[0]?.text ?? '{}'), ...answer }))
    const stored = content.id ? content : JSON.parse(content[0].text)
    await call(token, { action: 'delete', id: stored.id })
    const page = await someone(user, how)
    await page.go('/trash')
    assert.match(await page.main(), /A note to throw away\./)
    await look(page, 'trash', { touch: how === phone })
    await page.follow('Memories', 'main')
    await page.getByRole('button', { name: 'Erase A note to throw away.' }).first().click()
    await page.settle()
    assert.match(await page.main(), /Erase “A note to throw away.” permanently\?/)
    await look(page, 'erasing', { touch: how === phone })
    await page.send('Erase')
    assert.match(await page.notice(), /Erased permanently/)
  }
}

export async function anAdminIsAskedBeforeAnAccountIsDeleted(someone, { user, other }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const open = async () => {
      await page.go('/users')
      await page.locator('li.card', { hasText: other }).locator('summary').click()
      return page.locator('li.card', { hasText: other })
    }
    assert.match(await (await open()).innerText(), /last seen|not seen yet/)
    await (await open()).getByRole('button', { name: 'Delete' }).click()
    await page.settle()
    assert.match(await page.main(), /all their data/)
    await look(page, 'deleting an account', { touch: how === phone })
    await page.follow('Cancel')
    assert.equal(new URL(page.url()).href, `${site}/users`)
  }
}

// A user signs up by a link, is listed, gets another password, and is deleted; the last page is a receipt.
export async function anAdminResetsAPasswordAndDeletesAnAccount(someone, { user }) {
  for (const how of looks) {
    const [page, name] = [await someone(user, how), how ? 'paula' : 'pavel']
    await page.go('/invitations')
    await page.send(/Create/)
    const link = new URL((await page.textContent('#link')).trim())
    const theirs = await someone(null, how)
    await theirs.go(link.pathname + link.search)
    await theirs.fill('[name=username]', name)
    await theirs.fill('[name=password]', 'nine blue kettles')
    await theirs.send('Create account')
    await theirs.go('/profile')
    const card = page.locator('#users > li', { hasText: name })
    await page.go(`/users?search=${name}`)
    assert.match(await card.innerText(), /last seen/)
    await card.locator('summary').click()
    await page.send('Reset password', '#users')
    const fresh = (await page.textContent('#value')).trim()
    await look(page, 'a new password', { touch: how === phone })
    await theirs.go('/profile')
    assert.equal(await theirs.heading(), 'Sign in', 'who has lost the password is still signed in')
    for (const [password, heading] of [['nine blue kettles', 'Sign in'], [fresh, 'Profile']]) {
      theirs.expected = [401]
      await theirs.fill('main [name=username]', name)
      await theirs.fill('main [name=password]', password)
      await theirs.keyboard.press('Enter')
      await theirs.waitForFunction((heading) => document.querySelector('h1').textContent.trim() === heading, heading)
      await theirs.settle()
    }
    await page.go(`/users?search=${name}`)
    await card.locator('summary').click()
    await page.send('Delete', '#users')
    await page.send('Delete')
    assert.match(await page.main(), /Receipt/)
    await page.click('summary:has-text("Signed receipt")')
    assert.match(await page.textContent('#signed'), /souvenir-receipt-1/)
    await look(page, 'a receipt', { touch: how === phone })
    await theirs.go('/profile')
    assert.equal(await theirs.heading(), 'Sign in')
    await page.go(`/users?search=${name}`)
    assert.match(await page.main(), /No users match/)
  }
}
