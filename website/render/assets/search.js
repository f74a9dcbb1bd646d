// Full-text search of the guides, for these pages and for the cluster's own.
//
// What is typed is cut into words, and runs of Chinese into pairs of characters,
// because nothing separates Chinese words and a dictionary cuts them wrongly. A
// section has to hold most of them. What stands in a title weighs more than what
// stands in a text, and rare words more than common ones.
const chinese = /[\u2e80-\u9fff\uf900-\ufaff]/
const parts = /[\u2e80-\u9fff\uf900-\ufaff]+|[\p{L}\p{N}_.-]+/gu
const weights = { page: 16, head: 6, text: 1 }

// terms returns what is looked for, each with whether it may begin a longer word.
export function terms(query) {
  const list = []
  for (const [run] of query.toLowerCase().matchAll(parts)) {
    if (!chinese.test(run) || run.length < 2) list.push(run)
    else for (let i = 0; i + 1 < run.length; i++) list.push(run.slice(i, i + 2))
  }
  return [...new Set(list)].slice(0, 24)
}

// stem takes the ends off English words that differ between a question and a text.
const stem = (term) => (chinese.test(term) || term.length < 5 ? term : term.replace(/(ies|es|s|ed|ing)$/, ''))

function count(text, term) {
  let n = 0
  for (let at = text.indexOf(term); at >= 0 && n < 8; at = text.indexOf(term, at + term.length)) {
    if (chinese.test(term) || at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) n++
  }
  return n
}

// search returns the sections that fit best, at most `limit`, and at most two of a page.
export function search(sections, query, limit = 10) {
  const wanted = terms(query).map(stem)
  if (wanted.length === 0) return []
  const phrase = query.toLowerCase().trim()
  const rows = sections.map((section) => {
    const page = section.t.toLowerCase(), head = (section.h ?? '').toLowerCase(), text = section.x.toLowerCase()
    const found = wanted.map((term) => [count(page, term), count(head, term), count(text, term)])
    return { section, page, head, text, found }
  })
  const rare = wanted.map((_, i) => Math.log(1 + rows.length / (1 + rows.filter(({ found }) => found[i].some((n) => n > 0)).length)))
  const scored = []
  for (const { section, page, head, text, found } of rows) {
    const hits = found.filter((one) => one.some((n) => n > 0)).length
    if (hits < Math.ceil(wanted.length * 0.7)) continue
    let score = 0
    found.forEach(([inPage, inHead, inText], i) => {
      const body = inText / (inText + 2 + text.length / 2000)
      score += rare[i] * (Math.min(inPage, 1) * weights.page + Math.min(inHead, 1) * weights.head + body * 3 * weights.text)
    })
    score *= hits / wanted.length
    if (page === phrase) score *= 3
    else if (page.includes(phrase)) score *= 1.5
    if (head === phrase) score *= 1.5
    else if (text.includes(phrase)) score *= 1.2
    if (section.p.startsWith('reference/') || section.p === 'examples') score *= 0.4
    if (!section.h) score *= 1.1
    scored.push({ section, score })
  }
  scored.sort((a, b) => b.score - a.score)
  const shown = new Map()
  return scored
    .filter(({ section }) => {
      const n = shown.get(section.p) ?? 0
      shown.set(section.p, n + 1)
      return n < 2
    })
    .slice(0, limit)
    .map(({ section }) => ({ url: address(section), title: section.t, head: section.h ?? '', text: around(section.x, wanted) }))
}

const address = (section) => (section.p === 'index' ? '' : section.p) + (section.a ? '#' + section.a : '')

// around is the part of a text where the first of the words stands.
function around(text, wanted) {
  const low = text.toLowerCase()
  const at = Math.min(...wanted.map((term) => low.indexOf(term)).filter((n) => n >= 0), text.length)
  const from = at === text.length ? 0 : Math.max(0, at - 40)
  return (from > 0 ? '…' : '') + text.slice(from, from + 140) + (from + 140 < text.length ? '…' : '')
}

// load fetches what is searched, once for each language.
const loaded = new Map()
export function load(language) {
  if (!loaded.has(language)) {
    const answer = fetch(`/docs/${language}/search.json`).then((r) => {
      if (!r.ok) throw new Error(`search.json: ${r.status}`)
      return r.json()
    })
    answer.catch(() => loaded.delete(language))
    loaded.set(language, answer)
  }
  return loaded.get(language)
}
