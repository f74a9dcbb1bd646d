import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState, type RefObject } from 'react'
import { useTranslation } from 'react-i18next'
import { act } from '../acting'
import { get } from '../api'
import { operates, type Who } from '../rights'
import type { ProjectList } from '../types'
import { errorText } from './states'

export interface Place {
  project: string
  role: string // there
}

// placesOf are the projects that somebody may act in, by name: those that they belong
// to, and all where they look after the cluster.
export function placesOf(who: Who, projects: string[] = []): Place[] {
  const of = new Map(projects.map((project) => [project, who.cluster ?? who.role]))
  for (const { project, role } of who.memberships) of.set(project, who.cluster === 'admin' ? 'admin' : role)
  of.set(who.acting, who.role)
  return [...of].map(([project, role]) => ({ project, role })).sort((a, b) => (a.project < b.project ? -1 : 1))
}

const foundFrom = 8 // projects from which on one may look for a name

// Switch lists the projects that one may act in, below its button. Arrows go from one
// to the next, Escape leaves.
export default function Switch({ who, within, close }: { who: Who; within: RefObject<HTMLElement | null>; close: () => void }) {
  const { t } = useTranslation()
  const list = useRef<HTMLDivElement>(null)
  const [text, setText] = useState('')
  const wide = operates(who)
  const all = useQuery({ queryKey: ['projects', 'names'], enabled: wide, retry: false, queryFn: ({ signal }) => get<ProjectList>('/v1/projects', signal).then((of) => (of.projects ?? []).map(({ project }) => project.name)) })
  const places = placesOf(who, all.data)
  const shown = places.filter(({ project }) => project.includes(text.trim().toLowerCase()))
  const asks = places.length >= foundFrom
  useEffect(() => {
    list.current?.querySelector<HTMLElement>('input, [aria-pressed=true]')?.focus()
  }, [asks])
  useEffect(() => {
    const away = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key !== 'Escape' : within.current?.contains(event.target as Node)) return
      close()
      if (event instanceof KeyboardEvent) within.current?.querySelector('button')?.focus()
    }
    addEventListener('keydown', away)
    addEventListener('pointerdown', away)
    return () => {
      removeEventListener('keydown', away)
      removeEventListener('pointerdown', away)
    }
  }, []) // eslint-disable-line react-hooks/exhaustive-deps
  const move = (event: React.KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const rows = [...list.current!.querySelectorAll<HTMLElement>('input, button')]
    rows[(rows.indexOf(document.activeElement as HTMLElement) + by + rows.length) % rows.length]?.focus()
  }
  const choose = (project: string) => {
    close()
    within.current?.querySelector('button')?.focus()
    if (project !== who.acting) act(project)
  }
  return (
    <div ref={list} className="card unfolded places" role="dialog" aria-label={t('acting.title')} onKeyDown={move}>
      <p className="quiet">{t('people.acting_about')}</p>
      {asks && <input className="field" type="search" aria-label={t('people.find')} placeholder={t('people.find')} value={text} onChange={(event) => setText(event.target.value)} />}
      {all.error && <p role="alert" className="tone-bad">{errorText(all.error, t)}</p>}
      <ul className="menu-list">
        {shown.map(({ project, role }) => (
          <li key={project}><button type="button" aria-pressed={project === who.acting} onClick={() => choose(project)}><span>{project}</span> <span className="quiet">{t('role.' + role, role)}</span></button></li>
        ))}
      </ul>
      {shown.length === 0 && <p className="quiet" role="status">{t('people.none_found')}</p>}
    </div>
  )
}
