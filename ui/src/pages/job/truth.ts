import type { TFunction } from 'i18next'
import { clock, since, spelled } from '../../format'
import { reasonText } from '../../i18n'
import { startText } from '../../parts/starts'
import type { Allocation, Attempt, JobDetail, JobMetrics, Subjob, When } from '../../types'

// stepOf is how far an attempt has come, by what its ranks print of themselves.
export function stepOf(metrics: JobMetrics | undefined, attempt: Attempt | undefined): number | undefined {
  const steps = (metrics?.ranks ?? []).filter((rank) => rank.attempt === attempt?.number).flatMap((rank) => (rank.series ?? []).flatMap((series) => (series.points ?? []).map((point) => point.step)))
  return steps.length ? Math.max(...steps) : undefined
}

// truth says in one sentence how a job stands.
export function truth(t: TFunction, detail: JobDetail, standing: Subjob | undefined, ranks: Allocation[], newest: Attempt | undefined, now: number, step?: number, start?: When): string {
  const nodes = t('short.nodes', { count: ranks.length || detail.job.nodes })
  const cards = ranks.reduce((sum, rank) => sum + (rank.devices?.length ?? 0), 0)
  const where = cards ? nodes + ' ' + t('short.cards', { count: cards }) : nodes
  const faults = (standing?.restarts ?? 0) + (standing?.infra_losses ?? 0)
  const tail = faults ? t('truth.faults', { restarts: standing?.restarts ?? 0, losses: standing?.infra_losses ?? 0 }) : ''
  const reason = reasonText(detail.reason)
  switch (detail.state) {
    case 'queued': {
      const why = (detail.wait?.id === 'scheduler.restart_delay' && detail.reason ? [reasonText(detail.wait), reasonText(detail.reason)].join(': ') : reasonText(detail.wait)) || t('truth.no_reason')
      const time = since(standing?.queued_at ?? detail.job.submitted_at, null, now)
      return (start ? t('truth.waits', { start: startText(t, start, now), time, reason: why }) : t('truth.queued', { time, reason: why })) + tail
    }
    case 'starting': {
      const steps = ranks.filter((rank) => rank.step && rank.status === 'preparing').map((rank) => rank.step!)
      return t('truth.starting', { where, attempt: newest?.number ?? detail.attempt, step: steps[0] ? t('step.' + steps[0], steps[0]) : t('step.barrier') }) + tail
    }
    case 'running': {
      const throttle = detail.control?.idle && detail.control.idle !== '0s' ? t('truth.throttled', { busy: detail.control.busy, idle: detail.control.idle }) : ''
      const limit = detail.job.time_limit && newest?.running_at ? t('truth.limit', { limit: spelled(detail.job.time_limit) }) : ''
      const saved = newest?.checkpoint_at ? t('truth.checkpoint', { time: since(newest.checkpoint_at, null, now) }) : ''
      return t('truth.running', { time: since(detail.started_at, null, now), where, attempt: newest?.number ?? detail.attempt }) + (step === undefined ? '' : t('truth.step', { step })) + saved + limit + throttle + (tail || t('truth.no_faults'))
    }
    case 'paused':
      return t('truth.paused', { where }) + (newest?.paused_at ? t('truth.paused_since', { time: clock(newest.paused_at, now), length: since(newest.paused_at, null, now) }) : '') + (reason ? t('truth.because', { reason }) : '') + tail
    case 'stopping':
      return t('truth.stopping', { reason, where }) + tail
    default:
      return (
        t('truth.' + detail.state, { time: clock(detail.finished_at, now), took: since(detail.started_at, detail.finished_at, now), code: detail.exit_code }) +
        (reason && detail.state !== 'succeeded' ? t('truth.because', { reason }) : '') + followers(t, detail, ranks, newest) + tail
      )
  }
}


// followers tells of the ranks that were ended because one of them failed.
function followers(t: TFunction, detail: JobDetail, ranks: Allocation[], newest: Attempt | undefined): string {
  if (detail.state !== 'failed' || !newest?.first_failed) return ''
  const count = ranks.filter((rank) => rank.id !== newest.first_failed && ['failed', 'killed', 'lost'].includes(rank.status)).length
  return count ? t('truth.followed', { count }) : ''
}
