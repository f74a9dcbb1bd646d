import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useParams } from 'react-router'
import { ApiError, call, get, part } from '../api'
import { dateTime, number, quote } from '../format'
import { Cli } from '../parts/actions'
import { Ceilings } from '../parts/ceilings'
import { ArchiveDialog, Bounds, BoundsDialog } from '../parts/bounds'
import { Button, Note, Segments } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Choice, Field } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { Days, zone } from '../parts/days'
import { errorText, Failed, failing, Loading, useTitle } from '../parts/states'
import { usersQuery } from '../parts/people'
import { idleOf, QuotaBars } from '../parts/quotas'
import { Services } from '../parts/services'
import { useRights } from '../rights'
import { useSession } from '../shell'
import type { MemberRequest, Project, ProjectDetail, ProjectUse, QuotaUse, UserUse } from '../types'

export interface Belongs {
  name: string
  role: string
  provider?: string // whose rules gave it; else administrators did
}

const memberRoles = ['viewer', 'user', 'project-admin']

// membersOf are those that a project lists, and those that the rules of a provider let
// in, by name.
export function membersOf(project?: Project): Belongs[] {
  const of = (role: string, names?: string[]) => (names ?? []).map((name) => ({ name, role }))
  const granted = (project?.granted ?? []).map(({ user, role, provider }) => ({ name: user, role, provider }))
  return [...of('project-admin', project?.admins), ...of('user', project?.members), ...of('viewer', project?.viewers), ...granted].sort((a, b) => (a.name < b.name ? -1 : 1))
}

// ProjectPage is a project: the one that its address names, else the one that requests
// act in. It shows what the project has, used and may, and who belongs to it; whoever
// may changes that here.
export function ProjectPage() {
  const { t } = useTranslation()
  const who = useSession().data
  const name = useParams().name ?? who?.acting ?? ''
  const may = useRights()
  const [asks, setAsks] = useState<'bounds' | 'archive'>()
  const close = () => setAsks(undefined)
  useTitle(name)
  const read = useQuery({
    queryKey: ['projects', name], refetchInterval: 30_000,
    queryFn: ({ signal }) => get<ProjectDetail>('/v1/projects/' + part(name), signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404 && name === who?.acting) return null // a project without a record has no list
      throw error
    }),
  })
  if (read.isPending) return <Loading />
  const detail = read.data
  const project = detail?.project
  const bounds = may('project_write')
  const asActing = name === who?.acting
  return (
    <div className="page">
      <div className="bar">
        <h1>{t('people.project', { project: name })}</h1>
        <span className="grow" />
        <Link to="/use">{t('use.title')}</Link> <Link to="/projects">{t('projects.title')}</Link>
        {bounds && project && <Button onClick={() => setAsks('bounds')}>{t('projects.change')}</Button>}
        {bounds && detail && <Button tone={project?.archived ? 'plain' : 'danger'} onClick={() => setAsks('archive')}>{t(project?.archived ? 'projects.unarchive' : 'projects.archive')}</Button>}
      </div>
      {project?.description && <p className="truth">{project.description}</p>}
      {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : (
        <>
          {project?.archived && <Note tone="warning" title={t('projects.archived_by', { by: project.archived_by, time: dateTime(project.archived_at) })}>{t('projects.archived_about')}</Note>}
          {detail && <p className="truth">{t('projects.truth', { running: detail.running, queued: detail.queued })}{idleOf(detail.quotas ?? []) > 0 && ' ' + t('projects.truth_idle', { count: idleOf(detail.quotas ?? []) })}</p>}
          {detail && <Used key={name} project={name} quotas={detail.quotas ?? []} />}
          <Members project={name} members={membersOf(project)} mine={asActing || bounds} />
          {asActing && <Services project={name} may={may('members')} />}
          {project && (
            <section className="card" aria-label={t('projects.rules')}>
              <h2>{t('projects.rules')}</h2>
              <Bounds project={project} />
              <h3>{t('limits.counts')}</h3>
              <Ceilings ceilings={detail?.effective ?? []} />
              {!bounds && <p className="quiet">{t('projects.whose')}</p>}
              <Cli text={'nomadlike project status ' + quote(name)} />
            </section>
          )}
        </>
      )}
      {asks === 'bounds' && project && <BoundsDialog project={project} close={close} />}
      {asks === 'archive' && detail && <ArchiveDialog detail={detail} close={close} />}
    </div>
  )
}

