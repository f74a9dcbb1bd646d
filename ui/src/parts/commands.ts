import { mayDo, type Right, type Who } from '../rights'
import type { JobSummary, NodeSummary, Token } from '../types'
import { deedsFor, verbs, type Deed } from './deeds'
import type { Entry } from './entries'

// What the palette offers besides pages, jobs and nodes, decided without a page.

// deedsOf are what somebody may do to a job of a list, which does not say so itself.
// What a checkpoint is needed for is offered on the page of the job.
export function deedsOf(job: Pick<JobSummary, 'state' | 'user' | 'project'>, who?: Pick<Who, keyof Token | 'cluster'> | null): Deed[] {
  const may = mayDo(job, who)
  const deeds = deedsFor(job.state, may).filter((deed) => deed !== 'resume')
  return may.includes(verbs.clone) ? [...deeds, 'clone'] : deeds
}

// NodeDeed is what operators do to a node.
export type NodeDeed = 'cordon' | 'uncordon' | 'drain'

// nodeDeedsOf are those that make sense for a node as it is.
export function nodeDeedsOf(node: Pick<NodeSummary, 'eligibility'>): NodeDeed[] {
  return node.eligibility === 'eligible' ? ['drain', 'cordon'] : ['uncordon']
}

// A setting: its name, who may change it, and where it is: a page, or an entry of the
// reference for what files and the command line set.
export interface Setting {
  label: string // of the catalogue
  also?: string // its name in files and commands
  right?: Right
  page?: string
  entry?: Entry
}

// settings are all that a person may look for.
export const settings: Setting[] = [
  { label: 'jobs.saved', page: '/jobs' },
  { label: 'jobs.columns', page: '/jobs' },
  { label: 'maintenance.title', right: 'drain', page: '/queue?maintain' },
  { label: 'settings.token', also: 'token create', right: 'token_write', entry: 'token' },
  { label: 'settings.join', also: 'token join create', right: 'token_write', entry: 'join' },
  { label: 'settings.quota', also: 'project quota', right: 'project_write', entry: 'project.quota' },
  { label: 'settings.members', also: 'project members', right: 'project_write', entry: 'project.members' },
  { label: 'settings.ceilings', also: 'operator ceilings', right: 'settings', page: '/limits' },
  { label: 'settings.sharing', also: 'operator sharing no_sharing access', right: 'settings', page: '/limits' },
  { label: 'settings.secret', also: 'secret set', right: 'secrets', page: '/secrets' },
  { label: 'settings.keys', also: 'operator secrets rotate', right: 'operator_read', page: '/secrets' },
  { label: 'settings.pool', also: 'pool', right: 'pool_write', entry: 'pool' },
  { label: 'settings.agent', also: 'agent.hcl', right: 'operator_read', entry: 'agent' },
  { label: 'jobs.nodes', also: 'nodes', right: 'submit', entry: 'job.nodes' },
  { label: 'create.mode', also: 'distributed', right: 'submit', entry: 'job.distributed' },
  { label: 'jobs.priority', also: 'priority', right: 'submit', entry: 'job.priority' },
  { label: 'jobs.pool', also: 'placement pool', right: 'submit', entry: 'job.pool' },
  { label: 'job.limit', also: 'time_limit', right: 'submit', entry: 'job.time_limit' },
  { label: 'jobs.preemptible', also: 'preemptible', right: 'submit', entry: 'job.preemptible' },
  { label: 'cluster.cpu', also: 'resources cpu', right: 'submit', entry: 'job.cpu' },
  { label: 'cluster.memory', also: 'resources memory', right: 'submit', entry: 'job.memory' },
  { label: 'create.cards', also: 'resources device count', right: 'submit', entry: 'job.device_count' },
  { label: 'node.model', also: 'resources device model', right: 'submit', entry: 'job.device_model' },
  { label: 'create.image', also: 'task image', right: 'submit', entry: 'job.image' },
  { label: 'create.command', also: 'task command', right: 'submit', entry: 'job.command' },
  { label: 'create.env', also: 'task env', right: 'submit', entry: 'job.env' },
  { label: 'jobs.tags', also: 'tags', right: 'submit', entry: 'job.tags' },
]
