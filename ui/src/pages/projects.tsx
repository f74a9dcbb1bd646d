import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import { Cli } from '../parts/actions'
import { Button } from '../parts/controls'
import { Check } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { BoundsDialog } from '../parts/bounds'
import { idleOf, QuotaBars } from '../parts/quotas'
import { Failed, failing, useTitle, WordTag } from '../parts/states'
import { useRights } from '../rights'
import type { ProjectDetail, ProjectList } from '../types'

const people = ({ project }: ProjectDetail) => (project.admins?.length ?? 0) + (project.members?.length ?? 0) + (project.viewers?.length ?? 0)

// ProjectsPage lists the projects that whoever is signed in may see, with what they
// hold. Administrators make new ones.
export function ProjectsPage() {
  const { t } = useTranslation()
  useTitle(t('projects.title'))
  const may = useRights()
  const [archived, setArchived] = useState(false)
  const [making, setMaking] = useState(false)
  const read = useQuery<ProjectDetail[]>({
    queryKey: ['projects', 'list', archived], refetchInterval: 30_000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<ProjectList>('/v1/projects' + (archived ? '?archived=true' : ''), signal).then((list) => list.projects ?? []),
  })
  const all = read.data ?? []
  return (
    <div className="page">
      <div className="bar"><h1>{t('projects.title')}</h1><span className="grow" />{may('project_write') && <Button tone="first" onClick={() => setMaking(true)}>{t('projects.create')}</Button>}</div>
      {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : (
        <section className="card" aria-label={t('projects.title')}>
          <Check checked={archived} change={setArchived}>{t('projects.show_archived')}</Check>
          <Table<ProjectDetail> label={t('projects.title')} idOf={({ project }) => project.name} loading={read.isPending} rows={all} page={100} least={820} empty={t('projects.none')} columns={[
            { title: t('projects.name'), cell: ({ project }) => <><Link to={'/projects/' + part(project.name)}>{project.name}</Link> {project.archived && <WordTag tone="plain">{t('projects.archived')}</WordTag>}{project.description && <><br /><span className="quiet">{project.description}</span></>}</>, compare: (a, b) => a.project.name.localeCompare(b.project.name) },
            { title: t('people.members'), right: true, cell: (one) => people(one) || t('projects.everybody'), compare: (a, b) => people(a) - people(b) },
            { title: t('projects.quotas'), width: 260, cell: ({ quotas }) => (quotas?.length ? <QuotaBars quotas={quotas} /> : '–') },
            { title: t('projects.running'), right: true, cell: ({ running }) => running, compare: (a, b) => a.running - b.running },
            { title: t('projects.waiting'), right: true, cell: ({ queued }) => queued, compare: (a, b) => a.queued - b.queued },
            { title: t('projects.idle'), right: true, cell: ({ quotas }) => idleOf(quotas ?? []) || '–', compare: (a, b) => idleOf(a.quotas ?? []) - idleOf(b.quotas ?? []) },
          ]} />
          <Cli text={'nomadlike project list' + (archived ? ' -archived' : '')} />
        </section>
      )}
      {making && <BoundsDialog taken={all.map(({ project }) => project.name)} close={() => setMaking(false)} />}
    </div>
  )
}
