// Runs before the program is here, and asks at once for what its first view
// will need. It holds no secrets and draws nothing; the build puts the names of
// the files in. What comes back is taken by send() in api.ts, once each.
;(() => {
  const files = {} /* files */
  let kept = null
  let project = null
  try {
    kept = localStorage.getItem('nomadlike.language')
    project = localStorage.getItem('nomadlike.project')
  } catch {
    // no storage: the browser's languages are asked
  }
  const asked = navigator.languages.map((tag) => tag.toLowerCase().split('-')[0]).find((tag) => tag === 'zh' || tag === 'en')
  const language = kept === 'zh' || kept === 'en' ? kept : (asked ?? 'en')
  const place = location.pathname.split('/')
  const page = { '': 'home', jobs: place[2] === 'new' ? 'create' : place[2] ? 'job' : 'jobs', nodes: 'node' }[place[1]] ?? place[1]
  for (const name of [page, language, 'catalogue.' + language]) {
    for (const file of files[name] ?? []) {
      const link = document.createElement('link')
      link.rel = 'modulepreload'
      link.href = '/' + file
      document.head.append(link)
    }
  }
  const first = { home: ['/v1/nodes?limit=1000', '/v1/queue/timeline?hours=12', '/v1/queue?forecast=true&limit=1000', '/v1/outlook'], jobs: ['/v1/jobs?limit=60'], cluster: ['/v1/nodes?limit=1000'] }[page] ?? []
  globalThis.early = {}
  // A script or style sheet that did not come leaves an empty page: the
  // browser gives a fetch up when an address of the machine comes or goes. The
  // page is loaded again, and after some times it says so.
  const mark = 'nomadlike.loads'
  addEventListener('error', (event) => {
    if (!(event.target instanceof HTMLScriptElement) && event.target?.rel !== 'stylesheet') return
    const loads = Number(sessionStorage.getItem(mark) ?? 0)
    sessionStorage.setItem(mark, String(loads + 1))
    if (loads < 4) setTimeout(() => location.reload(), 300 * 2 ** loads)
    else document.getElementById('broken').hidden = false
  }, true)
  addEventListener('DOMContentLoaded', () => {
    document.getElementById('reload').onclick = () => location.reload()
  })
  if (/^#(code|share)=/.test(location.hash)) return // nobody is signed in yet
  for (const path of ['/v1/self', ...first]) {
    const answer = fetch(path, { headers: { 'X-Nomadlike-Request': 'ui', ...(project && { 'X-Nomadlike-Project': project }) }, credentials: 'same-origin' })
    answer.catch(() => {}) // it is asked again when it is needed
    globalThis.early[path] = answer
  }
})()
