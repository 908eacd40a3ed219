// The graph and the map: draws memories with sigma, colours and finds them, and shows the chosen one beside the
// picture.
import { clustersOf, label, list } from './clusters.js'
import { naming, unpacked } from './drawing.js'
import { shortened, titling } from './titles.js'
import { picking } from './picking.js'

let place = null // the element with the picture
const source = location.pathname + '/data' + location.search
const library = import(document.querySelector('link[rel=modulepreload]').href)
const element = (id) => document.getElementById(id)
const numbers = new Intl.NumberFormat('en')
const count = (n, one, many) => `${numbers.format(n)} ${n === 1 ? one : many}`
const still = matchMedia('(prefers-reduced-motion: reduce)')
const largest = 7 // groups that have a colour of their own

const state = {
  data: null, // the data from the server
  near: [], // of each memory: [other, similarity in hundredths or 0 for a link, whether it comes in]
  groupOf: [], groups: [], // by the property that memories are coloured by
  hidden: new Set(), // groups that were switched off
  chosen: -1, lit: null, // a memory, and it with its neighbours
  found: null, // memories that a search found; null: no search
  colours: null, sigma: null, graph: null,
  cluster: null, clusters: [], folded: new Set(), // memories that are not drawn, as nothing connects them
  since: 0, until: 0, // days of the slider
  pick: null, // the memories selected to be changed
  titles: null, // those of memories, drawn frame by frame
  names: null, // ids and first lines of memories, as far as they are known
}

// seen returns the places of memories, titles, names of clusters and buttons in the stage, in pixels.
export function seen() {
  const { left, top } = element('stage').getBoundingClientRect()
  const names = [...document.querySelectorAll('#cluster-labels span')].map(
    (one) => ({ text: one.textContent, box: one.getBoundingClientRect() }))
    .map(({ text, box }) =>
      ({ text, left: box.left - left, right: box.right - left, top: box.top - top, bottom: box.bottom - top }))
  return { points: everyOne().map(placeOf).filter(Boolean), titles: state.titles.boxes(), names, buttons: buttons() }
}

// fetched requests data from the server; a message of the server becomes the error.
async function fetched(address, signal) {
  const answer = await fetch(address, { headers: { 'HX-Request': 'true' }, signal })
  const signIn = answer.headers.get('HX-Redirect')
  if (signIn) {
    location.href = signIn
    return new Promise(() => {}) // the page ends here
  }
  if (answer.ok) return answer.headers.get('Content-Type') === 'application/json' ? answer.json() : answer.text()
  const text = new DOMParser().parseFromString(await answer.text(), 'text/html').body.textContent.trim()
  throw new Error(text || 'The server could not answer.')
}

// everyOne returns the numbers of all memories.
const everyOne = () => Array.from({ length: state.data.memories }, (_, i) => i)

// addressOf is an address beside the data of the picture, with its filters and more parameters.
function addressOf(path, more) {
  const address = new URL(path, location)
  for (const [name, value] of [...new URLSearchParams(location.search), ...Object.entries(more)])
    address.searchParams.set(name, value)
  return address
}

function problem(error) {
  const p = document.createElement('p')
  p.className = 'problem'
  p.textContent = error instanceof TypeError ? 'The server does not answer. Check your connection, and try again.'
    : error.message
  element('problems').replaceChildren(p)
}

function say(text) {
  element('drawing').textContent = text
  element('drawing').hidden = !text
}

// start requests the data at once, while the rest of the page is on its way.
async function start() {
  const sent = fetched(source)
  sent.catch(() => {}) // reported below
  if (document.readyState === 'loading') await new Promise((ready) => addEventListener('DOMContentLoaded', ready))
  place = element('picture')
  try {
    state.data = unpacked(await sent)
  } catch (error) {
    problem(error)
    say('Nothing here yet.')
    return
  }
  state.names = naming(state.data, (more) => addressOf(place.dataset.names, more), fetched, problem)
  describe()
  if (state.data.memories === 0) {
    say(state.data.unplaced
      ? 'The matching memories have no position yet: they are not embedded yet, or have vectors of their own.'
        : 'No memories match these filters.')
    return
  }
  connect()
  gather()
  readColours()
  group(place.dataset.colour)
  restNear()
  listen()
  state.pick = picking({ all: everyOne, knownIDs: state.names.knownIDs, idsOf: state.names.idsOf, at: placeOf, redraw,
    failed: problem })
  slide()
  if (canDraw()) draw(await library)
  else tellThatItCannot()
  if (state.data.chosen >= 0) choose(state.data.chosen, 'look')
  if (state.data.arranging) setTimeout(arrange, 1500, 0)
}

