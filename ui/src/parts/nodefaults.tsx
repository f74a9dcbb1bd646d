import { useTranslation } from 'react-i18next'
import { dateTime } from '../format'
import { reasonText } from '../i18n'
import type { Event, NodeSummary } from '../types'
import { WordTag } from './states'

// kindOf is the kind of a fault, by which its cure is known: what stands before
// the slash of its name.
export const kindOf = (name: string) => name.split('/')[0]!
const cures = ['link', 'processes', 'disk', 'starts', 'plugin']

// sinceWhen is when a fault was first told, as far back as events are kept: the
// newest telling that nothing has ended.
export function sinceWhen(name: string, events: Event[]): string | null {
  let since: string | null = null
  for (const event of events) {
    if (event.params?.fault !== name) continue
    if (event.id === 'event.node.fault_over') since = null
    else if ((event.id === 'event.node.fault' || event.id === 'event.node.unfit') && !since) since = event.time ?? null
  }
  return since
}

// NodeFaults are the faults of a machine itself, what each means and what ends
// it: the node finds that out by itself, nobody clears them by hand.
export function NodeFaults({ node, events }: { node: NodeSummary; events: Event[] }) {
  const { t } = useTranslation()
  const faults = node.faults ?? []
  if (faults.length === 0) return null
  return (
    <section className="card" aria-label={t('node.faults')}>
      <h2>{t('node.faults')}</h2>
      <div className="wall">
        <table className="plain">
          <thead><tr><th scope="col">{t('node.fault')}</th><th scope="col">{t('job.cause')}</th><th scope="col">{t('node.fault_means')}</th><th scope="col">{t('node.fault_since')}</th><th scope="col">{t('node.cure')}</th></tr></thead>
          <tbody>
            {faults.map((f) => (
              <tr key={f.name}>
                <td><code>{f.name}</code></td>
                <td>{reasonText(f.reason)}</td>
                <td><WordTag tone={f.unfit ? 'bad' : 'busy'}>{f.unfit ? t('node.fault_unfit') : t('node.fault_noticed')}</WordTag></td>
                <td>{dateTime(sinceWhen(f.name, events))}</td>
                <td>{t('node.cure_' + (cures.includes(kindOf(f.name)) ? kindOf(f.name) : 'other'))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="quiet">{t('node.fault_return')}</p>
    </section>
  )
}
