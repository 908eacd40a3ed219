// <form data-upload="PATH"> shows how much of its file has been sent, and then opens the path.
addEventListener('submit', (event) => {
  const form = event.target
  if (!form.dataset.upload || event.defaultPrevented) return
  event.preventDefault()
  const progress = form.querySelector('progress')
  const button = form.querySelector('button[type=submit]')
  const failed = (main) => {
    button.disabled = false
    progress.hidden = true
    if (main) document.querySelector('main').replaceWith(main)
    document.querySelector('main [autofocus]')?.focus()
  }
  const request = new XMLHttpRequest()
  request.open('POST', form.action)
  request.upload.onprogress = ({ loaded, total, lengthComputable }) => {
    if (lengthComputable) Object.assign(progress, { max: total, value: loaded })
  }
  request.onload = () => {
    if (request.status < 400) location.assign(form.dataset.upload)
    else failed(new DOMParser().parseFromString(request.responseText, 'text/html').querySelector('main'))
  }
  request.onerror = () => {
    failed()
    const problem = document.createElement('p')
    problem.className = 'problem'
    problem.textContent = 'The upload failed. Check your connection, and try again.'
    document.getElementById('problems').replaceChildren(problem)
  }
  button.disabled = true
  progress.hidden = false
  request.send(new FormData(form))
})