// gather reads the clusters.
function gather() {
  state.folded = new Set(state.data.folded)
  state.clusters = clustersOf(state.data)
  list(state.clusters, chooseCluster)
}

// arrange requests again places and similarities that were still being computed, and draws them. Newer memories are
// drawn when the page is opened again.
async function arrange(tries) {
  const most = 80
  let data
  try {
    data = unpacked(await fetched(source))
  } catch {
    return // the picture is there, only not at its best
  }
  if (data.arranging && tries < most) return setTimeout(arrange, 1500 + 250 * tries, tries + 1)
  if (data.arranging || data.memories === 0) return
  if (data.version !== state.data.version) return location.reload()
  state.data = data
  connect()
  gather()
  describe()
  state.sigma?.setGraph(filled(new state.graph.constructor()))
}

// slide lets the time slider choose which memories are shown, by the day on which they were stored.
function slide() {
  const days = state.data.day
  const [first, last] = [days.reduce((a, b) => Math.min(a, b)), days.reduce((a, b) => Math.max(a, b))]
  const [since, until] = [element('since'), element('until')]
  const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })
  const named = (day) => date.format(new Date(day * 86_400_000))
  for (const input of [since, until]) [input.min, input.max] = [first, last]
  since.value = first
  until.value = last
  const read = () => {
    state.since = Math.min(since.valueAsNumber, until.valueAsNumber)
    state.until = Math.max(since.valueAsNumber, until.valueAsNumber)
    const shown = days.reduce((sum, day) => sum + (day >= state.since && day <= state.until), 0)
    for (const input of [since, until]) input.setAttribute('aria-valuetext', named(input.valueAsNumber))
    element('times').textContent = `${named(state.since)} to ${named(state.until)}: ${numbers.format(shown)} stored`
  }
  for (const input of [since, until]) {
    input.addEventListener('input', () => {
      read()
      redraw()
    })
  }
  since.closest('fieldset').hidden = first === last
  read()
}

// isShown reports whether a memory is shown: it is drawn, its colour is on, and its day is within the chosen time.
function isShown(i) {
  const { data, since, until } = state
  return !state.folded.has(i) && !state.hidden.has(state.groupOf[i]) && data.day[i] >= since && data.day[i] <= until
}

// placeOf returns where a memory is in the stage, in pixels; null if it is not shown.
function placeOf(i) {
  if (!state.sigma || !isShown(i)) return null
  const radius = state.sigma.scaleSize(state.sigma.getNodeDisplayData(String(i))?.size ?? 0)
  return { ...state.sigma.graphToViewport({ x: state.data.x[i], y: state.data.y[i] }), radius }
}

// buttons returns the boxes of the buttons over the stage, in pixels of the stage.
function buttons() {
  const gap = 4
  const { left, top } = element('stage').getBoundingClientRect()
  return [...element('stage').parentElement.querySelectorAll('.zoom')].map((one) => one.getBoundingClientRect())
    .map((box) =>
      ({ left: box.left - left - gap, right: box.right - left + gap, top: box.top - top - gap,
        bottom: box.bottom - top + gap }))
}

// chooseCluster shows a cluster: its memories, including the folded ones, light up and are listed beside the picture.
function chooseCluster(cluster) {
  choose(-1)
  state.found = new Set(cluster.members)
  state.cluster = cluster
  near(cluster.title, cluster.members.slice(0, 30).map((i) => [i, state.folded.has(i) ? 'not linked' : '']),
    cluster.members.length > 30 ? `And ${numbers.format(cluster.members.length - 30)} more.` : '')
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'small'
  button.textContent = `Select all ${numbers.format(cluster.members.length)}`
  button.addEventListener('click', () => state.pick.add(cluster.members))
  element('near').querySelector('h2').after(button)
  redraw()
  element('panel').focus({ preventScroll: true })
  // on a phone, the list is below the stage
  element('stage').scrollIntoView({ block: 'nearest', behavior: still.matches ? 'auto' : 'smooth' })
  const drawn = cluster.drawn[cluster.drawn.length >> 1]
  if (drawn !== undefined) look(drawn)
}

