// An external identity provider (npm oidc-provider), and a browser that signs in with it. See provider.sh.
//
//   node provider.mjs provider               listens on a free port of this machine and prints its issuer
//   node provider.mjs plain URL PASSWORD     signs users in at a server without further requirements
//   node provider.mjs strong URL             signs a user in at a server that requires a second factor
//   node provider.mjs down URL PASSWORD      tries a server whose provider is down
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const password = 'correct at the provider'
const secondFactor = '123456'
const people = {
  nina: { email: 'nina@example.com', email_verified: true, preferred_username: 'nina' },
  mallory: { email: 'mallory@example.com', email_verified: false, preferred_username: 'mallory' },
  otto: { email: 'otto@elsewhere.example', email_verified: true, preferred_username: 'otto' },
}

async function provider () {
  const found = createRequire(process.cwd() + '/').resolve('oidc-provider')
  const { default: Provider, interactionPolicy } = await import(pathToFileURL(found))
  const policy = interactionPolicy.base()
  policy.get('consent').checks.remove('native_client_prompt') // no consent page: it is the same service
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${server.address().port}`
  const oidc = new Provider(issuer, {
    clients: [{
      client_id: 'souvenir',
      client_secret: 'a secret of 32 characters or more',
      application_type: 'native', // whose redirect URIs on this machine may have any port
      redirect_uris: ['http://127.0.0.1/login/provider/callback'],
    }],
    cookies: { keys: ['a key for tests'] },
    claims: { openid: ['sub', 'acr', 'amr'], profile: ['preferred_username'], email: ['email', 'email_verified'] },
    acrValues: ['urn:example:password', 'urn:example:mfa'],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { policy, url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
    loadExistingGrant: async ctx => {
      const grant = new ctx.oidc.provider.Grant(
        { clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  const answer = oidc.callback()
  server.on('request', async (request, response) => {
    if (!request.url.startsWith('/interaction/')) return answer(request, response)
    try {
      await oidc.interactionDetails(request, response)
      if (request.method === 'GET') {
        response.setHeader('Content-Type', 'text/html')
        return response.end(
          `<form method="post" action="${request.url}"><input name="name"><input name="password" type="password"><input name="factor"></form>`)
      }
      let body = ''
      for await (const chunk of request) body += chunk
      const form = new URLSearchParams(body)
      if (!people[form.get('name')] || form.get('password') !== password) {
        return await oidc.interactionFinished(request, response,
          { error: 'access_denied', error_description: 'wrong password' })
      }
      const strong = form.get('factor') === secondFactor
      await oidc.interactionFinished(request, response, {
        login: { accountId: form.get('name'), acr: strong ? 'urn:example:mfa'
          : 'urn:example:password', amr: strong ? ['pwd', 'otp', 'mfa'] : ['pwd'] },
      })
    } catch (error) {
      response.statusCode = 500
      response.end(String(error))
    }
  })
  console.log(issuer)
}

// Browser keeps cookies by host, and follows redirects.
class Browser {
  cookies = new Map()

  async open (address, form) {
    for (let hops = 0; hops < 12; hops++) {
      const at = new URL(address)
      const headers = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
      const own = [...this.cookies.values()].filter(c => c.host === at.host
        && (at.pathname + '/').startsWith(c.path.replace(/\/?$/, '/')))
      if (own.length > 0) headers.Cookie = own.map(c => `${c.name}=${c.value}`).join('; ')
      if (form) Object.assign(headers, { 'Content-Type': 'application/x-www-form-urlencoded', Origin: at.origin })
      const response = await fetch(at, { method: form ? 'POST'
        : 'GET', headers, body: form && new URLSearchParams(form).toString(), redirect: 'manual' })
      for (const line of response.headers.getSetCookie()) this.keep(at.host, line)
      if (response.status < 300 || response.status > 399)
        return { status: response.status, url: at, body: await response.text() }
      await response.arrayBuffer()
      address = new URL(response.headers.get('Location'), at).href
      form = undefined
    }
    throw new Error(`too many redirects at ${address}`)
  }

  keep (host, line) {
    const [pair, ...rest] = line.split(';').map(part => part.trim())
    const name = pair.slice(0, pair.indexOf('='))
    const attribute = which => rest.find(part => part.toLowerCase().startsWith(which + '='))?.slice(which.length + 1)
    const path = attribute('path') ?? '/'
    const ended = attribute('max-age') === '0' || Number(attribute('max-age')) < 0
      || new Date(attribute('expires') ?? '9999-01-01') < new Date()
    if (ended) this.cookies.delete(`${host} ${name} ${path}`)
    else this.cookies.set(`${host} ${name} ${path}`, { host, name, path, value: pair.slice(name.length + 1) })
  }

  // submit fills in the form of a page that has an action.
  submit (page, action, typed) {
    const form = page.body.match(new RegExp(`<form[^>]*action="${action}"[^>]*>[^]*?</form>`))
    assert(form, `the page has no form to ${action}:\n${page.body}`)
    const fields = {}
    for (const [input] of form[0].matchAll(/<input[^>]*>/g)) {
      fields[input.match(/name="([^"]*)"/)[1]] = input.match(/value="([^"]*)"/)?.[1].replaceAll('&#43;', '+')
        .replaceAll('&amp;', '&') ?? ''
    }
    return this.open(new URL(action, page.url), { ...fields, ...typed })
  }

  // at fills in the provider's form.
  at (page, name, factor = '') {
    assert.match(page.url.pathname, /^\/interaction\//, `${page.status} at ${page.url}: ${page.body}`)
    return this.submit(page, page.url.pathname, { name, password, factor })
  }
}

async function plain (url, annas) {
  assert.match((await new Browser().open(`${url}/login`)).body, /Sign in with Example ID/)
  let nina = new Browser()
  let page = await nina.at(await nina.open(`${url}/login/provider?next=%2Fprofile`), 'nina')
  assert.equal(page.url.pathname, '/profile', page.body)
  assert.match(page.body, /nina@example.com/)
  page = await nina.submit(page, '/logout', {})
  page = await nina.open(`${url}/login/provider`) // the provider still knows her
  assert.match(page.body, /Hello, nina/)

  for (const name of ['mallory', 'otto']) {
    const browser = new Browser()
    page = await browser.at(await browser.open(`${url}/login/provider`), name)
    assert.equal(page.status, 403, page.body)
    assert.match(page.body, /not linked to an account here/)
  }
  const wrong = new Browser()
  page = await wrong.open(`${url}/login/provider`)
  page = await wrong.submit(page, page.url.pathname, { name: 'nina', password: 'wrong' })
  assert.equal(page.status, 403, page.body)
  assert.match(page.body, /did not sign you in/)

  const anna = new Browser()
  page = await anna.submit(await anna.open(`${url}/login?next=%2Fprofile`), '/login',
    { username: 'anna', password: annas })
  page = await anna.at(await anna.submit(page, '/profile/identities', { password: annas }), 'otto')
  assert.match(page.body, /Account linked/)
  const elsewhere = new Browser()
  page = await elsewhere.at(await elsewhere.open(`${url}/login/provider`), 'otto')
  assert.match(page.body, /Hello, anna/)
  page = await anna.submit(page = await anna.open(`${url}/profile`), '/profile/identities/end', {})
  assert.match(page.body, /You can no longer sign in with it/)
  const after = new Browser()
  page = await after.at(await after.open(`${url}/login/provider`), 'otto')
  assert.equal(page.status, 403, page.body)
}

async function strong (url) {
  const nina = new Browser()
  let page = await nina.at(await nina.open(`${url}/login/provider?next=%2Fprofile`), 'nina')
  assert.equal(page.status, 403, page.body)
  assert.match(page.body, /stronger sign-in at Example ID/)
  assert.equal((await nina.open(`${url}/profile`)).url.pathname, '/login')
  const again = page.body.match(/href="(\/login\/provider[^"]*)"/)[1].replaceAll('&amp;', '&')
  page = await nina.at(await nina.open(new URL(again, url)), 'nina', secondFactor)
  assert.equal(page.url.pathname, '/profile', page.body)
  assert.match(page.body, /nina@example.com/)
}

async function down (url, annas) {
  const anna = new Browser()
  assert.equal((await anna.open(`${url}/login/provider`)).status, 503)
  const page = await anna.submit(await anna.open(`${url}/login`), '/login', { username: 'anna', password: annas })
  assert.match(page.body, /Hello, anna/)
}

const [what, ...rest] = process.argv.slice(2)
await { provider, plain, strong, down }[what](...rest)
