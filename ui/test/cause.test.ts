import { expect, test } from 'vitest'
import { setCatalogue } from '../src/i18n'
import { recognised } from '../src/pages/job/cause'
import type { Event } from '../src/types'

const event = (id: string, attempt: number, params: Record<string, string>): Event => ({ id, attempt, params, index: 1, seq: 1, time: null, topic: 'alloc' })

test('what cards say of an attempt stands beside what its log says, and of no other attempt', () => {
  setCatalogue({ 'event.alloc.device_fault': 'rank {rank}: {cause}', 'event.alloc.device_fault_shared': 'somebody on the card of rank {rank}: {cause}', 'device.nvidia_xid_31': 'card {card}: XID 31' })
  const params = { rank: '0', cause: 'as the node has it', cause_id: 'device.nvidia_xid_31', 'cause.card': '3' }
  const events = [
    event('event.alloc.device_fault', 1, params), event('event.alloc.device_fault', 2, params), event('event.alloc.device_fault', 2, params),
    event('event.alloc.device_fault_shared', 2, params), event('event.alloc.environment_found', 2, { rule: 'log-x', text: 'an old script' }),
    event('event.alloc.environment_found', 2, { rule: 'shm', text: 'no error' }),
  ]
  expect(recognised(events, 2)).toEqual(['rank 0: card 3: XID 31', 'somebody on the card of rank 0: card 3: XID 31', 'an old script'])
})