// describe describes the picture in words.
function describe() {
  const { memories, total, unplaced, edges, warnings, arranging } = state.data
  let text = count(memories, 'memory', 'memories')
  if (total > memories + unplaced) {
    const newest = new URLSearchParams(location.search).get('limit') || place.dataset.kind === 'graph'
    text += ` of ${numbers.format(total)}, ${newest ? 'the newest' : 'a sample'}`
  }
  if (place.dataset.kind === 'graph') {
    let links = 0
    for (let i = 2; i < edges.length; i += 3) if (edges[i] === 0) links++
    const pairs = count(edges.length / 3 - links, 'similar pair', 'similar pairs')
    text += `, with ${count(links, 'link', 'links')} and ${pairs}.`
    const { length } = state.data.folded
    if (length > 0) {
      text += ` ${count(length, 'memory has', 'memories have')} no connections: ` +
        'the numbers after + count them in their clusters.'
    }
  } else {
    text += '. Near means similar; memories that are far apart can still be similar.'
    if (arranging) text += ' Their places are still being computed, and will change in a moment.'
    if (unplaced) text += ` ${count(unplaced, 'memory has', 'memories have')} no position yet.`
  }
  for (const warning of warnings) text += ` ${warning[0].toUpperCase()}${warning.slice(1)}.`
  element('summary').textContent = text
  element('stage').setAttribute('aria-label',
    `${place.dataset.kind === 'graph' ? 'Graph' : 'Map'} of ${count(memories, 'memory', 'memories')}`)
  element('types').replaceChildren(...state.data.types.filter((name) => name !== 'no type')
    .map((name) => new Option(name)))
}

// connect notes the connections of each memory.
function connect() {
  const { edges, shared, words } = state.data
  state.near = everyOne().map(() => [])
  for (let i = 0; i < edges.length; i += 3) {
    const both = [shared[(2 * i) / 3], shared[(2 * i) / 3 + 1]].filter((word) => word >= 0).map((word) => words[word])
      .join(', ')
    state.near[edges[i]].push([edges[i + 1], edges[i + 2], false, both])
    state.near[edges[i + 1]].push([edges[i], edges[i + 2], true, both])
  }
}

// Colours come from the style sheet, so that they follow the reader's choice of light or dark.
function readColours() {
  const style = getComputedStyle(document.documentElement)
  const read = (name) => style.getPropertyValue(name).trim()
  const card = read('--card')
  state.colours = {
    card, text: read('--text'), line: read('--line'), accent: read('--accent'),
    series: Array.from({ length: largest + 1 }, (_, i) => read(`--series-${i + 1}`)),
    dim: mix(read('--soft'), card, 0.75), edge: mix(read('--soft'), card, 0.7), link: mix(read('--accent'), card, 0.35),
      faint: mix(read('--soft'), card, 0.88),
  }
}

function mix(colour, ground, part) {
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16))
  const [a, b] = [channels(colour), channels(ground)]
  return '#' + a.map((value, i) => Math.round(value + (b[i] - value) * part).toString(16).padStart(2, '0')).join('')
}

// group groups the memories by the property that they are coloured by: the largest groups get a colour each, the rest
// share one.
function group(by) {
  const names = { project: state.data.projects, type: state.data.types, collection: state.data.collections }[by]
  const numbersOf = state.data[by]
  const sizes = names.map(() => 0)
  for (const number of numbersOf) sizes[number]++
  const order = sizes.map((_, number) => number).sort((a, b) => sizes[b] - sizes[a] || a - b)
  const own = order.length <= largest + 1 ? order : order.slice(0, largest)
  state.groups = own.map((number) => ({ name: names[number], size: sizes[number] }))
  if (own.length < order.length) {
    const rest = order.slice(own.length)
    state.groups.push({ name: `${rest.length} others`, size: rest.reduce((sum, number) => sum + sizes[number], 0) })
  }
  const groupOfNumber = names.map((_, number) => (own.includes(number) ? own.indexOf(number) : own.length))
  state.groupOf = numbersOf.map((number) => groupOfNumber[number])
  state.hidden.clear()
  element('legend').replaceChildren(...state.groups.map(legendEntry))
}

