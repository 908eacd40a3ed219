// Selecting memories in a picture, to change many at once: with a lasso (mouse, finger or pen), all in view, or by
// keys.

const element = (id) => document.getElementById(id)
const numbers = new Intl.NumberFormat('en')
const most = 1000 // memories that the server changes at once

// picking returns the set of selected memories, and the functions that change it. picture has all() numbers, redraw(),
// at(i), the place of memory i in the stage, or null if it is not shown, knownIDs(numbers), null if one is missing,
// idsOf(numbers), which requests them, and failed(error).
export function picking(picture) {
  const picked = new Set()
  const form = element('bulk')
  let filled = false
  const tell = (note = '') => {
    const n = picked.size
    element('picked').textContent = (n === 0 ? 'None selected' : `${numbers.format(n)} selected`) + note
    element('picked-actions').hidden = n === 0
    picture.redraw()
  }
  const add = (some) => {
    let left = 0
    for (const i of some) {
      if (picked.size < most || picked.has(i)) picked.add(i)
      else left++
    }
    tell(left ? `; at most ${numbers.format(most)} can be changed at once` : '')
  }
  const clear = () => {
    picked.clear()
    tell()
  }
  const inView = () => {
    const { clientWidth: width, clientHeight: height } = element('stage')
    const inside = (place) => place && place.x >= 0 && place.y >= 0 && place.x <= width && place.y <= height
    return picture.all().filter((i) => inside(picture.at(i)))
  }
  const toggle = (some) => {
    if (some.every((i) => picked.has(i))) {
      for (const i of some) picked.delete(i)
      tell()
    } else add(some)
  }
  const fill = (ids) => element('picked-ids').replaceChildren(...ids.map((id) => {
    const field = document.createElement('input')
    field.type = 'hidden'
    field.name = 'id'
    field.value = id
    return field
  }))
  // If ids are missing, the form is sent again when they are there.
  form.addEventListener('submit', async (event) => {
    if (filled) return
    const some = [...picked]
    const known = picture.knownIDs(some)
    if (known) return fill(known)
    event.preventDefault()
    const button = event.submitter
    try {
      fill(await picture.idsOf(some))
    } catch (error) {
      return picture.failed(error)
    }
    filled = true
    form.requestSubmit(button)
    filled = false
  })
  element('pick-view').addEventListener('click', () => add(inView()))
  element('pick-none').addEventListener('click', clear)
  lasso((line) => add(picture.all().filter((i) => {
    const place = picture.at(i)
    return place && within(place, line)
  })))
  return { picked, add, clear, toggle, inView }
}

// within reports whether a point is inside a closed line: a ray from it crosses the line an odd number of times.
export function within({ x, y }, line) {
  let inside = false
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [a, b] = [line[i], line[j]]
    if (a.y > y !== b.y > y && x < ((b.x - a.x) * (y - a.y)) / (b.y - a.y) + a.x) inside = !inside
  }
  return inside
}

// lasso lets the user draw around memories while its button is pressed.
function lasso(done) {
  const button = element('lasso-on')
  const canvas = element('lasso')
  let line = null
  const turn = (on) => {
    button.setAttribute('aria-pressed', String(on))
    canvas.hidden = !on
    line = null
  }
  button.addEventListener('click', () => turn(canvas.hidden))
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !canvas.hidden) turn(false)
  })
  const place = (event) => {
    const box = canvas.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top }
  }
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId)
    canvas.width = canvas.clientWidth
    canvas.height = canvas.clientHeight
    line = [place(event)]
    event.preventDefault()
  })
  canvas.addEventListener('pointermove', (event) => {
    if (!line) return
    line.push(place(event))
    const context = canvas.getContext('2d')
    context.clearRect(0, 0, canvas.width, canvas.height)
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()
    context.lineWidth = 2
    context.setLineDash([6, 4])
    context.beginPath()
    for (const { x, y } of line) context.lineTo(x, y)
    context.closePath()
    context.stroke()
  })
  canvas.addEventListener('pointerup', () => {
    const drawn = line
    turn(false)
    if (drawn && drawn.length > 2) done(drawn)
    button.focus()
  })
  canvas.addEventListener('pointercancel', () => turn(false))
}
