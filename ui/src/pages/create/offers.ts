import { useQuery } from '@tanstack/react-query'
import { get } from '../../api'
import { number, size } from '../../format'
import type { Option } from '../../parts/controls/fields'
import { nodesQuery } from '../../parts/lists'
import { poolsQuery } from '../../parts/rail'
import type { DataDetail, DataList, ImageList, SecretList } from '../../types'

// What fields offer while one types: what there is in the cluster, by name. Whoever may
// not see something is offered nothing, and types it.

const asked = { retry: false, staleTime: 60_000 }
const option = (value: string, ...said: (string | undefined)[]): Option<string> => ({ value, label: said.filter(Boolean).join(' · ') })

export function usePools(): Option<string>[] {
  const pools = useQuery({ ...poolsQuery, ...asked }).data ?? []
  return pools.map((one) => option(one.pool.name, `${one.ready}/${one.nodes}`, one.models?.map((m) => `${m.model} ${m.free}/${m.total}`).join(', ')))
}

export function useNodes(): Option<string>[] {
  const nodes = useQuery({ ...nodesQuery, ...asked }).data ?? []
  return nodes.map((one) => option(one.name, one.pool, one.devices?.length ? `${one.devices.length} × ${one.devices[0]!.model}` : undefined))
}

// useDrivers are the versions of drivers that nodes have.
export function useDrivers(): Option<string>[] {
  const nodes = useQuery({ ...nodesQuery, ...asked }).data ?? []
  const found = new Map<string, number>()
  for (const node of nodes) for (const version of new Set(node.devices?.map((one) => one.driver_version))) if (version) found.set(version, (found.get(version) ?? 0) + 1)
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([version, count]) => option('>= ' + version, String(count)))
}

export function useImages(): Option<string>[] {
  const images = useQuery({ queryKey: ['images', 'offered'], ...asked, queryFn: ({ signal }) => get<ImageList>('/v1/images', signal) }).data?.images ?? []
  return images.filter((one) => !one.scope?.length || one.scope.includes('training')).map((one) => option(one.name, one.devices?.join(', '), one.bytes ? size(one.bytes) : undefined, one.description))
}

export function useSecretNames(): Option<string>[] {
  const secrets = useQuery({ queryKey: ['secrets', 'offered'], ...asked, queryFn: ({ signal }) => get<SecretList>('/v1/secrets', signal) }).data?.secrets ?? []
  return [...new Map(secrets.map((one) => [one.name, option(one.name)])).values()]
}

// useNamed is the named data of a kind: the project's, and what others let everybody use.
export function useNamed(kind: string): DataDetail[] {
  return useQuery({ queryKey: ['data', 'offered', kind], enabled: kind !== 'volume', ...asked, queryFn: ({ signal }) => get<DataList>(`/v1/data?kind=${kind}&all=true`, signal) }).data?.objects ?? []
}

export const namedOption = (one: DataDetail): Option<string> =>
  option(one.object.name, one.object.project, one.newest ? `v${one.newest}` : undefined, one.newest ? size(one.bytes) : undefined, one.newest ? number(one.files) : undefined, one.object.description)
