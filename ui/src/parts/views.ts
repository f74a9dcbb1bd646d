// A view of the list of jobs is everything that decides what it shows: filters, order
// and columns. It stands in the address, so that it can be sent; under a name it is
// kept by this browser as well.

export type Views = Record<string, string> // name: the parameters of the address, without the name

const keptViews = 'nomadlike.jobs.views'
const keptBefore = 'nomadlike.jobs.filters' // of versions that kept filters only
const nameMax = 40 // characters
const viewsMax = 50

function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null')
  } catch {
    return null
  }
}

// readViews are the views that this browser keeps.
export function readViews(): Views {
  const found = read(keptViews) ?? read(keptBefore)
  if (typeof found !== 'object' || found === null) return {}
  return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

export function keepViews(views: Views) {
  localStorage.setItem(keptViews, JSON.stringify(views))
}

// withView adds a view, under a name without blanks at its ends and of a bounded
// length; the views are as they were when there are too many, or there is no name.
export function withView(views: Views, name: string, params: string): Views {
  const short = [...name.trim()].slice(0, nameMax).join('')
  if (!short || (!(short in views) && Object.keys(views).length >= viewsMax)) return views
  return { ...views, [short]: params }
}

// paramsOf are the parameters of an address that make a view, in one order, with the
// columns that are shown.
export function paramsOf(params: URLSearchParams, columns: string[]): string {
  const next = new URLSearchParams(params)
  next.delete('view')
  next.set('columns', encodeColumns(columns))
  next.sort()
  return next.toString()
}

// linkOf is the address of a view with its name, below the origin.
export function linkOf(name: string, params: string): string {
  const next = new URLSearchParams(params)
  next.set('view', name)
  return '/jobs?' + next.toString()
}

// Columns of figures are called by what is shown of which metric.
export const figureKinds = ['last', 'min', 'max'] as const
export type FigureKind = (typeof figureKinds)[number]
const figureColumnsMax = 6

export interface Figure {
  key: string
  kind: FigureKind
  name: string
}

// figureOf reads the name of a column of figures, such as min:loss; nothing of others.
export function figureOf(key: string): Figure | undefined {
  const at = key.indexOf(':')
  const kind = key.slice(0, Math.max(0, at)) as FigureKind
  const name = key.slice(at + 1)
  return figureKinds.includes(kind) && name && name.length <= 100 ? { key, kind, name } : undefined
}

// columnsOf are the columns that an address names, those that there are; nothing when
// it names none.
export function columnsOf(text: string | null, known: readonly string[]): string[] | undefined {
  if (text === null) return undefined
  const named = [...new Set(text.split(',').map(decode))]
  const figures = named.filter((key) => figureOf(key)).slice(0, figureColumnsMax)
  return named.filter((key) => known.includes(key) || figures.includes(key))
}

// Names of metrics may hold commas, which separate columns.
export const encodeColumns = (columns: string[]) => columns.map((key) => key.replaceAll('%', '%25').replaceAll(',', '%2C')).join(',')
const decode = (key: string) => key.replaceAll('%2C', ',').replaceAll('%25', '%')
