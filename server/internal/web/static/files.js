// Files are sent one after the other, as soon as they are chosen or dropped: each with its progress, and a way to stop
// it.

const form = document.getElementById('upload')
const drop = document.getElementById('drop')
const input = document.getElementById('file')
const list = document.getElementById('sending')
const waiting = []
let busy = false

form.addEventListener('submit', (event) => {
  event.preventDefault()
  add(input.files)
})
input.addEventListener('change', () => {
  add(input.files)
  input.value = ''
})
for (const name of ['dragenter', 'dragover']) {
  addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    form.closest('details').open = true
    drop.classList.add('over')
  })
}
addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) drop.classList.remove('over')
})
addEventListener('drop', (event) => {
  drop.classList.remove('over')
  if (!event.dataTransfer?.files.length) return
  event.preventDefault()
  add(event.dataTransfer.files)
})
addEventListener('beforeunload', (event) => {
  if (busy) event.preventDefault()
})

// The form's values apply to the files that are chosen next.
function add(files) {
  const fields = [...new FormData(form)].filter(([name, value]) => name !== 'csrf' && name !== 'file' && value !== '')
  const most = Number(form.dataset.most)
  for (const file of files) {
    const row = line(file)
    if (most > 0 && file.size > most) {
      row.fail(`The file has ${size(file.size)}; at most ${size(most)} are allowed.`)
      continue
    }
    const one = { file, fields, row }
    row.stop.addEventListener('click', () => stop(one))
    waiting.push(one)
  }
  next()
}

function next() {
  if (busy) return
  const one = waiting.shift()
  if (!one) return
  busy = true
  const body = new FormData()
  for (const [name, value] of one.fields) body.append(name, value)
  body.append('file', one.file)
  const request = new XMLHttpRequest()
  one.request = request
  request.upload.addEventListener('progress', (event) => one.row.progress(event.loaded, event.total))
  request.addEventListener('load', () => {
    if (request.status === 200) one.row.done(JSON.parse(request.responseText).file)
    else one.row.fail(reason(request))
  })
  request.addEventListener('error',
    () => one.row.fail('The connection was lost: the file may be too large, or the server does not answer.'))
  request.addEventListener('abort', () => one.row.fail('Stopped.'))
  request.addEventListener('loadend', () => {
    busy = false
    if (waiting.length === 0)
      window.htmx.ajax('GET', location.pathname + location.search, { target: '#files', swap: 'outerHTML' })
    next()
  })
  one.row.progress(0, one.file.size)
  request.open('POST', form.dataset.to)
  request.send(body)
}

function stop(one) {
  if (one.request) one.request.abort()
  else {
    waiting.splice(waiting.indexOf(one), 1)
    one.row.fail('Stopped.')
  }
}

// The server's messages are sentences without a capital and a full stop.
function reason(request) {
  let text = ''
  try {
    text = JSON.parse(request.responseText).error
  } catch {
    // a proxy on the way to the server has answered
  }
  if (!text) return `The server answered ${request.status}. Try again.`
  return text[0].toUpperCase() + text.slice(1) + '.'
}

// The text by which searches find a stored file.
function indexed(text) {
  if (!text) return ''
  const count = (number, noun) => `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
  const why = text.reason ? `: ${text.reason}` : ''
  if (text.state === 'waiting') return '; its text is being read'
  if (text.state !== 'indexed') return `; not found by its text${why}`
  return `; found by its text: ${count(text.characters, 'character')} in ${count(text.passages, 'passage')}` +
    `${text.truncated ? ', the beginning only' : ''}${text.reason ? `; ${text.reason}` : ''}`
}

function line(file) {
  const item = document.createElement('li')
  const name = document.createElement('p')
  const title = document.createElement('bdi')
  title.textContent = file.name
  const state = document.createElement('span')
  state.className = 'state'
  state.textContent = ' waits'
  name.append(title, state)
  const stop = document.createElement('button')
  stop.type = 'button'
  stop.className = 'small'
  stop.textContent = 'Stop'
  stop.setAttribute('aria-label', `Stop ${file.name}`)
  const bar = document.createElement('progress')
  bar.setAttribute('aria-label', `Progress of ${file.name}`)
  bar.max = 1
  bar.value = 0
  item.append(name, stop, bar)
  list.append(item)
  return {
    stop,
    progress(sent, all) {
      bar.value = all > 0 ? sent / all : 0
      state.textContent = sent < all ? ` ${size(sent)} of ${size(all)}` : ': storing'
    },
    done(stored) {
      item.className = 'stored'
      const link = document.createElement('a')
      link.href = `${form.getAttribute('action')}/${stored.id}`
      link.append(title)
      name.prepend(link)
      state.textContent = `: stored${indexed(stored.text)}`
      stop.remove()
      bar.remove()
      say(`${file.name}${state.textContent}`)
    },
    fail(text) {
      const wrong = document.createElement('p')
      wrong.className = 'wrong'
      wrong.textContent = text
      state.textContent = ': not stored'
      bar.replaceWith(wrong)
      stop.remove()
      say(`${file.name}: ${text}`)
    },
  }
}

// Screen readers read the outcome of each file.
const region = document.createElement('p')
region.className = 'visually-hidden'
region.setAttribute('role', 'status')
document.body.append(region)
function say(text) {
  region.textContent = text
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`
  let unit = -1
  for (bytes /= 1024; ; bytes /= 1024) {
    unit++
    if (bytes < 1024 || unit === 3) return `${bytes.toFixed(1)} ${['KiB', 'MiB', 'GiB', 'TiB'][unit]}`
  }
}