// Used shows what the project holds of its quotas, and what it used by day and by user.
function Used({ project, quotas }: { project: string; quotas: QuotaUse[] }) {
  const { t } = useTranslation()
  const [days, setDays] = useState('7')
  const read = useQuery({
    queryKey: ['projects', project, 'usage', days], refetchInterval: 60_000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<ProjectUse>(`/v1/projects/${part(project)}/usage?days=${days}&zone=${zone()}`, signal),
  })
  const users = read.data?.users ?? []
  return (
    <>
      <section className="card" aria-label={t('projects.quotas')}>
        <h2>{t('projects.quotas')}</h2>
        {quotas.length ? <QuotaBars quotas={quotas} /> : <p className="quiet">{t('projects.no_quota')}</p>}
      </section>
      <section className="card" aria-label={t('use.hours')}>
        <div className="bar"><h2>{t('use.hours')}</h2><span className="grow" /><Segments label={t('use.range')} value={days} change={setDays} options={['7', '14', '31'].map((value) => ({ value, label: t('use.days', { count: Number(value) }) }))} /></div>
        {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : read.data?.use && <Days use={read.data.use} label={t('use.hours')} />}
        {users.length > 0 && (
          <>
            <h3>{t('projects.by_user')}</h3>
            <Table<UserUse> label={t('projects.by_user')} idOf={(one) => one.user} rows={users} page={20} least={340} columns={[
              { title: t('people.name'), cell: (one) => one.user, compare: (a, b) => a.user.localeCompare(b.user) },
              { title: t('use.card_hours'), right: true, cell: (one) => number(one.device_hours), compare: (a, b) => a.device_hours - b.device_hours },
              { title: t('use.core_hours'), right: true, cell: (one) => number(one.cpu_hours), compare: (a, b) => a.cpu_hours - b.cpu_hours },
            ]} />
          </>
        )}
        <Cli text={`nomadlike project usage ${days === '7' ? '' : `-days ${days} `}${quote(project)}`} />
      </section>
    </>
  )
}

