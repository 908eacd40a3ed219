// Tokens, OAuth clients, settings, backup, users and invitations.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { call } from '../client.mjs'
import { patience, signIn } from '../browser.mjs'

const accept = (page) => page.once('dialog', (dialog) => dialog.accept())
const refuse = (page) => page.once('dialog', (dialog) => dialog.dismiss())

export async function aTokenIsMadeUsedAndEnded(someone, { user, project }) {
  const page = await someone(user)
  await page.go('/tokens')
  await page.locator('main form[action$="/tokens"] input[name=name]').fill('kitchen')
  await page.check('[name=access][value=read]')
  await page.locator('label', { hasText: 'The atlas' }).locator('input').check()
  await page.send('Create token')
  const token = (await page.textContent('#made-token')).trim()
  assert.match(token, /^mcp_/)
  await call(token, 'memory', { action: 'search', query: 'tiles', filter: { project_id: project } })
  await page.go('/tokens')
  assert.ok(!(await page.content()).includes(token), 'the token is shown again')
  refuse(page)
  await page.send('Revoke kitchen')
  await call(token, 'memory', { action: 'search', query: 'tiles', filter: { project_id: project } })
  accept(page)
  await page.send('Revoke kitchen')
  assert.match(await page.notice(), /Token revoked/)
  await assert.rejects(call(token, 'memory', { action: 'search', query: 'tiles' }), /401/)
}

export async function aClientOfOnesOwnIsMadeRenewedAndDeactivated(someone, { user }) {
  const page = await someone(user)
  await page.go('/clients')
  await page.locator('main form[action$="/clients"] input[name=name]').fill('Toaster')
  await page.fill('#redirect_uris', 'ftp://toaster.example/')
  page.expected = [400]
  await page.send('Create client')
  assert.match(await page.textContent('.wrong, .problem'), /ftp/)
  await page.fill('#redirect_uris', 'https://toaster.example/callback')
  await page.send('Create client')
  const first = (await page.textContent('#made-secret')).trim()
  accept(page)
  await page.click('summary[aria-label="Change Toaster"]')
  await page.send('New secret')
  assert.notEqual((await page.textContent('#made-secret')).trim(), first)
  await page.go('/clients')
  accept(page)
  await page.click('summary[aria-label="Change Toaster"]')
  await page.send('Deactivate')
  assert.match(await page.locator('li', { hasText: 'Toaster' }).first().textContent(), /deactivated/)
}

export async function preferencesAreSetAndRemoved(someone, { user }) {
  const page = await someone(user)
  await page.go('/settings')
  await page.click('summary:has-text("Set a preference")')
  await page.locator('main details[open] input:not([type=hidden])').first().fill('tea')
  await page.locator('main details[open] :is(input:not([type=hidden]), textarea)').nth(1).fill('green')
  await page.send('Save')
  assert.match(await page.main(), /tea/)
  await page.send('Remove tea')
  await page.go('/settings')
  assert.ok(!(await page.locator('h3').allTextContents()).includes('tea'))
  await page.click('summary:has-text("Change all of them")')
  await page.fill('#whole', '{broken')
  page.expected = [400]
  await page.send('Replace all')
  assert.ok(await page.locator('#whole-wrong').isVisible())
  assert.match(await page.inputValue('#whole'), /\{broken/)
}

export async function aBackupIsDownloaded(someone, { user }) {
  const page = await someone(user)
  await page.go('/backup')
  const [download] = await Promise.all(
    [page.waitForEvent('download'), page.locator('main').getByRole('button', { name: /^Download/ }).click()])
  const path = await download.path()
  assert.equal(fs.readFileSync(path).subarray(0, 15).toString(), 'SQLite format 3')
}

export async function theFileIsChecked(someone, { user }) {
  const page = await someone(user)
  await page.go('/backup')
  await page.send('Check')
  await page.waitForFunction(() => /No problems found/.test(document.querySelector('main').textContent), null,
    { timeout: 30_000 * patience })
}

export async function somebodyIsInvitedComesAndIsDisabled(someone, { user }) {
  const page = await someone(user)
  await page.go('/invitations')
  await page.fill('main [name=note]', 'Emil, from the harbour')
  await page.send('Create link')
  const link = (await page.textContent('main code')).trim()
  const emil = await someone(null)
  await emil.go(new URL(link).pathname + new URL(link).search)
  await emil.fill('[name=username]', 'emil')
  await emil.fill('[name=password]', 'nine blue kettles')
  await emil.send('Create account')
  assert.match(await emil.heading(), /Welcome, emil/)
  await emil.go('/')
  assert.match(await emil.main(), /No memories yet/)
  await page.go('/users')
  await page.locator('li', { hasText: 'emil' }).locator('summary').first().click()
  accept(page)
  await page.locator('li', { hasText: 'emil' }).getByRole('button', { name: /Disable/ }).click()
  await page.settle()
  assert.match(await page.notice(), /disabled/)
  await emil.go('/profile')
  assert.equal(await emil.heading(), 'Sign in')
}

export async function aPasswordIsChanged(someone, { other }) {
  const page = await someone(null)
  await signIn(page, other)
  await page.go('/profile')
  await page.fill('[name=old]', 'a wrong password')
  await page.fill('[name=new]', 'ten red teapots')
  page.expected = [400, 401, 403]
  await page.send('Change the password')
  assert.match(await page.textContent('.wrong'), /Old password/)
  await page.fill('[name=old]', 'nine blue kettles')
  await page.fill('[name=new]', 'ten red teapots')
  await page.send('Change the password')
  assert.match(await page.notice(), /changed/)
  await page.fill('[name=old]', 'ten red teapots')
  await page.fill('[name=new]', 'nine blue kettles')
  await page.send('Change the password')
  assert.match(await page.notice(), /changed/)
}
