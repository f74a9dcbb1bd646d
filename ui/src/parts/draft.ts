// What somebody types into the create page lies in the browser until it is
// submitted: neither a lost connection nor a closed tab takes it away.

const prefix = 'nomadlike.draft.'
const kept = 7 * 24 * 3_600_000 // milliseconds

interface Kept {
  text: string
  at: number
}

// readDraft gives what was typed before, of the page for a new job or of a clone.
export function readDraft(key: string, now = Date.now()): Kept | undefined {
  try {
    const found = JSON.parse(localStorage.getItem(prefix + key) ?? 'null') as Kept | null
    if (found && now - found.at < kept) return found
    if (found) dropDraft(key)
  } catch {
    // no storage, or what lies there is not ours
  }
  return undefined
}

export function keepDraft(key: string, text: string, now = Date.now()) {
  try {
    localStorage.setItem(prefix + key, JSON.stringify({ text, at: now }))
  } catch {
    // no room: the page goes on without
  }
}

export const dropDraft = (key: string) => localStorage.removeItem(prefix + key)

// dropDrafts forgets all of them; whoever signs out leaves nothing behind.
export function dropDrafts() {
  for (const name of Object.keys(localStorage)) if (name.startsWith(prefix)) localStorage.removeItem(name)
}
