import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, call, get, part } from '../api'
import { quote } from '../format'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Choice, Field } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { errorText, Failed, failing, Loading, useTitle } from '../parts/states'
import { usersQuery } from '../parts/people'
import { useRights } from '../rights'
import { useSession } from '../shell'
import type { MemberRequest, Project, ProjectDetail } from '../types'

export interface Belongs {
  name: string
  role: string
}

const memberRoles = ['viewer', 'user', 'project-admin']

// membersOf are those that a project lists, by name.
export function membersOf(project?: Project): Belongs[] {
  const of = (role: string, names?: string[]) => (names ?? []).map((name) => ({ name, role }))
  return [...of('project-admin', project?.admins), ...of('user', project?.members), ...of('viewer', project?.viewers)].sort((a, b) => (a.name < b.name ? -1 : 1))
}

// ProjectPage is the project that requests act in: who belongs to it and as what. Who
// may changes that here.
export function ProjectPage() {
  const { t } = useTranslation()
  const who = useSession().data
  const name = who?.acting ?? ''
  useTitle(name)
  const read = useQuery({
    queryKey: ['projects', name],
    queryFn: ({ signal }) => get<ProjectDetail>('/v1/projects/' + part(name), signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null // a project without a record has no list
      throw error
    }),
  })
  if (read.isPending) return <Loading />
  return (
    <div className="page">
      <h1>{t('people.project', { project: name })}</h1>
      {read.data?.project?.description && <p className="truth">{read.data.project.description}</p>}
      {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : <Members project={name} members={membersOf(read.data?.project)} />}
    </div>
  )
}

function Members({ project, members }: { project: string; members: Belongs[] }) {
  const { t } = useTranslation()
  const rights = useRights()
  const may = rights('members')
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
        <Table<Belongs> label={t('people.members')} idOf={(one) => one.name} rows={members} page={100} least={accounts.length ? 560 : 340} columns={[
          { title: t('people.name'), cell: (one) => <>{one.name} {named.get(one.name)?.disabled && <span className="quiet">{t('people.disabled')}</span>}</>, compare: (a, b) => (a.name < b.name ? -1 : 1) },
          accounts.length > 0 && { title: t('people.display_name'), cell: (one) => named.get(one.name)?.display_name || '–' },
          {
            title: t('people.role'), compare: (a, b) => memberRoles.indexOf(a.role) - memberRoles.indexOf(b.role),
            cell: (one) => (
              <>
                {may ? <Choice bare small label={t('people.role_of', { user: one.name })} value={one.role} off={busy === one.name} change={(role) => void put({ user: one.name, role })} options={roles} /> : t('role.' + one.role)}
                {wrong?.name === one.name && <p role="alert" className="tone-bad">{errorText(wrong.error, t)}</p>}
              </>
            ),
          },
          may && { title: <span className="hidden">{t('people.remove')}</span>, right: true, cell: (one) => <Button small tone="danger" aria-label={t('people.remove_of', { user: one.name })} onClick={() => { setWrong(undefined); setLeaving(one) }}>{t('people.remove')}</Button> },
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
  const there = members.some((one) => one.name === user)
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
