// The bodies of the API as the pages read them. GET /v1/openapi.json describes
// them whole; times are RFC 3339 text or null, spans text such as "1h30m".

export type Time = string | null | undefined
export type JobState = 'queued' | 'starting' | 'running' | 'paused' | 'stopping' | 'succeeded' | 'failed' | 'stopped' | 'expired'
export const jobStates: JobState[] = ['queued', 'starting', 'running', 'paused', 'stopping', 'succeeded', 'failed', 'stopped', 'expired']
export const endedStates: JobState[] = ['succeeded', 'failed', 'stopped', 'expired']
export type Priority = 'normal' | 'urgent' | 'critical'

export interface Reason {
  id: string
  params?: Record<string, string>
}
export interface WaitReason extends Reason {
  holders?: string[]
  position?: number
  never?: boolean
}
export interface Failure extends Reason {
  code: string
  message?: string
  hint?: string
  details?: Failure[]
}
export interface Token {
  id: string
  name?: string
  role: string
  project?: string
  user?: string
  expires_at?: Time
}
export interface Standing {
  control?: Control
  state: JobState
  counts: Partial<Record<JobState, number>>
  attempt: number
  exit_code: number
  started_at?: Time
  finished_at?: Time
  reason?: Reason
  wait?: WaitReason
}
export interface JobSummary extends Standing {
  id: string
  name: string
  project: string
  user?: string
  type: string
  priority: Priority
  preemptible?: boolean
  vip?: boolean
  pool?: string
  code?: string[] // what it names as algorithms
  specs?: string[] // labels and models of what a node gets
  output?: string
  nodes: number
  subjobs: number
  submitted_at: Time
}
export interface JobList {
  jobs: JobSummary[] | null
  next?: string
}
export interface DeviceRequest {
  kind: string
  count?: number
  model?: string
  models?: string[]
}
export interface Resources {
  label?: string
  cpu: number
  memory: number
  devices?: DeviceRequest[]
}
export interface Job {
  id: string
  name: string
  project: string
  user?: string
  type: string
  category?: string
  description?: string
  priority: Priority
  preemptible?: boolean
  time_limit?: string
  nodes: number
  batch?: { count?: number; subtasks?: { name: string }[] }
  distributed: { mode: string }
  resources: Resources[] | null
  placement?: { pool?: string }
  task: { driver: string; image?: string; command: string; env?: Record<string, string> }
  submitted_at?: Time
  source?: string
  resume?: Checkpoint
  vip?: { machines: { node: string; busy?: 'wait' | 'kill' }[] | null }
  restart?: { attempts?: number }
  supports?: Supports
}
// What a job can bear, unless it says false.
export interface Supports {
  pause?: boolean
  throttle?: boolean
  finish_now?: boolean
  resume?: boolean
}
export interface Checkpoint {
  path: string
  step?: number
  job_id: string
  attempt: number
  rank: number
  saved_at: Time
}
export interface Control {
  paused?: boolean
  busy?: string
  idle?: string
}
export interface Subjob {
  index: number
  checkpoints?: Checkpoint[]
  control?: Control
  state: JobState
  attempt: number
  restarts: number
  infra_losses: number
  queued_at: Time
  started_at?: Time
  finished_at?: Time
  exit_code: number
  reason?: Reason
  wait?: WaitReason
}
export interface JobRef {
  id: string
  name?: string
  project?: string
  user?: string
  subjob?: number
  vip?: boolean
  idle?: 'paused' | 'held' | 'cards'
}
export interface JobDetail extends Standing {
  job: Job
  subjobs: Subjob[] | null
  yielded?: { subjob: number; attempt: number; at: Time; to: JobRef }[]
  awaits?: JobRef[]
  may?: string[] // what the reader may do to it; an older agent does not say
}
export interface Attempt {
  job_id: string
  subjob: number
  number: number
  state: string
  outcome?: string
  cause?: Reason
  first_failed?: string
  exit_code: number
  spec: number
  allocs: string[]
  placed_at: Time
  released_at?: Time
  running_at?: Time
  ending_at?: Time
  ended_at?: Time
  checkpoint_at?: Time
}
export interface Allocation {
  id: string
  job_id: string
  job_name: string
  project: string
  subjob: number
  attempt: number
  rank: number
  name: string
  node_id: string
  node_name: string
  spec: Resources
  ports?: Record<string, number>
  devices?: string[]
  desired: string
  status: string
  step?: string
  exit_code: number
  signal?: number
  oom_killed?: boolean
  cause?: Reason
  started_at?: Time
  finished_at?: Time
  quarantined?: boolean
  hold?: { since: Time; until: Time; over?: boolean; freed?: boolean } // failed, and still enterable
}
export interface FileEntry {
  name: string
  dir?: boolean
  link?: boolean // or another special file: it cannot be read
  size: number
  modified: Time
}
export interface FileList {
  attempt: number
  rank: number
  path: string
  entry: FileEntry
  entries: FileEntry[] | null
  more?: boolean
}
export interface Event extends Reason {
  index: number
  seq: number
  time: Time
  topic: string
  by?: string
  job_id?: string
  subjob?: number
  attempt?: number
  alloc_id?: string
  node_id?: string
  severity?: string
  cause?: Reason | null
}
export interface When {
  verdict: 'now' | 'later' | 'never' | 'unknown'
  point: Time
  p50: Time
  p90: Time
  beyond?: string
}
export interface Start extends When {
  job_id: string
  job_name: string
  project: string
  subjob: number
  attempt: number
  pool: string
  position: number
  wait?: WaitReason
}
export interface Kept {
  given_at: Time
  position: number
  point: Time
  p50: Time
  p90: Time
}
export interface JobForecast {
  job_id: string
  at: Time
  starts: Start[] | null
  holders?: JobRef[]
  helps?: Help[]
  history: (Kept[] | null)[] | null
}
export interface Help extends Reason, When {
  kind: string
  nodes?: number
  devices?: number
  min_nodes?: number
  priority?: Priority
  time_limit?: string
  sooner: string
}
export interface Victim {
  job_id: string
  job_name: string
  project: string
  user?: string
  lost: string
}
export interface Outlook extends When {
  at: Time
  pool: string
  position: number
  spec: number
  subjobs: number
  room?: number
  wait?: WaitReason
  specs: ({ spec: number; label?: string; nodes?: number; wait?: WaitReason } & When)[] | null
  victims?: Victim[]
  helps?: Help[]
  holders?: JobRef[]
  warnings?: Failure[]
  runtime?: { p50: string; p90: string }
}
export interface QueueEntry {
  job_id: string
  job_name: string
  project: string
  user?: string
  subjob: number
  priority: Priority
  preemptible?: boolean
  vip?: boolean
  pool?: string
  nodes: number
  devices?: number
  queued_at: Time
  position: number
  moved?: boolean
  wait?: WaitReason
  holders?: JobRef[]
  awaits?: JobRef[]
  forecast?: When
}
export interface Bar {
  kind: 'running' | 'reserved' | 'forecast'
  job_id: string
  job_name: string
  project: string
  subjob: number
  devices?: number
  from: Time
  to: Time
  p50: Time
  p90: Time
}
export interface TimelineRow {
  node_id: string
  node: string
  pool: string
  devices?: number
  away?: boolean
  bars: Bar[] | null
  more?: number
}
export interface Timeline {
  from: Time
  to: Time
  rows: TimelineRow[] | null
  more?: number
}
export interface Device {
  id: string
  index: number
  kind: string
  model: string
  memory: number
  healthy: boolean
  health?: Reason
  driver_version?: string
  link_group?: string
  numa_node: number
  attrs?: Record<string, string>
}
export interface Usage {
  cpu: number
  memory: number
  devices?: Record<string, string>
  allocs: number
  claim?: string
  overcommitted?: boolean
}
export interface Node {
  id: string
  name: string
  addr: string
  rpc_addr?: string
  pool?: string
  topology?: string[]
  root?: boolean
  rdma?: boolean
  version: string
  attributes?: Record<string, string>
  drivers?: string[]
  capacity: { cpu: number; memory: number }
  devices?: Device[]
  faults?: NodeFault[]
  status: 'ready' | 'disconnected' | 'lost' | 'left'
  status_reason?: Reason
  status_at?: Time
  eligibility: 'eligible' | 'cordoned' | 'draining'
  registered_at?: Time
  used: Usage
}
export interface NodeFault {
  name: string
  reason: Reason
  unfit?: boolean // it takes no new work
}
export interface NodeDetail extends Node {
  may?: string[] // what the reader may do to it
  allocations: Allocation[] | null
}
export interface DeviceShare {
  kind: string
  model: string
  total: number
  used: number
  sick?: number
}
export interface AvailableNode {
  id: string
  name: string
  pool: string
  state: 'idle' | 'tight'
  status: string
  os?: string
  kernel?: string
  driver_versions?: string[]
  cpu: number
  cpu_used: number
  memory: number
  memory_used: number
  devices?: DeviceShare[]
  specs: number[]
  now: number[]
  cards?: { device: string; index: number; healthy: boolean; used: boolean; job?: string; job_id?: string; text: string }[]
}
export interface Available {
  nodes: AvailableNode[] | null
  specs: { spec: number; label?: string; nodes: number; idle: number; need: number }[] | null
  models: (DeviceShare & { wanted: number; jobs: number })[] | null
}
export interface Pool {
  pool: { name: string; description?: string }
  defined: boolean
  nodes: number
  ready: number
  cpu: number
  cpu_used: number
  memory: number
  memory_used: number
  devices: number
  devices_used: number
  models: DeviceShare[] | null
  queued: number
  running: number
}
export interface RankPlan {
  rank: number
  name: string
  node?: string
  command?: string[]
  hold?: boolean
  env: Record<string, string>
  files?: { path: string; content?: string }[]
  ports?: Record<string, number>
}
export interface JobPlan {
  job: Job
  starts_now: boolean
  wait?: WaitReason
  warnings?: Failure[]
  ranks: RankPlan[] | null
  later?: Reason[] // what only the nodes can tell, at the start
}
export interface Validated {
  valid: boolean
  problems?: Failure[]
  warnings?: Failure[]
}
export interface ServerHealth {
  id: string
  name?: string
  addr: string
  voter: boolean
  leader: boolean
  status: string
  healthy: boolean
}
export interface Autopilot {
  healthy: boolean
  failure_tolerance: number
  leader_id?: string
  servers: ServerHealth[] | null
}
export interface Member {
  id: string
  name: string
  role: string
  gossip_addr: string
  rpc_addr: string
  status: string
  leader?: boolean
  version?: string
}
export interface WhatIf {
  kind: 'drain' | 'add' | 'stop' | 'priority' | 'move'
  node?: string
  count?: number
  job_id?: string
  priority?: Priority
  before?: string
  last?: boolean
}
export interface Shift {
  job_id: string
  job_name: string
  project: string
  subjob: number
  before?: When
  after?: When
  by: string
}
export interface Effect {
  shifts: Shift[] | null
  more?: number
  earlier: number
  later: number
  same: number
  hidden?: number
}
export interface DeviceState extends Device {
  slice?: number
  action?: string
  used: boolean
  owner?: { job_id: string; job: string; project: string; user?: string; subjob?: number; attempt: number; rank: number; alloc_id: string }
  at?: Time
  gauges?: Record<string, number>
  processes?: { pid: number; name?: string; memory: number }[]
}
export interface NodeDevices {
  id: string
  name: string
  pool: string
  status: Node['status']
  eligibility: Node['eligibility']
  cpu: number
  cpu_held: number
  memory: number
  memory_held: number
  measured: boolean
  at?: Time
  cpu_busy?: number
  memory_busy?: number
  devices: DeviceState[] | null
}
export interface Formatted {
  hcl: string
  job: Job
  defaults: { path: string }[] | null
}
export interface Machine {
  id: string
  name: string
  pool: string
  status: Node['status']
  eligibility: Node['eligibility']
  free: boolean
  cpu: number
  cpu_used: number
  memory: number
  memory_used: number
  devices?: DeviceShare[]
  claim?: JobRef
  work: { job: JobRef; attempt: number; nodes: number; devices: number; priority: Priority; preemptible?: boolean; vip?: boolean; since: Time; checkpoint_at?: Time; ends_by?: Time; ending?: boolean }[] | null
}
