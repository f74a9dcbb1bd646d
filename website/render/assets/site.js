// What the pages of the guides do: search, copy, light or dark.
import { load, search } from './search.js'

const root = document.documentElement
const language = root.dataset.language
const say = document.body.dataset

// The choice is the one of the web pages of the cluster.
const kept = 'nomadlike.mode'
const chosen = localStorage.getItem(kept)
if (chosen === 'dark' || chosen === 'light') root.dataset.theme = chosen
document.querySelector('[data-dark]').addEventListener('click', () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
  root.dataset.theme = dark ? 'light' : 'dark'
  localStorage.setItem(kept, root.dataset.theme)
})

// The list of pages is longer than the window: it begins where its reader is.
const menu = document.querySelector('nav')
const here = menu.querySelector('[aria-current]')
if (here) menu.scrollTop = here.offsetTop - menu.clientHeight / 2

// A section that stands on another page now is looked for there.
const moved = JSON.parse(document.getElementById('text').dataset.moved ?? '{}')
function follow() {
  const anchor = decodeURIComponent(location.hash.slice(1))
  if (anchor && !document.getElementById(anchor) && moved[anchor]) location.replace(moved[anchor])
}
follow()
addEventListener('hashchange', follow)

// On a phone the list of pages is folded. Until then site.css does not show it, so that
// the text below stays where it is.
const fold = menu.querySelector('details')
if (matchMedia('(max-width: 760px)').matches) fold.open = false
fold.dataset.ready = ''

for (const block of document.querySelectorAll('main pre')) {
  const box = document.createElement('div')
  box.className = 'block'
  block.replaceWith(box)
  block.tabIndex = 0 // it may scroll
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = say.copy
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.textContent.replace(/^\$ /gm, ''))
    button.textContent = say.copied
    setTimeout(() => (button.textContent = say.copy), 2000)
  })
  box.append(button, block)
}
for (const table of document.querySelectorAll('main table')) table.tabIndex = 0

const form = document.querySelector('.search')
const field = form.querySelector('input')
const list = document.getElementById('found')

function show(found, query) {
  list.replaceChildren(
    ...found.map(({ url, title, head, text }) => {
      const item = document.createElement('li')
      const link = document.createElement('a')
      link.href = `/docs/${language}/${url}`
      const name = document.createElement('b')
      name.textContent = head ? `${title} › ${head}` : title
      const line = document.createElement('span')
      line.textContent = text
      link.append(name, line)
      item.append(link)
      return item
    }),
  )
  if (found.length === 0) {
    const nothing = document.createElement('li')
    nothing.append(Object.assign(document.createElement('p'), { textContent: say.nothing }))
    list.append(nothing)
  }
  list.hidden = query === ''
}

async function look() {
  const query = field.value.trim()
  const sections = await load(language)
  if (query === field.value.trim()) show(query ? search(sections, query) : [], query)
}
field.addEventListener('input', () => void look())
field.addEventListener('focus', () => void load(language).catch(() => {}))
form.addEventListener('submit', (event) => {
  event.preventDefault()
  list.querySelector('a')?.click()
})
form.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') list.hidden = true
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  const links = [...list.querySelectorAll('a')]
  const next = links.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1)
  ;(links[next] ?? field).focus()
  event.preventDefault()
})
document.addEventListener('click', (event) => {
  if (!form.contains(event.target)) list.hidden = true
})
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) {
    event.preventDefault()
    field.focus()
  }
})
const asked = new URLSearchParams(location.search).get('q')
if (asked) {
  field.value = asked
  void look()
}
