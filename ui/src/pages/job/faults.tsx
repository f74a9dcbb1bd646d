import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import type { TFunction } from 'i18next'
import { get, part } from '../../api'
import { clock, dateTime, lengthOf, quote, spelled } from '../../format'
import { reasonText } from '../../i18n'
import { Cli } from '../../parts/actions'
import { pointAt } from '../../parts/cursor'
import { Scroll } from '../../parts/controls/table'
import { Failed, failing, Loading } from '../../parts/states'
import type { Fault, JobFaults, Loss } from '../../types'

// useFaults reads the stories of a job's faults. enabled: it may have had one.
export const useFaults = (id: string, enabled: boolean) => useQuery({ queryKey: ['job', id, 'faults'], enabled, retry: false, queryFn: ({ signal }) => get<JobFaults>(`/v1/jobs/${part(id)}/faults`, signal) })

// hoursText writes hours of cards, or of nodes where there are no cards.
export function hoursText(t: TFunction, loss: Pick<Loss, 'devices'>, hours: number): string {
  const text = hours > 0 && hours < 0.01 ? '< 0.01' : hours.toFixed(hours < 10 ? 2 : 0)
  return t(loss.devices ? 'faults.card_hours' : 'faults.node_hours', { hours: text })
}

// headOf says in one line what a fault was and what it cost.
export function headOf(t: TFunction, fault: Fault): string {
  const began = fault.moments?.find((moment) => moment.at)?.at
  const went = [...(fault.moments ?? [])].reverse().find((moment) => moment.at && (moment.stage === 'stepped' || moment.stage === 'running'))
  const parts = [reasonText(fault.cause) || t('outcome.' + fault.outcome)]
  if (began && went?.at) parts.push(t('faults.on_after', { time: spelled(`${(Date.parse(went.at) - Date.parse(began)) / 1000}s`) }))
  else if (!fault.next && !fault.loss.open) parts.push(t('faults.final'))
  if (fault.loss.steps) parts.push(t('faults.again', { count: fault.loss.steps }))
  parts.push(t('faults.lost', { hours: hoursText(t, fault.loss, fault.loss.hours) }))
  return parts.join(' · ')
}

// lossText tells of what the loss is made.
export function lossText(t: TFunction, loss: Loss): string {
  const parts = [t(loss.saved ? 'faults.work_saved' : 'faults.work', { time: spelled(loss.work) || '0 s' }), t('faults.around', { stopping: brief(loss.stopping), starting: brief(loss.starting) })]
  if (lengthOf(loss.waiting) >= 1000) parts.push(t('faults.waited', { time: brief(loss.waiting) }))
  if (loss.open) parts.push(t('faults.open'))
  return parts.join(' · ')
}

const brief = (text: string) => (lengthOf(text) ? spelled(text) : '0 s')

// took writes how long after the moment before something was: milliseconds count.
function took(text?: string): string {
  const ms = text ? lengthOf(text) : 0
  return !ms ? '' : '+' + (ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : spelled(text!))
}

// FaultStories are the faults of a job, the newest first and open.
export function FaultStories({ id, name, subjob, enabled }: { id: string; name: string; subjob: number; enabled: boolean }) {
  const { t } = useTranslation()
  const found = useFaults(id, enabled)
  if (!enabled) return null
  if (failing(found)) return <section className="card" aria-label={t('faults.title')}><h2>{t('faults.title')}</h2><Failed error={found.error} retry={() => void found.refetch()} /></section>
  if (!found.data) return <section className="card" aria-label={t('faults.title')}><h2>{t('faults.title')}</h2><Loading /></section>
  const faults = (found.data.faults ?? []).filter((fault) => fault.subjob === subjob).reverse()
  if (faults.length === 0) return null
  const lost = faults.reduce((sum, fault) => sum + fault.loss.hours, 0)
  return (
    <section className="card" aria-label={t('faults.title')}>
      <div className="bar"><h2>{t('faults.title')}</h2><span className="quiet">{t('faults.count', { count: faults.length })} · {t('faults.lost', { hours: hoursText(t, faults[0]!.loss, lost) })}</span></div>
      {faults.map((fault, i) => <Story key={fault.attempt} fault={fault} open={i === 0} />)}
      {(found.data.away ?? []).length > 0 && <p className="quiet">{t('faults.away', { nodes: found.data.away!.join(', ') })}</p>}
      <Cli text={`nomadlike job history -faults ${quote(name)}`} />
    </section>
  )
}

function Story({ fault, open }: { fault: Fault; open: boolean }) {
  const { t } = useTranslation()
  return (
    <details className="fault" open={open}>
      <summary><strong className="tone-bad">{t('job.attempt', { number: fault.attempt })}</strong> {headOf(t, fault)}</summary>
      <Scroll label={t('faults.moments', { attempt: fault.attempt })}>
        <table className="plain">
          <thead><tr><th scope="col">{t('faults.stage')}</th><th scope="col">{t('curves.time')}</th><th scope="col" className="took">{t('faults.took')}</th><th scope="col">{t('faults.what')}</th></tr></thead>
          <tbody>
            {(fault.moments ?? []).map((moment, i) => (
              <tr key={i}>
                <th scope="row">{t('faults.stages.' + moment.stage)}</th>
                <td className="nowrap">{moment.at ? <time dateTime={moment.at} title={dateTime(moment.at, true)} onPointerEnter={() => pointAt(Date.parse(moment.at!) / 1000)}>{clock(moment.at).length > 5 ? dateTime(moment.at, true) : dateTime(moment.at, true).slice(11)}</time> : '–'}{moment.took && <small>{took(moment.took)}</small>}</td>
                <td className="nowrap took">{took(moment.took)}</td>
                <td className={moment.at ? undefined : 'quiet'}>{reasonText(moment)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p className="quiet">{lossText(t, fault.loss)}</p>
    </details>
  )
}
