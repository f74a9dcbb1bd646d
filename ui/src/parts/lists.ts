import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { allJobs, call, get, part } from '../api'
import { failing } from './states'
import type { Available, JobList, JobSummary, NodeList, NodeSummary, Outlook, Timeline } from '../types'

// The list of jobs, which several pages read and the event stream keeps current; a
// page is shown before it is there where later is true (see Content of the shell).
export const useJobs = (enabled = true, later = false) => useQuery({ queryKey: ['jobs'], enabled, meta: { later }, queryFn: ({ signal }) => allJobs(signal), refetchInterval: 60_000 })

// What boot.js asks for as well.
export const firstJobs = '/v1/jobs?limit=60'

// firstQuery asks for the newest jobs, and keeps them as all of them when they
// are.
export const firstQuery = (client: QueryClient) => ({
  queryKey: ['first jobs'],
  gcTime: 10_000,
  staleTime: Infinity,
  retry: false,
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const page = await get<JobList>(firstJobs, signal)
    if (!page.next) client.setQueryData(['jobs'], page.jobs ?? [])
    return page.jobs ?? []
  },
})

// useJobsSoon has the newest jobs at once and all of them a moment later; until
// then partial is true.
export function useJobsSoon() {
  const client = useQueryClient()
  const have = client.getQueryData<JobSummary[]>(['jobs']) !== undefined
  const first = useQuery({ ...firstQuery(client), enabled: !have })
  const all = useJobs(have || first.isFetched, true)
  return { jobs: all.data ?? first.data, partial: all.data === undefined, error: failing({ error: all.error, data: all.data ?? first.data }), retry: () => void all.refetch() }
}

// The next hours of the nodes, as jobs say when they end.
export const hoursAhead = 12
export const timelineQuery = {
  queryKey: ['queue', 'timeline', '', hoursAhead],
  refetchInterval: 30_000,
  queryFn: ({ signal }: { signal: AbortSignal }) => get<Timeline>(`/v1/queue/timeline?hours=${hoursAhead}`, signal),
}

// How full the pools were and will be, and what could start now, as nomadlike
// outlook tells it.
export const outlookQuery = {
  queryKey: ['queue', 'outlook'],
  refetchInterval: 30_000,
  queryFn: ({ signal }: { signal: AbortSignal }) => get<Outlook>('/v1/outlook', signal),
}

const nodesMax = 5000

async function allNodes(signal?: AbortSignal): Promise<NodeSummary[]> {
  const nodes: NodeSummary[] = []
  let after = ''
  do {
    const page = await get<NodeList>(firstNodes + (after && '&after=' + part(after)), signal)
    nodes.push(...(page.nodes ?? []))
    after = page.next ?? ''
  } while (after && nodes.length < nodesMax)
  return nodes
}

// What boot.js asks for as well.
export const firstNodes = '/v1/nodes?limit=1000'

// nodesQuery asks for all nodes.
export const nodesQuery = { queryKey: ['nodes'], queryFn: ({ signal }: { signal: AbortSignal }) => allNodes(signal) }

// The smallest job asks which job uses each card; whoever may submit nothing
// sees that a card is in use, and not by whom.
const smallest = { job: { name: 'any', nodes: 1, resources: [{ cpu: 0.01, memory: 16 << 20 }], distributed: { mode: 'single' }, task: { driver: 'exec', command: 'true' } } }
export const cardsQuery = {
  queryKey: ['nodes', 'cards'],
  retry: false,
  meta: { later: true },
  queryFn: ({ signal }: { signal: AbortSignal }) => call<Available>('POST', '/v1/nodes/available', smallest, signal).catch(() => ({ nodes: [], specs: [], models: [] }) as Available),
}
