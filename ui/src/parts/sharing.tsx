import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, part } from '../api'
import { dateTime } from '../format'
import { useRights } from '../rights'
import type { Project, ProjectDetail, Settings, Shared } from '../types'
import { Cli } from './actions'
import { Refused } from './bounds'
import { Button } from './controls'
import { Dialog } from './controls/dialog'
import { WordTag } from './states'

interface Switch {
  project?: Project // of a project; else of the cluster
  off: boolean // as it is now
  by?: string
  at?: string
  shared: Shared
}

// Sharing says whether owners may let others of their project do something with their
// jobs: in the whole cluster, and in the project that is looked at. Administrators of the
// cluster switch it, told first what that closes.
export function Sharing({ settings, shared, project, detail }: { settings: Settings; shared: Shared; project?: Project; detail?: ProjectDetail }) {
  const { t } = useTranslation()
  const may = useRights()
  const [asks, setAsks] = useState<Switch>()
  const list: Switch[] = [
    { off: !!settings.no_sharing, by: settings.sharing_by, at: settings.sharing_at, shared },
    ...(project && detail?.shared ? [{ project, off: !!project.no_sharing, by: project.bounds_by, at: project.bounds_at, shared: detail.shared }] : []),
  ]
  return (
    <section className="card" aria-label={t('sharing.title')}>
      <h2>{t('sharing.title')}</h2>
      <p className="quiet">{t('sharing.about')}</p>
      <ul className="menu-list wide">
        {list.map((one) => {
          const whose = one.project ? t('limits.head_project', { name: one.project.name }) : t('limits.head_cluster')
          return (
            <li key={one.project?.name ?? ''} className="bar">
              <span className="grow"><b>{whose}</b> <WordTag tone={one.off ? 'busy' : 'good'}>{t(one.off ? 'sharing.off' : 'sharing.on')}</WordTag> <span className="quiet">{one.off && one.by && t('sharing.by', { by: one.by, time: dateTime(one.at) })} {t('sharing.shared', { count: one.shared.read_only + one.shared.read_write, live: one.shared.live })}</span></span>
              {may('settings') && <Button tone={one.off ? 'plain' : 'danger'} aria-label={t('sharing.act', { act: t(one.off ? 'sharing.switch_on' : 'sharing.switch_off'), whose })} onClick={() => setAsks(one)}>{t(one.off ? 'sharing.switch_on' : 'sharing.switch_off')}</Button>}
            </li>
          )
        })}
      </ul>
      {settings.no_sharing && project && !project.no_sharing && <p className="quiet">{t('sharing.above')}</p>}
      {asks && <SharingDialog of={asks} close={() => setAsks(undefined)} />}
    </section>
  )
}

function SharingDialog({ of: { project, off, shared }, close }: { of: Switch; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const act = t(off ? 'sharing.switch_on' : 'sharing.switch_off')
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await (project ? call('PUT', '/v1/projects/' + part(project.name), { ...project, no_sharing: !off }) : call('PUT', '/v1/settings', { no_sharing: !off }))
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['settings', 'projects', 'jobs', 'self'].includes(queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  const where = project ? t('limits.head_project', { name: project.name }) : t('limits.head_cluster')
  const jobs = shared.read_only + shared.read_write
  return (
    <Dialog title={t('sharing.act', { act, whose: where })} close={close} act={act} danger={!off} busy={busy} run={() => void run()}>
      <div className="stack">
        <p><strong>{t(off ? 'sharing.opens' : 'sharing.closes', { count: jobs })}</strong> {jobs > 0 && t('sharing.of_them', { live: shared.live, read: shared.read_only, write: shared.read_write })}</p>
        <ul className="plain">
          {(off ? ['as_owners', 'new_on'] : ['open_ends', 'new_off', 'not_touched', 'kept']).map((key) => <li key={key}>{t('sharing.' + key)}</li>)}
        </ul>
        <Refused error={error} />
        <Cli text={project ? `# no_sharing = ${!off}\nnomadlike project apply FILE` : 'nomadlike operator sharing ' + (off ? 'on' : 'off')} />
      </div>
    </Dialog>
  )
}
