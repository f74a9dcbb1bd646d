import type { JobState, Supports } from '../types'

// What one can do to a job.
export type Deed = 'stop' | 'finish' | 'pause' | 'continue' | 'throttle' | 'resume' | 'delete' | 'priority' | 'limit' | 'first' | 'last' | 'clone' | 'annotate'

// The verb of the policy that each deed needs.
export const verbs: Record<Deed, string> = { stop: 'stop', finish: 'control', pause: 'control', continue: 'control', throttle: 'control', resume: 'clone', delete: 'delete', priority: 'priority', limit: 'time-limit', first: 'move', last: 'move', clone: 'clone', annotate: 'annotate' }

// What a job says that it cannot bear.
const bears: Partial<Record<Deed, keyof Supports>> = { pause: 'pause', throttle: 'throttle', finish: 'finish_now', resume: 'resume' }

// deedsFor are the deeds that make sense in a state and, where it is known,
// that the reader may do and the job bears.
export function deedsFor(state: JobState, may?: string[] | null, supports?: Supports): Deed[] {
  return [...inState(state), 'annotate' as const].filter((deed) => (!may || may.includes(verbs[deed])) && !(bears[deed] && supports?.[bears[deed]] === false))
}

function inState(state: JobState): Deed[] {
  switch (state) {
    case 'queued':
      return ['stop', 'priority', 'limit', 'first', 'last']
    case 'starting':
    case 'stopping':
      return ['stop', 'limit']
    case 'running':
      return ['stop', 'pause', 'finish', 'throttle', 'limit']
    case 'paused':
      return ['stop', 'continue', 'finish', 'limit']
  }
  return ['resume', 'delete']
}

// fitting are those of several jobs that a deed makes sense for and that the
// reader may do it to, as far as that is known.
export const fitting = <J extends { state: JobState; may?: string[] | null }>(deed: Deed, jobs: J[]): J[] =>
  jobs.filter((job) => (deed === 'clone' ? !job.may || job.may.includes(verbs.clone) : deedsFor(job.state, job.may).includes(deed)))
