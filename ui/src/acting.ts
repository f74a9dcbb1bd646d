import type { QueryClient } from '@tanstack/react-query'

// The project that requests act in, of those that whoever is signed in belongs to. It
// is remembered for all tabs of the browser, which share one stream of events. Without
// one the servers take the caller's own. boot.js reads it as well.

const kept = 'nomadlike.project'

function read(): string {
  try {
    return localStorage.getItem(kept) ?? ''
  } catch {
    return '' // no storage: it is known until the page is loaded again
  }
}

let chosen = read()
let lost = ''
const listeners = new Set<() => void>()

// acting is the project that was chosen, '' when none was.
export const acting = () => chosen

// inActing adds the chosen project to the address of a link, which carries no headers.
export const inActing = (address: string) => (chosen ? `${address}${address.includes('?') ? '&' : '?'}acting=${encodeURIComponent(chosen)}` : address)

// lostProject is one that was chosen and may be acted in no more, until a reader has
// seen that.
export const lostProject = () => lost

// onActing calls back whenever either changes, until what it returns is called.
export function onActing(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function set(project: string, gone: string) {
  chosen = project
  lost = gone
  // What boot.js asked for was asked in the project before.
  ;(globalThis as { early?: object }).early = {}
  for (const listener of listeners) listener()
}

// act chooses a project; '' leaves it to the servers.
export function act(project: string, gone = '') {
  try {
    if (project) localStorage.setItem(kept, project)
    else localStorage.removeItem(kept)
  } catch {
    // no storage: this tab knows it
  }
  set(project, gone)
}

// seenLost is called when a reader knows what lostProject says.
export function seenLost() {
  lost = ''
  for (const listener of listeners) listener()
}

// dropWhenSwitched forgets what was read in one project as soon as another is acted in:
// what the page shows is read again, and first who one is there.
export function dropWhenSwitched(client: QueryClient): () => void {
  let before = chosen
  return onActing(() => {
    if (before === chosen) return
    before = chosen
    client.removeQueries({ type: 'inactive' })
    void client.resetQueries()
  })
}

// What another tab chooses holds here, too.
addEventListener('storage', (event) => {
  if (event.key === kept && (event.newValue ?? '') !== chosen) set(event.newValue ?? '', '')
})

// What servers say of a project that may not be acted in.
const refusals = ['auth.not_member', 'auth.no_project', 'auth.token_project', 'auth.project_name']

// astray reports whether a request was refused because of the project that it named.
export const astray = (id: string, named: string) => named !== '' && refusals.includes(id)
