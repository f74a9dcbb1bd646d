import { lengthOf, millis, number, span } from '../format'
import type { Machine, MachineWork, Victim, VIPMachine } from '../types'

// What the page for VIP jobs says of machines, worked out of what the server lists:
// pure, so that tests can say what it is.

export type Busy = '' | 'wait' | 'ask' | 'kill'

// chosenOf is what a job file says of a machine, '' for one that it does not choose.
export function chosenOf(chosen: VIPMachine[], machine: Machine): Busy {
  const one = chosen.find((m) => m.node === machine.name || m.node === machine.id)
  return one ? ((one.busy ?? 'wait') as Busy) : ''
}

// choose is what a job file says when one of its machines is dealt with otherwise.
export function choose(chosen: VIPMachine[], machine: Machine, busy: Busy): VIPMachine[] {
  const at = chosen.findIndex((m) => m.node === machine.name || m.node === machine.id)
  if (busy === '') return chosen.filter((_, i) => i !== at)
  return at < 0 ? [...chosen, { node: machine.name, busy }] : chosen.map((m, i) => (i === at ? { node: m.node, busy } : m))
}

// choicesOf are the ways to deal with a machine: one that is free is taken, and the
// jobs of another are waited for, ended, or their owners are asked. VIP jobs and what ends anyway cannot be
// ended for others.
export function choicesOf(machine: Machine): Busy[] {
  const ends = (machine.work ?? []).some((w) => !w.vip && !w.ending)
  return ends ? ['', 'wait', 'ask', 'kill'] : ['', 'wait']
}

// keepOrder lists machines as they were listed before, so that none moves while one
// reads; new ones come last.
export function keepOrder(machines: Machine[], before: string[]): Machine[] {
  const place = new Map(before.map((id, i) => [id, i]))
  return machines.map((m, i) => ({ m, at: place.get(m.id) ?? before.length + i })).sort((a, b) => a.at - b.at).map(({ m }) => m)
}

// doneOf is how far a job is by the forecast of its end, 0 to 1.
export function doneOf(work: MachineWork, now: number): number | undefined {
  const began = millis(work.running_at)
  const end = millis(work.p50)
  return began && end > began ? Math.min(0.99, Math.max(0, (now - began) / (end - began))) : undefined
}

// cardHours spells lost work: that of cards in hours of cards, else in time. A gang
// has so many cards, and all of it ends together.
export function cardHours(lost: string | undefined, cards: number | undefined, hours: (count: string) => string): string {
  const ms = lengthOf(lost ?? '')
  if (!cards) return span(ms)
  const all = (ms * cards) / 3_600_000
  return hours(number(all >= 0.995 ? Math.round(all * 10) / 10 : Math.ceil(all * 100) / 100))
}

// lostOf sums up what ending gangs would lose, each with all of its cards.
export function lostOf(victims: Victim[], machines: Machine[]): { hours: number; time: number } {
  const works = machines.flatMap((m) => m.work ?? [])
  let hours = 0
  let time = 0
  for (const victim of victims) {
    const cards = works.find((w) => w.job.id === victim.job_id && (w.job.subjob ?? 0) === victim.subjob)?.gang_devices ?? 0
    if (cards) hours += (lengthOf(victim.lost) * cards) / 3_600_000
    else time += lengthOf(victim.lost)
  }
  return { hours, time }
}

// fits reports whether a machine is what somebody looks for: part of its name, its
// pool, a model of its cards, a job on it or its owner.
export function fits(machine: Machine, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const said = [machine.name, machine.pool, ...(machine.devices ?? []).map((d) => d.model ?? ''), ...(machine.work ?? []).flatMap((w) => [w.job.name ?? '', w.job.user ?? ''])].join(' ').toLowerCase()
  return words.every((word) => said.includes(word))
}
