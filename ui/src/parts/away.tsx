import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'react-router'
import { get } from '../api'
import type { Contact } from '../events'
import { dateTime, span } from '../format'
import type { NodeList, NodeSummary } from '../types'
import { useNow } from './states'

const elsewhereAfter = 10_000 // milliseconds without an answer
const elsewhereMax = 4
const learnt = 16 // nodes whose addresses are asked for

// useElsewhere learns the addresses of other agents while there is one to ask:
// each serves the same pages.
function useElsewhere(): string[] {
  const client = useQueryClient()
  const some = useQuery({
    queryKey: ['elsewhere'], staleTime: Infinity, gcTime: Infinity, retry: false,
    queryFn: ({ signal }) => get<NodeList>(`/v1/nodes?limit=${learnt}`, signal).then((page) => page.nodes ?? []),
  })
  const nodes = client.getQueryData<NodeSummary[]>(['nodes']) ?? some.data ?? []
  return [...new Set(nodes.filter((node) => node.status === 'ready' && node.rpc_addr).map((node) => node.rpc_addr!))].filter((addr) => addr !== location.host).slice(0, elsewhereMax)
}

// Away stands above a page that hears nothing: how old it is, that it goes on by
// itself, and where else the same page can be had.
export function Away({ contact }: { contact: Contact }) {
  const { t } = useTranslation()
  const { pathname, search } = useLocation()
  const elsewhere = useElsewhere()
  const now = useNow()
  if (contact.state === 'live') return null
  const quiet = Math.max(0, now - contact.heard)
  const at = dateTime(new Date(contact.heard).toISOString(), true).slice(11)
  return (
    <p className="away" role="status">
      {t('shell.away', { time: at, age: span(quiet) })}
      {quiet > elsewhereAfter && elsewhere.length > 0 && <> {t('shell.elsewhere')} {elsewhere.map((addr) => <a key={addr} href={`https://${addr}${pathname}${search}`}>{addr}</a>)}</>}
    </p>
  )
}
