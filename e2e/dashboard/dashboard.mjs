// Checks every page of a server on one store, and carries out the users' tasks there. See ../dashboard.sh.
import { browser, complaints } from './browser.mjs'
import { tell } from './figures.mjs'
import { flows } from './flows.mjs'
import { selfcheck } from './selfcheck.mjs'
import { walk } from './walk.mjs'

const { SEEDED, STORE, LOOK } = process.env
const seeded = JSON.parse(SEEDED)

if (STORE === 'small' && !LOOK && !process.env.ONLY) await selfcheck(seeded)
// in short, the hostile one has it all
if (!LOOK && !process.env.ONLY && !(process.env.SHORT && STORE === 'small')) await walk(seeded)
await flows(seeded)
tell()
await browser.close()
if (complaints.length > 0) {
  console.error(`${STORE}: ${complaints.length} complaints`)
  process.exit(1)
}
console.log(`${STORE}: nothing is wrong`)
