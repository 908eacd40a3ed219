// A program that calls tools, beside the browser.
const { LISTENING } = process.env

export async function call(token, name, given, agent = 'kettle/1.0') {
  const answer = await fetch(`${LISTENING}/tools/call`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'User-Agent': agent },
    body: JSON.stringify({ name, arguments: given }),
  })
  const body = await answer.json()
  if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${body.error}`)
  return JSON.parse(body.content[0].text)
}
