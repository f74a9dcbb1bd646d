import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { get } from '../api'
import { Cli } from '../parts/actions'
import { Table } from '../parts/controls/table'
import { EntryLink } from '../parts/entries'
import { dateTime } from '../format'
import { Note } from '../parts/controls'
import { Failed, useTitle, WordTag, failing } from '../parts/states'
import type { AutopilotHealth, Member, MemberList, ServerHealth } from '../types'

export function Servers() {
  const { t } = useTranslation()
  useTitle(t('menu.servers'))
  const health = useQuery({ queryKey: ['servers', 'health'], refetchInterval: 5000, queryFn: ({ signal }) => get<AutopilotHealth>('/v1/operator/autopilot', signal) })
  const members = useQuery({ queryKey: ['servers', 'members'], refetchInterval: 10_000, queryFn: ({ signal }) => get<MemberList>('/v1/servers', signal).then((m) => m.members ?? []) })
  const { certificates, versions } = { certificates: health.data?.certificates ?? [], versions: health.data?.versions ?? [] }
  const version = (id: string) => members.data?.find((m) => m.id === id)?.version ?? ''
  return (
    <div className="page">
      <h1>{t('menu.servers')}</h1>
      {failing(health) && <Failed error={health.error} retry={() => void health.refetch()} />}
      {health.data && <p className="truth">{t(health.data.healthy ? 'servers.healthy' : 'servers.unhealthy', { count: health.data.failure_tolerance })}</p>}
      {certificates.length > 0 && (
        <Note tone="warning" title={certificates.map((one) => t('servers.certificate_ends', { agent: one.name || one.id, time: dateTime(one.ends_at) })).join(' ')}>
          {t('servers.certificate_cure')} <EntryLink entry="certificates" />
        </Note>
      )}
      {versions.length > 1 && (
        <Note tone="warning" title={t('servers.versions')}>
          <ul className="plain">{versions.map(({ version, agents, names }) => <li key={version}>{t('servers.version_of', { version, count: agents, names: (names ?? []).join(', ') + (agents > (names ?? []).length ? ' …' : '') })}</li>)}</ul>
          <EntryLink entry="upgrade" />
        </Note>
      )}
      {!failing(health) && <section className="card" aria-label="Raft">
        <h2>Raft</h2>
        <Table<ServerHealth> label="Raft" idOf={(s) => s.id} loading={health.isPending} rows={health.data?.servers ?? []} least={600} columns={[
          { title: t('servers.name'), cell: (s) => s.name || s.id },
          { title: t('node.addr'), cell: (s) => s.addr },
          { title: t('servers.role'), cell: (s) => (s.leader ? <WordTag tone="good">{t('servers.leader')}</WordTag> : s.voter ? t('servers.voter') : t('servers.nonvoter')) },
          { title: t('job.status'), cell: (s) => <><WordTag tone={s.healthy ? 'good' : 'bad'}>{t(s.healthy ? 'servers.ok' : 'servers.bad')}</WordTag>{s.backup_failed && <><br /><span className="tone-busy">{t('servers.backup_failed', { reason: s.backup_failed })}</span></>}{s.disk_full && <><br /><span className="tone-bad">{t('servers.disk_full')}</span></>}</> },
          { title: t('servers.gossip'), cell: (s) => s.status && t('servers.gossip_' + s.status, s.status) },
          { title: t('cluster.version'), cell: (s) => version(s.id) },
        ]} />
        <Cli text="nomadlike operator autopilot health" />
      </section>}
      {(!failing(members) || !failing(health)) && <section className="card" aria-label={t('servers.members')}>
        <h2>{t('servers.members')}</h2>
        {failing(members) && <Failed error={members.error} />}
        <Table<Member> label={t('servers.members')} idOf={(m) => m.id} loading={members.isPending} rows={members.data ?? []} page={50} least={600} columns={[
          { title: t('servers.name'), cell: (m) => m.name },
          { title: t('servers.role'), cell: (m) => t('servers.role_' + m.role, m.role) },
          { title: t('node.addr'), cell: (m) => m.rpc_addr },
          { title: t('servers.gossip'), cell: (m) => t('servers.gossip_' + m.status, m.status) },
          { title: t('cluster.version'), cell: (m) => m.version },
          { title: t('servers.certificate'), cell: (m) => dateTime(m.certificate_ends_at) },
        ]} />
        <Cli text="nomadlike server members" />
      </section>}
    </div>
  )
}