// What may be changed of a project that requests do not act in is an administrator's
// of the cluster alone.
function Members({ project, members, mine }: { project: string; members: Belongs[]; mine: boolean }) {
  const { t } = useTranslation()
  const rights = useRights()
  const may = mine && rights('members')
  const client = useQueryClient()
  const [wrong, setWrong] = useState<{ name: string; error: unknown }>()
  const [busy, setBusy] = useState('')
  const [leaving, setLeaving] = useState<Belongs>()
  const accounts = useQuery({ ...usersQuery, enabled: rights('user_list'), retry: false }).data ?? []
  const named = new Map(accounts.map(({ user }) => [user.name, user]))
  const put = async (request: MemberRequest): Promise<boolean> => {
    setBusy(request.user)
    setWrong(undefined)
    try {
      await call('POST', `/v1/projects/${part(project)}/members`, request)
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['projects', 'users', 'session'].includes(queryKey[0] as string) })
      return true
    } catch (error) {
      setWrong({ name: request.user, error })
      return false
    } finally {
      setBusy('')
    }
  }
  const roles = memberRoles.map((value) => ({ value, label: t('role.' + value) }))
  return (
    <section className="card" aria-label={t('people.members')}>
      <h2>{t('people.members')}</h2>
      {members.length === 0 ? <Note tone="info" title={t('people.open')}>{may && t('people.first_closes')}</Note> : (
        <Table<Belongs> label={t('people.members')} idOf={(one) => one.name + ' ' + (one.provider ?? '')} rows={members} page={100} least={accounts.length ? 560 : 340} columns={[
          { title: t('people.name'), cell: (one) => <>{one.name} {named.get(one.name)?.disabled && <span className="quiet">{t('people.disabled')}</span>}</>, compare: (a, b) => (a.name < b.name ? -1 : 1) },
          accounts.length > 0 && { title: t('people.display_name'), cell: (one) => named.get(one.name)?.display_name || '–' },
          {
            title: t('people.role'), compare: (a, b) => memberRoles.indexOf(a.role) - memberRoles.indexOf(b.role),
            cell: (one) => (
              <>
                {one.provider ? <>{t('role.' + one.role)} <span className="quiet">{t('people.granted', { provider: one.provider })}</span></> : may ? <Choice bare small label={t('people.role_of', { user: one.name })} value={one.role} off={busy === one.name} change={(role) => void put({ user: one.name, role })} options={roles} /> : t('role.' + one.role)}
                {wrong?.name === one.name && !one.provider && <p role="alert" className="tone-bad">{errorText(wrong.error, t)}</p>}
              </>
            ),
          },
          may && { title: <span className="hidden">{t('people.remove')}</span>, right: true, cell: (one) => !one.provider && <Button small tone="danger" aria-label={t('people.remove_of', { user: one.name })} onClick={() => { setWrong(undefined); setLeaving(one) }}>{t('people.remove')}</Button> },
        ]} />
      )}
      {may && <Add project={project} members={members} put={put} known={accounts.filter(({ user }) => !user.disabled).map(({ user }) => user.name)} roles={roles} error={wrong && !members.some((one) => one.name === wrong.name) ? wrong.error : undefined} clear={() => setWrong(undefined)} />}
      {leaving && (
        <Dialog title={t('people.remove_of', { user: leaving.name })} close={() => setLeaving(undefined)} act={t('people.remove')} danger busy={busy !== ''} run={() => void put({ user: leaving.name }).then((done) => done && setLeaving(undefined))}>
          <div className="stack">
            <p>{t(members.length === 1 ? 'people.removes_last' : 'people.removes', { user: leaving.name, project })}</p>
            {wrong?.name === leaving.name && <Note tone="error" title={errorText(wrong.error, t)} />}
            <Cli text={`nomadlike project member remove ${quote(project)} ${quote(leaving.name)}`} />
          </div>
        </Dialog>
      )}
    </section>
  )
}

function Add({ project, members, known, roles, put, error, clear }: { project: string; members: Belongs[]; known: string[]; roles: { value: string; label: string }[]; put: (request: MemberRequest) => Promise<boolean>; error: unknown; clear: () => void }) {
  const { t } = useTranslation()
  const [name, setName] = useState('')
  const [role, setRole] = useState('user')
  const list = useId()
  const says = useId()
  const user = name.trim()
  const there = members.some((one) => one.name === user && !one.provider)
  const problem = there ? t('people.member_already', { user }) : error === undefined ? '' : errorText(error, t)
  const add = (event: React.FormEvent) => {
    event.preventDefault()
    if (user && !there) void put({ user, role }).then((done) => done && setName(''))
  }
  return (
    <form className="stack" onSubmit={add} aria-label={t('people.add')}>
      <h3>{t('people.add')}</h3>
      <div className="bar ends">
        <Field entry="member" label={t('people.name')} value={name} change={(value) => { setName(value); clear() }} wrong={problem !== ''} list={list} autoComplete="off" spellCheck={false} aria-describedby={problem ? says : undefined} />
        <datalist id={list}>{known.filter((one) => !members.some((other) => other.name === one)).map((one) => <option key={one} value={one} />)}</datalist>
        <Choice entry="member.role" label={t('people.role')} value={role} change={setRole} options={roles} />
        <Button tone="first" type="submit" disabled={!user || there}>{t('people.add')}</Button>
      </div>
      {problem && <p id={says} role="alert" className="tone-bad">{problem}</p>}
      <Cli text={`nomadlike project member set -role ${role} ${quote(project)} ${quote(user || 'USER')}`} />
    </form>
  )
}