function legendEntry({ name, size }, number) {
  const button = document.createElement('button')
  button.type = 'button'
  button.setAttribute('aria-pressed', 'true')
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  for (const [key, value] of Object.entries(
    { viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true', class: `series series-${number + 1}` })) svg
      .setAttribute(key, value)
  const dot = document.createElementNS('http://www.w3.org/2000/svg', 'circle')
  for (const [key, value] of Object.entries({ cx: 6, cy: 6, r: 5 })) dot.setAttribute(key, value)
  svg.append(dot)
  const label = document.createElement('span')
  label.textContent = name
  const total = document.createElement('span')
  total.className = 'meta'
  total.textContent = numbers.format(size)
  button.append(svg, label, total)
  button.addEventListener('click', () => {
    if (!state.hidden.delete(number)) state.hidden.add(number)
    button.setAttribute('aria-pressed', String(!state.hidden.has(number)))
    redraw()
  })
  const entry = document.createElement('li')
  entry.append(button)
  return entry
}

function canDraw() {
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('webgl2') ?? canvas.getContext('webgl')
  context?.getExtension('WEBGL_lose_context')?.loseContext()
  return context !== null
}

function tellThatItCannot() {
  say('')
  const note = document.createElement('p')
  note.className = 'note'
  const link = document.createElement('a')
  link.href = place.dataset.words
  link.textContent = 'See the table instead.'
  note.append('The diagram needs WebGL, which this browser does not support. ', link)
  element('stage').replaceWith(note)
  element('keys').remove()
  document.documentElement.dataset.drawn = 'not'
}

// filled puts the memories and edges into an empty graph.
function filled(graph) {
  const { memories, x, y, edges, important } = state.data
  const scale = (memories > 2000 ? 0.6 : memories > 500 ? 0.8
    : 1.15) * Math.min(1, Math.max(0.65, element('stage').clientWidth / 800))
  const isMap = place.dataset.kind === 'map'
  for (let i = 0; i < memories; i++) {
    if (state.folded.has(i)) continue
    const size = isMap ? 3.2 + important[i] * 1.2 : 3 + Math.min(8, 1.5 * Math.sqrt(state.near[i].length))
    graph.addNode(i, { x: x[i], y: y[i], label: '…', size: size * scale })
  }
  for (let i = 0; i < edges.length; i += 3) {
    graph.addDirectedEdgeWithKey(i, edges[i], edges[i + 1], edges[i + 2] ? { type: 'thin', similar: edges[i + 2] }
      : { type: 'arrow', size: 1.6 * scale })
  }
  return state.graph = graph
}

function draw({ Sigma, MultiDirectedGraph, EdgeLineProgram, EdgeArrowProgram }) {
  const graph = filled(new MultiDirectedGraph())
  const isMap = place.dataset.kind === 'map'
  const slow = still.matches
  const titles = state.titles =
    titling(() => everyOne().map((i) => (state.folded.has(i) ? null : placeOf(i))).filter(Boolean), buttons,
      () => state.colours, titleOf)
  const sigma = new Sigma(graph, element('stage'), {
    allowInvalidContainer: true, zIndex: true, stagePadding: 28, minCameraRatio: 0.02, maxCameraRatio: 3,
    hideEdgesOnMove: state.data.edges.length > 9000, hideLabelsOnMove: true, labelDensity: 0.35, labelGridCellSize: 220,
      labelRenderedSizeThreshold: state.clusters.length > 0 ? 14 : isMap ? 5.5 : 7,
    labelFont: getComputedStyle(document.body).fontFamily, labelSize: 12.5, labelWeight: '500',
      labelColor: { color: state.colours.text },
    nodeReducer: reduceNode, edgeReducer: reduceEdge, defaultDrawNodeLabel: titles.draw,
      defaultDrawNodeHover: drawHover,
    edgeProgramClasses: { thin: EdgeLineProgram, arrow: EdgeArrowProgram }, defaultEdgeType: 'thin',
    renderEdgeLabels: true, edgeLabelFont: getComputedStyle(document.body).fontFamily, edgeLabelSize: 11,
      edgeLabelColor: { color: state.colours.text },
    inertiaDuration: slow ? 1 : 200, zoomDuration: slow ? 1 : 250, doubleClickZoomingDuration: slow ? 1 : 200,
  })
  state.sigma = sigma
  sigma.on('clickNode', ({ node, event }) => {
    if (event.original.shiftKey || event.original.ctrlKey || event.original.metaKey) state.pick.toggle([Number(node)])
    else choose(Number(node), 'seen')
  })
  sigma.on('beforeRender', titles.clear)
  sigma.on('afterRender', () => label(state.clusters, placeOf, chooseCluster, [...titles.boxes(), ...buttons()]))
  requestAnimationFrame(() => sigma.scheduleRender()) // it has been drawn once already
  sigma.on('clickStage', () => choose(-1))
  sigma.on('enterNode', () => element('stage').classList.add('over'))
  sigma.on('leaveNode', () => element('stage').classList.remove('over'))
  say('')
  requestAnimationFrame(() => requestAnimationFrame(() => {
    performance.mark('drawn')
    document.documentElement.dataset.drawn = String(Math.round(performance.now()))
  }))
}

// titleOf returns the title of a memory to draw. If it is not known yet, it is requested with others, and drawn later.
function titleOf(i) {
  if (state.names.labels[i] === undefined) {
    if (wanted.size === 0) setTimeout(learn, 60)
    wanted.add(i)
    return ''
  }
  return labelOf(i)
}

const wanted = new Set() // titles to request

async function learn() {
  const some = [...wanted]
  wanted.clear()
  await state.names.of(some)
  if (some.some((i) => state.names.labels[i] !== undefined)) redraw()
}

// labelOf returns the label of a memory.
const labelOf = (i) => (state.names.labels[i] === undefined ? '…' : state.names.labels[i] || '(empty)')

function redraw() {
  state.sigma?.refresh({ skipIndexation: false })
}

// reduceNode returns the current look of a memory.
function reduceNode(node, data) {
  const i = Number(node)
  const group = state.groupOf[i]
  if (!isShown(i)) return { ...data, hidden: true }
  if (state.pick.picked.has(i))
    return { ...data, color: state.colours.accent, size: data.size + 2, label: '', zIndex: 3 }
  const among = state.chosen >= 0 ? state.lit : state.found
  const bright = !among || among.has(i)
  if (!bright) return { ...data, color: state.colours.dim, label: '', zIndex: 0 }
  const look = { ...data, color: state.colours.series[group], zIndex: 1 }
  if (i === state.chosen) return { ...look, highlighted: true, forceLabel: true, size: data.size + 3, zIndex: 3 }
  if (among) {
    look.zIndex = 2
    look.forceLabel = among.size <= 12
    if (among === state.found) look.size = data.size + 1.5
  }
  return look
}

// reduceEdge returns the current look of a connection.
function reduceEdge(edge, data) {
  const [from, to] = state.graph.extremities(edge).map(Number)
  if (!isShown(from) || !isShown(to)) return { ...data, hidden: true }
  if (state.chosen >= 0) {
    const own = from === state.chosen || to === state.chosen
    return own ? { ...data, label: data.similar ? `${data.similar}%` : 'link', type: data.similar ? 'thin'
      : 'arrow', color: state.colours.accent, zIndex: 1 } : { ...data, color: state.colours.faint, zIndex: 0 }
  }
  if (state.found) return { ...data, color: state.colours.faint }
  return { ...data, color: data.similar ? state.colours.edge : state.colours.link }
}

// drawHover draws the memory under the pointer, and the chosen one, with its label on a ground of its own.
function drawHover(context, data, settings) {
  const size = settings.labelSize
  context.font = `${settings.labelWeight} ${size}px ${settings.labelFont}`
  const room = (side) => side - data.size - 22
  const { left, right } = { left: room(data.x), right: room(context.canvas.clientWidth - data.x) }
  let text = data.label && titleOf(Number(data.key))
  if (context.measureText(text).width > Math.max(left, right)) {
    text = shortened(text,
      Math.max(8, Math.floor((text.length * Math.max(left, right)) / context.measureText(text).width)))
  }
  const width = context.measureText(text).width
  const x = width > right && left > right ? data.x - data.size - width - 12 : data.x + data.size + 4
  if (text) {
    context.beginPath()
    context.roundRect(x - 3, data.y - size * 0.95, width + 12, size * 1.9, 6)
    context.fillStyle = state.colours.card
    context.strokeStyle = state.colours.line
    context.lineWidth = 1.5
    context.fill()
    context.stroke()
    context.fillStyle = state.colours.text
    context.fillText(text, x + 3, data.y + size / 3)
  }
  context.beginPath()
  context.arc(data.x, data.y, data.size + 2.5, 0, 2 * Math.PI)
  context.fillStyle = state.colours.card
  context.fill()
  context.beginPath()
  context.arc(data.x, data.y, data.size + 0.5, 0, 2 * Math.PI)
  context.fillStyle = data.color
  context.fill()
}

// choose shows a memory and its connections beside the picture; -1 clears the choice. With how = 'look' the picture
// moves to the memory; with 'seen', a small screen scrolls to its description.
function choose(i, how) {
  if (state.cluster) state.found = null
  state.cluster = null
  state.chosen = i
  state.lit = i < 0 || place.dataset.kind === 'map' ? null : new Set([i, ...state.near[i].map(([other]) => other)])
  const address = new URL(location)
  if (i < 0) {
    address.searchParams.delete('memory')
    element('chosen').replaceChildren()
    restNear()
  } else {
    nearOf(i)
    show(i, how)
  }
  if (i < 0) history.replaceState(history.state, '', address)
  redraw()
  if (i >= 0 && how === 'look') look(i)
}

// show shows a chosen memory beside the picture, and names it in the address.
async function show(i, how) {
  await state.names.of([i])
  const id = state.names.ids[i]
  if (state.chosen !== i || !id) return
  const address = new URL(location)
  address.searchParams.set('memory', id)
  history.replaceState(history.state, '', address)
  let part
  try {
    part = await fetched(place.dataset.memory + encodeURIComponent(id))
  } catch (error) {
    return problem(error)
  }
  if (state.chosen !== i) return
  element('chosen').innerHTML = part
  dispatchEvent(new CustomEvent('htmx:load', { detail: { elt: element('chosen') } })) // as after htmx: for times
  if (how === 'seen') element('panel').scrollIntoView({ block: 'nearest', behavior: still.matches ? 'auto' : 'smooth' })
}

function look(i) {
  // a folded one is in its cluster
  const drawn = state.folded.has(i) ? state.clusters[state.data.cluster[i]]?.drawn[0] : i
  const at = state.sigma?.getNodeDisplayData(String(drawn))
  if (!at) return
  const camera = state.sigma.getCamera()
  const to = { x: at.x, y: at.y, ratio: Math.min(camera.ratio, 0.4) }
  if (still.matches) camera.setState(to)
  else camera.animate(to, { duration: 300 })
}

// listed shows memories as buttons that choose them.
function listed(list, entries) {
  const labels = new Map() // by number
  state.names.of(entries.map(([i]) => i)).then(() => labels.forEach((label, i) => (label.textContent = labelOf(i))))
  list.replaceChildren(...entries.map(([i, note]) => {
    const entry = document.createElement('li')
    const button = document.createElement('button')
    button.type = 'button'
    const label = document.createElement('span')
    label.textContent = labelOf(i)
    labels.set(i, label)
    button.append(label)
    if (note) {
      const remark = document.createElement('span')
      remark.className = 'meta'
      remark.textContent = note
      button.append(remark)
    }
    button.addEventListener('click', () => {
      choose(i, 'look')
      element('panel').focus({ preventScroll: true })
    })
    entry.append(button)
    return entry
  }))
}

function near(title, entries, hint) {
  const heading = document.createElement('h2')
  heading.textContent = title
  const list = document.createElement('ul')
  list.className = 'hits'
  listed(list, entries)
  const parts = [heading, list]
  if (hint) {
    const p = document.createElement('p')
    p.className = 'hint'
    p.textContent = hint
    parts.push(p)
  }
  element('near').replaceChildren(...parts)
}

// restNear shows the content beside the picture while no memory is chosen.
function restNear() {
  if (place.dataset.kind === 'map')
    return near('Nothing selected', [], 'Click a memory to read it here, and to see the nearest ones.')
  state.cluster = null
  const order = state.near.map((others, i) => [others.length, i]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]
    || a[1] - b[1]).slice(0, 8)
  if (order.length === 0)
    return near('No connections', [],
      'These memories have no links, and none are similar enough. A lower minimum similarity shows more.')
  near('Most connected', order.map(([n, i]) => [i, numbers.format(n)]))
}

// nearOf lists the connections of a memory, or the nearest memories on the map.
function nearOf(i) {
  if (place.dataset.kind === 'map') {
    const { x, y } = state.data
    const order = x.map((_, other) => [Math.hypot(x[other] - x[i], y[other] - y[i]), other])
      .filter(([, other]) => other !== i).sort((a, b) => a[0] - b[0]).slice(0, 6)
    return near('Nearest on the map', order.map(([, other]) => [other, '']))
  }
  const known = new Map()
  for (const [other, similar, incoming, both] of [...state.near[i]].sort((a, b) => (a[1] === 0) - (b[1] === 0)
    ? (b[1] === 0) - (a[1] === 0) : b[1] - a[1])) {
    const note = (similar ? `${similar}% similar` : incoming ? 'links here' : 'linked') + (both ? `: ${both}` : '')
    known.set(other, known.has(other) ? `${known.get(other)}, ${note}` : note)
  }
  if (known.size === 0) return near('Connected with', [], 'Nothing in this diagram.')
  near('Connected with', [...known].slice(0, 15), known.size > 15 ? `And ${known.size - 15} more.` : '')
}

let asking = null
let soon = 0

// find lights up the memories that have a text in their first line, as far as that is known here, or are about it by
// the server's search.
async function find(text) {
  asking?.abort()
  asking = null
  if (text === '') {
    showFound(null)
    return
  }
  const needle = text.toLowerCase()
  const here = state.names.labels.flatMap((label, i) => (label?.toLowerCase().includes(needle) ? [i] : []))
  showFound(here)
  const own = (asking = new AbortController())
  try {
    const { at } = await fetched(addressOf(place.dataset.found, { q: text, version: state.data.version }), own.signal)
    if (asking === own) showFound([...new Set([...at, ...here])])
  } catch (error) {
    if (error.name !== 'AbortError') console.warn(error) // the matches by words are shown
  }
}

function showFound(found) {
  state.cluster = null
  state.found = found && new Set(found)
  if (found) {
    state.chosen = -1
    state.lit = null
  }
  listed(element('hits'), (found ?? []).slice(0, 8).map((i) => [i, '']))
  if (found) {
    const status = document.createElement('li')
    status.className = 'hint'
    status.setAttribute('role', 'status')
    status.textContent = found.length === 0 ? 'No matches.'
      : found.length > 8 ? `${numbers.format(found.length)} are highlighted.` : ''
    if (status.textContent) element('hits').append(status)
  }
  redraw()
}

function listen() {
  const search = element('find')
  search.addEventListener('input', () => {
    clearTimeout(soon)
    soon = setTimeout(() => find(search.value.trim()), 200)
  })
  search.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    element('hits').querySelector('button')?.click()
  })
  element('colour').addEventListener('change', () => {
    group(element('colour').value)
    const address = new URL(location)
    address.searchParams.set('colour', element('colour').value)
    history.replaceState(history.state, '', address)
    redraw()
  })
  const camera = () => state.sigma?.getCamera()
  const options = () => ({ duration: still.matches ? 1 : 200 })
  const actions = {
    in: () => camera()?.animatedZoom(options()), out: () => camera()?.animatedUnzoom(options()),
      fit: () => camera()?.animatedReset(options()),
    move: (x, y) => {
      const { x: atX, y: atY, ratio } = camera() ?? {}
      camera()?.setState({ x: atX + x * ratio * 0.1, y: atY + y * ratio * 0.1 })
    },
  }
  for (const name of ['in', 'out', 'fit']) element(`zoom-${name}`).addEventListener('click', actions[name])
  const keys = {
    ' ': () => {
      if (state.chosen >= 0) state.pick.toggle([state.chosen])
      else if (state.cluster) state.pick.toggle(state.cluster.members)
    },
    a: () => state.pick.add(state.pick.inView()),
    '+': actions.in, '=': actions.in, '-': actions.out, 0: actions.fit, Escape: () => choose(-1),
    ArrowLeft: () => actions.move(-1, 0), ArrowRight: () => actions.move(1, 0), ArrowUp: () => actions.move(0, 1),
      ArrowDown: () => actions.move(0, -1),
  }
  element('stage').addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return
    event.preventDefault()
    keys[event.key]()
  })
  const recolour = () => {
    readColours()
    state.sigma?.setSetting('labelColor', { color: state.colours.text })
    redraw()
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour)
  addEventListener('souvenir:theme', recolour)
}

start()
