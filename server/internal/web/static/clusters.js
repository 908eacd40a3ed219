// Clusters of a picture: their labels, which cover no memory, and their list. The picture itself is in pictures.js.

const element = (id) => document.getElementById(id)
const numbers = new Intl.NumberFormat('en')
const mostLabels = 14
const mostListed = 20

// clustersOf reads the clusters from the data of a picture: the members, the drawn ones among them, and the folded
// ones.
export function clustersOf(data) {
  const folded = new Set(data.folded)
  const clusters = data.clusters.map((name, number) =>
    ({ name, number, title: name || 'No common words', members: [], drawn: [], folded: 0 }))
  data.cluster.forEach((number, i) => {
    if (number < 0) return
    const cluster = clusters[number]
    cluster.members.push(i)
    if (folded.has(i)) cluster.folded++
    else cluster.drawn.push(i)
  })
  return clusters
}

// list shows the clusters as buttons, which work without a mouse.
export function list(clusters, choose) {
  element('clusters').hidden = clusters.length === 0
  element('cluster-list').replaceChildren(...clusters.slice(0, mostListed).map((cluster) => {
    const entry = document.createElement('li')
    const button = document.createElement('button')
    button.type = 'button'
    const name = document.createElement('span')
    name.textContent = cluster.title
    const size = document.createElement('span')
    size.className = 'meta'
    size.textContent = numbers.format(cluster.members.length)
    button.append(name, size)
    button.addEventListener('click', () => choose(cluster))
    entry.append(button)
    return entry
  }))
}

// label puts the names of clusters beside their memories, the largest clusters first. at returns the place and size of
// a memory in the stage, or null if it is hidden; boxes are those of texts in the stage, and of elements over it. A
// name that has no free place is left out.
export function label(clusters, at, choose, boxes = []) {
  const stage = element('cluster-labels')
  const { clientWidth: width, clientHeight: height } = stage
  const cell = 9
  const columns = Math.ceil(width / cell)
  const taken = new Uint8Array(columns * Math.ceil(height / cell))
  const eachCell = (box, visit) => {
    for (let y = Math.floor(box.top / cell); y <= Math.floor(box.bottom / cell); y++) {
      for (let x = Math.floor(box.left / cell); x <= Math.floor(box.right / cell); x++) if (visit(y * columns + x))
        return true
    }
    return false
  }
  for (const { left, top, right, bottom } of boxes) {
    const box = { left: Math.max(0, left), top: Math.max(0, top), right: Math.min(width - 1, right),
      bottom: Math.min(height - 1, bottom) }
    eachCell(box, (i) => {
      taken[i] = 1
    })
  }
  const shown = []
  for (const cluster of clusters) {
    const places = cluster.drawn.map(at).filter((place) => place && place.x >= 0 && place.y >= 0 && place.x < width
      && place.y < height)
    for (const { x, y, radius } of places) {
      const box = { left: Math.max(0, x - radius), top: Math.max(0, y - radius), right: Math.min(width - 1, x + radius),
        bottom: Math.min(height - 1, y + radius) }
      eachCell(box, (i) => {
        taken[i] = 1
      })
    }
    if (cluster.name && places.length > 1) shown.push({ cluster, places })
  }
  const labels = []
  for (const { cluster, places } of shown.sort((a, b) => b.places.length - a.places.length)) {
    if (labels.length === mostLabels) break
    const [text, size, place] = fitting(cluster, (size) =>
      freePlace(places, size, { width, height }, (box) => eachCell(box, (i) => taken[i])))
    if (!place) continue
    eachCell(place, (i) => {
      taken[i] = 1
    })
    const one = document.createElement('span')
    one.textContent = text
    one.style.transform = `translate(${Math.round(place.left)}px, ${Math.round(place.top)}px)`
    one.style.width = `${Math.ceil(size.width)}px`
    one.addEventListener('click', () => choose(cluster))
    labels.push(one)
  }
  stage.replaceChildren(...labels)
}

const measure = document.createElement('canvas').getContext('2d')

// fitting returns as many words of a cluster's name as have room, with their size and place.
function fitting(cluster, find) {
  measure.font = `600 13px ${getComputedStyle(document.body).fontFamily}`
  const words = cluster.name.split(', ')
  for (let n = words.length; n > 0; n--) {
    const text = words.slice(0, n).join(', ') + (cluster.folded ? ` +${numbers.format(cluster.folded)}` : '')
    const size = { width: Math.min(measure.measureText(text).width + 18, 240), height: 22 }
    const place = find(size)
    if (place) return [text, size, place]
  }
  return []
}

// freePlace looks for a free box near the middle of some places: on ever larger rings around it.
function freePlace(places, size, stage, isTaken) {
  const middle = (key) => places.map((place) => place[key]).sort((a, b) => a - b)[places.length >> 1]
  const [x, y] = [middle('x'), middle('y')]
  for (let ring = 0; ring <= 5; ring++) {
    for (let step = 0; step < 12; step++) {
      const angle = -Math.PI / 2 + (step % 2 ? 1 : -1) * Math.ceil(step / 2) * (Math.PI / 6)
      const left = x + Math.cos(angle) * ring * 20 - size.width / 2
      const top = y + Math.sin(angle) * ring * 16 - size.height / 2
      const box = { left, top, right: left + size.width, bottom: top + size.height }
      if (left < 2 || top < 2 || box.right > stage.width - 2 || box.bottom > stage.height - 2) continue
      if (!isTaken(box)) return box
    }
  }
  return null
}
