import { useTranslation } from 'react-i18next'
import { dateTime } from '../format'
import { reasonText } from '../i18n'
import type { Event, NodeSummary } from '../types'
import { Table } from './controls/table'
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
      <Table label={t('node.faults')} idOf={(f) => f.name} rows={faults} least={760} columns={[
        { title: t('node.fault'), cell: (f) => <code>{f.name}</code> },
        { title: t('job.cause'), cell: (f) => reasonText(f.reason) },
        { title: t('node.fault_means'), cell: (f) => <WordTag tone={f.unfit ? 'bad' : 'busy'}>{f.unfit ? t('node.fault_unfit') : t('node.fault_noticed')}</WordTag> },
        { title: t('node.fault_since'), cell: (f) => dateTime(sinceWhen(f.name, events)) },
        { title: t('node.cure'), cell: (f) => t('node.cure_' + (cures.includes(kindOf(f.name)) ? kindOf(f.name) : 'other')) },
      ]} />
      <p className="quiet">{t('node.fault_return')}</p>
    </section>
  )
}
