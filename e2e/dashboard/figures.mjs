// The bytes loaded, and the time that the server takes. All figures are printed. A page that loads too much fails; of
// times, only those far above the limit, since machines may be busy.
import { complain, go } from './browser.mjs'

const { STORE, SHORT } = process.env
const most = { bytes: 100_000, milliseconds: 50 }
const pages = new Map() // by pattern

export const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)]

// measure notes the files that the page just opened has loaded; on a large store it requests the page a few more times.
export async function measure(page, path, pattern) {
  let bytes = 0
  for (const request of page.transfers) {
    const sizes = await request.sizes().catch(() => null)
    bytes += (sizes?.responseBodySize ?? 0) + (sizes?.responseHeadersSize ?? 0)
  }
  const times = serverTimes(page)
  for (let i = 0; i < (STORE === 'large' ? 6 : 0); i++) {
    await go(page, path)
    times.push(...serverTimes(page))
  }
  const slowest = [...grouped(times)].map(([address, all]) => [address, median(all)]).sort((a, b) => b[1] - a[1])[0]
  const before = pages.get(pattern)
  if (!before || bytes > before.bytes || slowest?.[1] > before.took)
    pages.set(pattern, { path, bytes: Math.max(bytes, before?.bytes ?? 0),
      took: Math.max(slowest?.[1] ?? 0, before?.took ?? 0), of: slowest?.[0] })
}

function grouped(times) {
  const all = new Map()
  for (const [address, took] of times) all.set(address, [...(all.get(address) ?? []), took])
  return all
}

// serverTimes is how long the server took for each address that the page has loaded, in milliseconds, files of the
// program aside.
export function serverTimes(page) {
  return page.transfers.filter((request) => !/\/static\//.test(request.url()) && !request.url().startsWith('data:'))
    .map((request) => [new URL(request.url()).pathname, request.timing().responseStart - request.timing().requestStart])
    .filter(([, took]) => took >= 0)
}

const further = []
// figure records a figure and its limit.
export function figure(name, value, unit, most) {
  further.push([name, value, unit, most])
  if (value > 10 * most) complain(`${STORE}: ${name}: ${value.toFixed(1)} ${unit}, where ${most} are wanted`)
}

// tell prints the table of figures.
export function tell() {
  if (SHORT && !['small', 'large'].includes(STORE)) return
  console.log(`  ${'page'.padEnd(44)} ${'KB'.padStart(8)} ${'ms on the server'.padStart(18)}`)
  for (const [pattern, { bytes, took, of }] of [...pages].sort()) {
    const over = bytes > most.bytes || (STORE === 'large' && took > most.milliseconds)
    console.log(
      `  ${pattern.padEnd(44)} ${(bytes / 1000).toFixed(1).padStart(8)} ${took.toFixed(1).padStart(18)}${over ? `  over${took > most.milliseconds ? ` (${of})` : ''}` : ''}`)
    if (bytes > most.bytes) complain(`${STORE} ${pattern} loads ${bytes} bytes`)
    if (took > 10 * most.milliseconds) complain(`${STORE} ${pattern} takes the server ${took.toFixed(0)} ms`)
  }
  for (const [name, value, unit, wanted] of further)
    console.log(
      `  ${name.padEnd(44)} ${value.toFixed(1).padStart(8)} ${unit}${value > wanted ? `  over ${wanted}` : ''}`)
}
