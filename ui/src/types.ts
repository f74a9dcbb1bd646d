// The bodies of the API, written by `make generate` from the OpenAPI document: change the Go types, not
// this file. Times are RFC 3339 text or null, spans text such as "1h30m".

export interface Accuracy {
  all: Calibration
  pools: Record<string, Calibration> | null
}

export interface After {
  id?: string
  job: string
  project?: string
  when?: string
}

export interface AgentSelf {
  cluster: string
  config: Record<string, unknown> | null
  id: string
  leader: boolean
  name: string
  protocol: number
  roles: string[] | null
  stats?: Record<string, string>
  version: string
}

export interface AgentVersion {
  agents: number
  names: string[] | null
  version: string
}

export type AllocDesired = 'run' | 'stop'
export const allocDesireds: AllocDesired[] = ['run', 'stop']

export type AllocStatus = 'pending' | 'preparing' | 'prepared' | 'running' | 'complete' | 'failed' | 'killed' | 'lost'
export const allocStatuses: AllocStatus[] = ['pending', 'preparing', 'prepared', 'running', 'complete', 'failed', 'killed', 'lost']

export interface Allocation {
  attempt: number
  cause?: Reason
  control?: Control
  create_index: number
  desired: AllocDesired
  desired_reason?: Reason
  devices?: string[]
  exit_code: number
  finished_at?: string
  held?: Record<string, number>
  hold?: Hold
  id: string
  idle_since?: string
  infra?: boolean
  job_id: string
  job_name: string
  lease_over?: boolean
  modify_index: number
  name: string
  node_id: string
  node_name: string
  note_seq?: number
  obeyed?: number
  oom_killed?: boolean
  pace?: Progress
  placed_at?: string
  pool?: string
  ports?: Record<string, number>
  progress?: number
  project: string
  quarantined?: boolean
  rank: number
  released: boolean
  resume?: SavedCheckpoint
  seen?: Record<string, string>
  signal?: number
  spec: Resources
  started_at?: string
  status: AllocStatus
  step?: string
  stop?: StopOrder
  subjob: number
  warning?: Warning
}

export interface AllocationList {
  allocations: Allocation[] | null
}

export interface Answered {
  answer?: ConsentAnswer
  asked_at: string | null
  at?: string
  by?: string
  of: JobRef
  over?: boolean
  until: string | null
}

export interface ArchiveRequest {
  archived?: boolean
  stop_jobs?: boolean
}

export interface Asked {
  answer?: ConsentAnswer
  asked_at: string | null
  at?: string
  attempt: number
  by?: string
  machines?: string[]
  message?: string
  silence: string
  stops?: boolean
  subjob: number
  to: JobRef
  until: string | null
}

export interface AskedList {
  asked: Asked[] | null
  index?: number
  job_id: string
}

export interface Attempt {
  allocs: string[] | null
  by?: AttemptKey
  cause?: Reason
  checkpoint_at?: string
  create_index: number
  ended_at?: string
  ending_at?: string
  exit_code: number
  first_failed?: string
  hung_at?: string
  job_id: string
  lost?: number
  modify_index: number
  number: number
  outcome?: Outcome
  paused_at?: string
  paused_for?: string
  placed_at: string | null
  released_at?: string
  running_at?: string
  spec: number
  state: AttemptState
  subjob: number
  warned_at?: string
}

export interface AttemptKey {
  job_id: string
  number: number
  subjob: number
}

export interface AttemptList {
  attempts: Attempt[] | null
}

export type AttemptState = 'preparing' | 'released' | 'running' | 'ending' | 'ended'
export const attemptStates: AttemptState[] = ['preparing', 'released', 'running', 'ending', 'ended']

export interface AuditActor {
  kind?: string
  method?: string
  role?: string
  token_id?: string
  user?: string
}

export interface AuditChain {
  at: string | null
  broken?: string
  file?: string
  first: number
  hash: string
  holder: string
  last: number
  line?: number
  lines: number
  seq?: number
  server: string
}

export interface AuditCheck {
  away: string[] | null
  chains: AuditChain[] | null
  names: Record<string, string> | null
  whole: boolean
}

export interface AuditList {
  next?: string
  records: AuditRecord[] | null
  servers: AuditServer[] | null
  until?: string
}

export interface AuditObject {
  id?: string
  kind?: string
  owner?: string
  part?: string
  project?: string
}

export type AuditOutcome = 'allowed' | 'refused' | 'failed'
export const auditOutcomes: AuditOutcome[] = ['allowed', 'refused', 'failed']

export interface AuditRecord {
  action: string
  actor: AuditActor
  address?: string
  count?: number
  forwarded?: number
  index?: number
  node?: string
  object: AuditObject
  outcome: AuditOutcome
  prev: string
  reason?: string
  received?: number
  request?: string
  said?: string
  sent?: number
  seq: number
  server: string
  status?: number
  time: string | null
  took?: string
}

export interface AuditServer {
  answered: boolean
  id: string
  last: number
  last_at?: string
  name?: string
}

export interface AutopilotHealth {
  certificates?: CertificateEnd[]
  failure_tolerance: number
  healthy: boolean
  leader_id?: string
  servers: ServerHealth[] | null
  versions: AgentVersion[] | null
}

export interface Available {
  models: DeviceDemand[] | null
  nodes: AvailableNode[] | null
  specs: AvailableSpec[] | null
}

export interface AvailableNode {
  cards?: CardUse[]
  cpu: number
  cpu_used: number
  devices?: DeviceShare[]
  driver_versions?: string[]
  id: string
  kernel?: string
  memory: number
  memory_used: number
  name: string
  now: number[] | null
  os?: string
  pool: string
  specs: number[] | null
  state: string
  status: NodeStatus
}

export interface AvailableSpec {
  idle: number
  label?: string
  need: number
  nodes: number
  spec: number
}

export interface AwaitedJob {
  called: string
  id: string
  idle?: string
  name?: string
  project?: string
  state?: JobState
  subjob?: number
  user?: string
  vip?: boolean
  waits?: boolean
  when: string
}

export interface Bar {
  devices?: number
  from: string | null
  job_id: string
  job_name: string
  kind: string
  p50: string | null
  p90: string | null
  project: string
  subjob: number
  to: string | null
}

export interface Batch {
  array?: string
  count?: number
  parallel?: number
  subtasks?: BatchSubtask[]
}

export interface BatchSubtask {
  algorithm?: string
  command?: string
  env?: Record<string, string>
  name: string
}

export type Beyond = '' | 'p90' | 'p50'
export const beyonds: Beyond[] = ['', 'p90', 'p50']

export interface BootstrapRequest {
  secret: string
}

export interface CACertificate {
  fingerprint: string
  pem: string
}

export interface CAState {
  certificates?: CACertificate[]
  keys: KeyState
  past?: StructsPastCA[]
}

export interface Calibration {
  bias_s: number
  cov50_pct: number
  cov90_pct: number
  hit_pct: number
  mae_s: number
  medae_s: number
  n: number
  p90_abs_err_s: number
}

export interface Capacity {
  cpu: number
  memory: number
  port_max: number
  port_min: number
}

export interface CardHistory {
  gone?: boolean
  id: string
  index: number
  model?: string
  series: GaugeHistory[] | null
  slice?: number
}

export interface CardUse {
  device: string
  healthy: boolean
  index: number
  job?: string
  job_id?: string
  slice?: number
  text: string
  used: boolean
}

export interface Ceiling {
  at?: string
  by?: string
  level: Level
  max: string
  name?: string
  path: string
}

export interface CertificateEnd {
  ends_at: string | null
  id: string
  name: string
  role: string
}

export interface Change {
  before?: string
  count?: number
  job?: Job
  job_id?: string
  kind: ChangeKind
  last?: boolean
  node?: string
  priority?: Priority
  project?: string
  quotas?: Quota[]
  subjob?: number
}

export type ChangeKind = 'drain' | 'add' | 'quota' | 'priority' | 'move' | 'submit' | 'stop'
export const changeKinds: ChangeKind[] = ['drain', 'add', 'quota', 'priority', 'move', 'submit', 'stop']

export interface Changed {
  index: number
}

export interface Check {
  message?: string
  ok: boolean
}

export interface Checkpoint {
  dir?: string
  elastic?: Elastic
  grace?: string
  max_resumes: number
  pattern?: string
  performance?: Performance
  precheck?: boolean
  signal?: string
}

export interface Cluster {
  bootstrapped: boolean
  ca?: CAState
  ca_fingerprint: string
  created_at: string | null
  gossip_key?: KeyState
  id: string
  maintenance?: Maintenance[]
  modify_index: number
  protocol_version: number
  removed?: RemovedServer[]
  removed_nodes?: RemovedNode[]
  revived_at?: string
  setup_hash?: string
  unwell?: ServerCondition[]
}

export interface ClusterInit {
  cluster: Cluster
  join_tokens?: JoinToken[]
}

export interface CodeArchived {
  bytes: number
  files: number
  index: number
  left: number
  left_out: CodeLeftOut[] | null
  tree: string
}

export interface CodeKept {
  chunks: number
  fresh: number
}

export interface CodeLeftOut {
  dir?: boolean
  file?: string
  line?: number
  path: string
  rule: string
}

export interface CodeMade {
  bytes: number
  files: number
  index: number
  tree: string
}

export interface CodeMissing {
  known: boolean
  max: number
  missing: string[] | null
}

export interface CodeMissingRequest {
  chunks?: CodePartRef[]
  tree: string
}

export interface CodePartRef {
  digest: string
  size: number
}

export interface CommitRequest {
  comment?: string
  mine?: boolean
  name: string
  push?: string
  secret?: string
}

export interface Committed {
  bytes: number
  digest?: string
  id: string
  image: string
  pushed?: string
}

export interface Consent {
  answer?: ConsentAnswer
  asked_at: string | null
  at?: string
  by?: string
  of: AttemptKey
  until: string | null
}

export type ConsentAnswer = '' | 'yes' | 'no'
export const consentAnswers: ConsentAnswer[] = ['', 'yes', 'no']

export interface ConsentRequest {
  answer: ConsentAnswer
  reason?: string
  to?: string
}

export interface Control {
  busy?: string
  idle?: string
  paused?: boolean
  seq: number
}

export interface DataChanged {
  index: number
  version?: number
}

export interface DataChunksRequest {
  chunks: CodePartRef[] | null
}

export interface DataCopy {
  away?: boolean
  node: string
  node_id: string
  version: number
}

export interface DataDetail {
  all_bytes: number
  bytes: number
  count: number
  favourite: boolean
  favourites: number
  files: number
  jobs?: DataJob[]
  newest?: number
  newest_at?: string
  newest_tag?: string
  object: DataObject
  outputs?: DataOutputJob[]
  running?: number
  verbs: string[] | null
}

export interface DataEntry {
  dir?: boolean
  files?: number
  link?: string
  name: string
  ref?: string
  runs?: boolean
  size: number
}

export interface DataFile {
  dir?: boolean
  executable?: boolean
  id: string
  offset: number
  path: string
  sha256?: string
  size: number
}

export interface DataFiles {
  files: DataFile[] | null
  next?: string
}

export interface DataFilesBegun {
  begun: boolean
  expires_at: string | null
  index: number
  storage: string
  upload: string
  url: string
  version: number
}

export interface DataFilesFinished {
  all: number
  bytes: number
  digest?: string
  done: boolean
  files: number
  index?: number
  known: boolean
  version: number
}

export interface DataFilesRequest {
  access?: string
  bytes: number
  description?: string
  files: number
  key?: string
  storage?: string
  tag?: string
}

export interface DataFinished {
  all: number
  bytes: number
  done: boolean
  files: number
  index?: number
  version: number
}

export interface DataInput {
  digest?: string
  kind: string
  name: string
  project: string
  version: number
}

export interface DataJob {
  id: string
  name: string
  project: string
  user: string
  version: number
}

export interface DataKept {
  chunks: number
}

export interface DataLack {
  cause: Reason
  kind: string
  name: string
  path: string
  storage: string
}

export interface DataLineage {
  cut?: boolean
  edges: LineageEdge[] | null
  nodes: LineageNode[] | null
  root: number
}

export interface DataList {
  objects: DataDetail[] | null
  quota: number
  used: number
}

export interface DataMarkRequest {
  off?: boolean
}

export interface DataMissing {
  missing: number[] | null
}

export interface DataMissingRequest {
  chunks: CodePartRef[] | null
}

export interface DataObject {
  access: string
  changed_at?: string
  changed_by?: string
  description?: string
  favourites?: string[]
  home?: string
  kind: string
  labels?: Record<string, string>
  made_at?: string
  made_by?: string
  modify_index?: number
  name: string
  next: number
  owner?: string
  project: string
  published?: boolean
  storage: string
  versions?: DataVersion[]
}

export interface DataOrigin {
  access?: string
  apart?: boolean
  code?: string
  command?: string
  commit?: string
  dirty?: boolean
  failed?: boolean
  image?: string
  inputs?: DataInput[]
  job: string
  node_id?: string
  output: string
  path?: string
  project: string
  step?: number
  storage?: string
  subjob?: number
  user?: string
}

export interface DataOutputJob {
  id: string
  name: string
  output: JobOutput
  project: string
  user: string
}

export interface DataPick {
  asked?: string
  digest?: string
  owner?: string
  project: string
  source?: string
}

export interface DataPreview {
  shown: Shown
  size: number
  version: number
}

export interface DataRef {
  annotations?: boolean
  from?: string
  name: string
  object?: DataPick
  prepare?: boolean
  project?: string
  read_only?: boolean
  sha256?: string
  source?: string
  storage?: string
  tag?: string
  version?: number
}

export interface DataRegisterRequest {
  access?: string
  description?: string
  source: string
  storage: string
  tag?: string
}

export interface DataRequest {
  access?: string
  description?: string
  labels?: Record<string, string>
  owner?: string
  published?: boolean
  storage?: string
}

export interface DataStorage {
  name: string
  nodes: string[] | null
}

export interface DataTagRequest {
  tag: string
  version: number
}

export interface DataTakeRequest {
  access?: string
  attempt?: number
  checkpoint?: number
  description?: string
  job: string
  path?: string
  storage?: string
  subjob?: number
  tag?: string
}

export interface DataTree {
  entries: DataEntry[] | null
  entry: DataEntry
  names: number
  next: number
  version: number
}

export interface DataUpload {
  begun: boolean
  index: number
  known: boolean
  storage: string
  upload?: string
  version: number
}

export interface DataUploadRequest {
  access?: string
  bytes: number
  description?: string
  digest: string
  files: number
  storage?: string
  tag?: string
}

export interface DataUse {
  copies: DataCopy[] | null
  hidden: number
  jobs: DataUser[] | null
  more: boolean
  storage: DataStorage
  unknown?: boolean
}

export interface DataUser {
  asked?: string
  finished_at?: string
  id: string
  name: string
  project: string
  state: JobState
  submitted_at: string | null
  user: string
  version: number
}

export interface DataVerified {
  all: number
  bytes: number
  done: boolean
  files: number
  version: number
  wrong: DataWrong[] | null
  wrongs: number
}

export interface DataVersion {
  attempt?: number
  bytes?: number
  digest?: string
  expires_at?: string
  files?: number
  job_id?: string
  made_at?: string
  made_by?: string
  number: number
  origin?: DataOrigin
  source?: string
  state: string
  tag?: string
  upload_id?: string
}

export interface DataWrong {
  path: string
  what: string
}

export interface DayUse {
  cpu_hours: number
  device_hours: number
  kinds: KindUse[] | null
  start: string | null
}

export interface Debug {
  hold: string
}

export interface Default {
  from?: string
  path: string
  value: string
}

export interface Device {
  attrs?: Record<string, string>
  driver_version?: string
  health?: Reason
  healthy: boolean
  id: string
  index: number
  kind: string
  link_group?: string
  memory: number
  model: string
  numa_node: number
  pci_bus?: string
}

export type DeviceAct = 'clear' | 'reset' | 'quarantine'
export const deviceActs: DeviceAct[] = ['clear', 'reset', 'quarantine']

export interface DeviceDemand {
  free: number
  jobs: number
  kind: string
  model: string
  sick?: number
  total: number
  used: number
  wanted: number
}

export interface DeviceList {
  next?: string
  nodes: NodeDevices[] | null
}

export interface DeviceOwner {
  alloc_id: string
  attempt: number
  job: string
  job_id: string
  project: string
  rank: number
  subjob?: number
  user?: string
}

export interface DeviceProcess {
  memory: number
  name?: string
  pid: number
}

export interface DeviceRequest {
  count?: number
  ids?: string[]
  kind: string
  memory?: number
  model?: string
  models?: string[]
}

export interface DeviceShare {
  free: number
  kind: string
  model: string
  sick?: number
  total: number
  used: number
}

export interface DeviceState {
  action?: string
  at?: string
  attrs?: Record<string, string>
  driver_version?: string
  gauges?: Record<string, number>
  health?: Reason
  healthy: boolean
  id: string
  index: number
  kind: string
  link_group?: string
  memory: number
  model: string
  numa_node: number
  owner?: DeviceOwner
  pci_bus?: string
  processes?: DeviceProcess[]
  slice?: number
  used: boolean
}

export interface DeviceTreatRequest {
  act: DeviceAct
  device: string
  reason?: string
}

export interface DeviceTreated {
  device: string
  index: number
}

export interface DiffJob {
  finished_at?: string
  id: string
  name: string
  state: JobState
  submitted_at: string | null
  user?: string
}

export interface Difference {
  after: string
  before: string
  path: string
}

export interface Distributed {
  chief?: boolean
  emulate?: string
  launcher?: string
  master_port?: number
  min_nodes?: number
  mode: Mode
  parameter_servers?: number
  procs_per_node?: number
  rank_table?: string
  rewrite?: string
  world_size?: string
}

export interface DrainRequest {
  deadline?: string
}

export interface Effect {
  earlier: number
  hidden?: number
  later: number
  more?: number
  same: number
  shifts: Shift[] | null
}

export interface Elastic {
  allow_resize?: boolean
  by?: ElasticBy
  min_nodes: number
}

export type ElasticBy = 'restart' | 'torchrun'
export const elasticBies: ElasticBy[] = ['restart', 'torchrun']

export type Eligibility = 'eligible' | 'cordoned' | 'draining'
export const eligibilities: Eligibility[] = ['eligible', 'cordoned', 'draining']

export interface Error {
  code: ErrorCode
  details?: Error[]
  hint?: string
  id: string
  message?: string
  params?: Record<string, string>
}

export type ErrorCode = 'invalid' | 'unauthorized' | 'forbidden' | 'not_found' | 'conflict' | 'unavailable' | 'timeout' | 'not_available' | 'too_large' | 'internal'
export const errorCodes: ErrorCode[] = ['invalid', 'unauthorized', 'forbidden', 'not_found', 'conflict', 'unavailable', 'timeout', 'not_available', 'too_large', 'internal']

export interface Event {
  alloc_id?: string
  attempt?: number
  by?: string
  cause?: Reason
  id: string
  index: number
  job_id?: string
  node_id?: string
  params?: Record<string, string>
  project?: string
  seq: number
  severity?: string
  subjob?: number
  time: string | null
  topic: string
}

export interface EventLine {
  cursor?: string
  error?: Error
  event?: Event
  index: number
}

export interface EventList {
  events: Event[] | null
}

export interface Fault {
  attempt: number
  cause?: Reason
  loss: Loss
  moments: Moment[] | null
  next?: number
  node?: string
  node_id?: string
  outcome: Outcome
  rank: number
  subjob: number
}

export interface FileEntry {
  dir?: boolean
  link?: boolean
  modified: string | null
  name: string
  size: number
}

export interface FileList {
  alloc_id: string
  attempt: number
  entries: FileEntry[] | null
  entry: FileEntry
  more?: boolean
  path: string
  rank: number
  sha256?: string
}

export interface Forecast {
  attempt: number
  features?: number[]
  given_at: string | null
  job_id: string
  job_name: string
  p50: string | null
  p90: string | null
  point: string | null
  pool?: string
  position?: number
  project: string
  revision: number
  started_at?: string
  subjob: number
  withdrawn?: boolean
}

export interface GangPlan {
  attempt: number
  claim?: boolean
  job_id: string
  placements: RankPlacement[] | null
  spec: number
  subjob: number
  victims?: AttemptKey[]
}

export interface GaugeHistory {
  gauge: string
  values: (number | null)[] | null
}

export interface Granted {
  provider: string
  role: string
  user: string
}

export interface Hang {
  action?: string
  factor?: number
  least?: string
  most?: string
  pattern?: string
}

export interface Health {
  client?: Check
  healthy: boolean
  server?: Check
}

export interface Help {
  beyond?: Beyond
  cpu?: number
  devices?: number
  id: string
  kind: HelpKind
  memory?: number
  min_nodes?: number
  model?: string
  nodes?: number
  p50: string | null
  p90: string | null
  params?: Record<string, string>
  point: string | null
  pool?: string
  priority?: Priority
  sooner: string
  time_limit?: string
  verdict: Verdict
  victims?: Victim[]
}

export type HelpKind = 'nodes' | 'elastic' | 'spec' | 'pool' | 'time_limit' | 'priority' | 'preemptible' | 'spread' | 'devices' | 'driver_version' | 'any_node' | 'no_rdma' | 'resources' | 'two'
export const helpKinds: HelpKind[] = ['nodes', 'elastic', 'spec', 'pool', 'time_limit', 'priority', 'preemptible', 'spread', 'devices', 'driver_version', 'any_node', 'no_rdma', 'resources', 'two']

export interface HistoryGap {
  after: number
  until: number
}

export interface Hold {
  for: string
  freed?: boolean
  over?: boolean
  since: string | null
  until: string | null
}

export interface Hook {
  command: string
  timeout?: string
  when: string
}

export interface Identity {
  linked_by?: string
  provider: string
  role?: string
  seen_at?: string
  subject: string
}

export interface IdentityRequest {
  provider: string
  subject?: string
}

export interface IdleUse {
  devices: number
  job: string
  job_id: string
  node: string
  project: string
  rank: string
  since: string | null
}

export type ImageAct = 'pull' | 'push' | 'tag' | 'remove' | 'save'
export const imageActs: ImageAct[] = ['pull', 'push', 'tag', 'remove', 'save']

export interface ImageActRequest {
  act: ImageAct
  image: string
  mine?: boolean
  secret?: string
  to?: string
}

export interface ImageActed {
  index: number
  work: ImageWork
}

export interface ImageEntry {
  bytes?: number
  count: number
  description?: string
  devices?: string[]
  digest?: string
  driver_version?: string
  from?: string
  id?: string
  in_use: boolean
  name: string
  nodes?: ImageOnNode[]
  scope?: string[]
  set_at?: string
  set_by?: string
  variants: number
}

export interface ImageList {
  asked: number
  away: string[] | null
  images: ImageEntry[] | null
  left?: number
}

export interface ImageOnNode {
  bytes: number
  digest?: string
  id: string
  in_use?: boolean
  node: string
  node_id: string
  pool: string
  used_at?: string
}

export interface ImageRequest {
  description?: string
  devices: string[] | null
  driver_version?: string
  name: string
  scope: string[] | null
}

export interface ImageWork {
  act: ImageAct
  by: string
  bytes?: number
  digest?: string
  done?: number
  ended_at?: string
  err?: Error
  id?: string
  image: string
  started_at: string | null
  step?: string
  to?: string
  total?: number
}

export interface Job {
  access?: string
  after?: After[]
  algorithms?: DataRef[]
  batch?: Batch
  begin?: string
  begin_at?: string
  category?: string
  checkpoint?: Checkpoint
  datasets?: DataRef[]
  deadline?: string
  deadline_at?: string
  debug?: Debug
  description?: string
  distributed: Distributed
  elastic?: Elastic
  expected_runtime?: string
  fencing?: string
  hang?: Hang
  id?: string
  idempotency_key?: string
  jupyter?: boolean
  kills_last?: boolean
  limit_warning?: LimitWarning
  max_queue_time?: string
  meta?: Record<string, string>
  metrics?: Metrics
  models?: DataRef[]
  mounts?: Mount[]
  name: string
  nodes: number
  note?: string
  notify?: JobNotify
  number?: number
  output?: string
  output_keep?: OutputKeep
  output_storage?: string
  outside_yields?: boolean
  patient_starts?: boolean
  placement?: Placement
  preemptible?: boolean
  priority: Priority
  project: string
  resources: Resources[] | null
  restart?: Restart
  resume?: SavedCheckpoint
  saves_at_ends?: boolean
  source?: string
  ssh?: boolean
  stop_grace: string
  submitted_at?: string
  supports?: Supports
  sweep?: Sweep
  tags?: string[]
  task: Task
  tensorboard?: Tensorboard
  throttle?: Throttle
  time_limit?: string
  type: JobType
  user?: string
  vip?: VIP
  volumes?: DataRef[]
  workdir?: Workdir
}

export interface JobAnnotateRequest {
  add?: string[]
  note?: string
  remove?: string[]
}

export interface JobAnnotations {
  index: number
  job_id: string
  note: string
  tags: string[] | null
}

export interface JobChange {
  at: string
  value: unknown
}

export interface JobControlRequest {
  reason?: string
  subjob?: number
}

export interface JobDefaults {
  image?: string
  notify?: JobNotify
  output_storage?: string
  pool?: string
  priority?: Priority
  time_limit?: string
}

export interface JobDetail {
  after?: AwaitedJob[]
  answers?: Answered[]
  asked?: Asked[]
  attempt: number
  awaits?: JobRef[]
  control?: Control
  counts: Record<string, number> | null
  exit_code: number
  finished_at?: string
  followers?: JobRef[]
  holders?: JobRef[]
  job: Job
  may: string[] | null
  output_counts?: Record<string, number>
  outputs?: JobOutput[]
  reason?: Reason
  started_at?: string
  state: JobState
  subjobs: Subjob[] | null
  wait?: WaitReason
  yielded?: Yield[]
}

export interface JobDiff {
  after: DiffJob
  before: DiffJob
  differences: Difference[] | null
  found: Difference[] | null
  hidden?: boolean
}

export interface JobFaults {
  away?: string[]
  faults: Fault[] | null
  job_id: string
  lost: number
}

export interface JobForecast {
  at: string | null
  helps?: Help[]
  history: (Forecast[] | null)[] | null
  holders?: JobRef[]
  job_id: string
  starts: Start[] | null
}

export interface JobFormatted {
  defaults: Default[] | null
  hcl: string
  job: Job
}

export interface JobHistory {
  at: (string | null)[] | null
  attempt: number
  away?: string[]
  job_id: string
  more?: number
  ranks: RankHistory[] | null
  step: string
  subjob: number
}

export interface JobList {
  jobs: JobSummary[] | null
  next?: string
}

export interface JobMetrics {
  away?: string[]
  left_out?: number
  ranks: RankMetrics[] | null
}

export interface JobNotify {
  on: string[] | null
  to: string
}

export interface JobOutlook {
  at: string | null
  beyond?: Beyond
  defaults: Default[] | null
  helps?: Help[]
  holders?: JobRef[]
  p50: string | null
  p90: string | null
  point: string | null
  pool: string
  position: number
  room?: number
  runtime?: Span
  spec: number
  specs: SpecAnswer[] | null
  subjobs: number
  verdict: Verdict
  victims?: Victim[]
  wait?: WaitReason
  warnings?: Error[]
}

export interface JobOutput {
  attempt?: number
  cause?: Reason
  kind?: string
  name?: string
  node?: string
  path?: string
  state: string
  step?: number
  storage?: string
  subjob?: number
  version?: number
}

export interface JobParsed {
  defaults: Default[] | null
  job: Job
}

export interface JobPlan {
  ceilings: Ceiling[] | null
  defaults: Default[] | null
  job: Job
  lacks?: DataLack[]
  later?: Reason[]
  notes?: Reason[]
  ranks: RankPlan[] | null
  starts: number
  starts_now: boolean
  wait?: WaitReason
  warnings?: Error[]
}

export interface JobPriorityRequest {
  priority: Priority
}

export interface JobRef {
  id: string
  idle?: string
  name?: string
  project?: string
  subjob?: number
  user?: string
  vip?: boolean
}

export interface JobRequest {
  hcl?: string
  job?: Job
  rank?: number
  resume?: string
  resume_step?: number
  set?: JobChange[]
  variables?: Record<string, string>
  zone?: string
}

export interface JobResult {
  job_id: string
  metrics: MetricResult[] | null
}

export interface JobResults {
  away?: string[]
  jobs: JobResult[] | null
  left_out?: number
}

export type JobState = 'queued' | 'starting' | 'running' | 'paused' | 'stopping' | 'succeeded' | 'failed' | 'stopped' | 'expired'
export const jobStates: JobState[] = ['queued', 'starting', 'running', 'paused', 'stopping', 'succeeded', 'failed', 'stopped', 'expired']

export interface JobStopRequest {
  reason?: string
  release?: string
  subjob?: number
}

export interface JobSubmitted {
  index: number
  job_id: string
  name: string
  number?: number
  warnings?: Error[]
}

export interface JobSummary {
  asked?: Asked
  attempt: number
  code?: string[]
  control?: Control
  counts: Record<string, number> | null
  exit_code: number
  finished_at?: string
  held_until?: string
  id: string
  idle?: string
  idle_since?: string
  limit_at?: string
  name: string
  nodes: number
  note?: string
  number?: number
  output?: string
  pool?: string
  preemptible?: boolean
  priority: Priority
  project: string
  reason?: Reason
  specs?: string[]
  started_at?: string
  state: JobState
  subjobs: number
  submitted_at: string | null
  tags?: string[]
  time_limit?: string
  trend?: JobTrend
  type: JobType
  user?: string
  vip?: boolean
  wait?: WaitReason
}

export interface JobTrend {
  metric: string
  values: number[] | null
}

export type JobType = 'training' | 'batch' | 'dev'
export const jobTypes: JobType[] = ['training', 'batch', 'dev']

export interface JobUsage {
  attempt: number
  job_id: string
  more?: number
  ranks: RankUsage[] | null
  subjob: number
}

export interface JobUse {
  cpu_hours: number
  device_hours: number
  forgotten?: boolean
  job_id: string
  name: string
  project: string
}

export interface JobValidated {
  problems?: Error[]
  valid: boolean
  warnings?: Error[]
}

export interface JoinRequest {
  agent_id: string
  certificate?: string
  csr: string
  name: string
  proof?: string
  role: string
  secret: string
  token_id: string
}

export interface JoinToken {
  created_at: string | null
  created_by?: string
  expires_at: string | null
  hash?: string
  id: string
  modify_index: number
  role: string
  uses_left: number
}

export interface JoinTokenList {
  tokens: JoinToken[] | null
}

export interface JoinTokenRequest {
  role: string
  ttl?: string
  uses?: number
}

export interface Joined {
  ca?: string
  ca_key?: string
  certificate: string
  gossip_key: string
  init?: ClusterInit
  next_ca?: string
  next_ca_key?: string
  past_ca?: StructsPastCA[]
  servers: string[] | null
}

export interface KeyAgent {
  alive: boolean
  awaited: boolean
  id: string
  keys: string[] | null
  name: string
  role: string
}

export interface KeyRotation {
  by?: string
  from: string
  stage: KeyStage
  stage_at: string | null
  started_at: string | null
  to: string
}

export type KeyStage = 'install' | 'use' | 'done'
export const keyStages: KeyStage[] = ['install', 'use', 'done']

export interface KeyState {
  current?: string
  rotation?: StructsKeyRotation
}

export interface Keys {
  agents: KeyAgent[] | null
  current: string
  kind: string
  past?: PastCA[]
  rotation?: KeyRotation
  settled: boolean
  waiting: string[] | null
}

export interface KindUse {
  device_hours: number
  kind?: string
  model?: string
}

export type Level = 'cluster' | 'pool' | 'project'
export const levels: Level[] = ['cluster', 'pool', 'project']

export interface LimitWarning {
  before: string
  signal?: string
}

export interface LineageEdge {
  from: number
  to: number
}

export interface LineageNode {
  apart?: boolean
  at?: string
  attempt?: number
  by?: string
  bytes?: number
  command?: string
  commit?: string
  depth: number
  digest?: string
  dirty?: boolean
  failed?: boolean
  files?: number
  gone?: boolean
  hidden?: boolean
  image?: string
  job_id?: string
  kind?: string
  name?: string
  output?: string
  path?: string
  project?: string
  step?: number
  subjob?: number
  version?: number
  what: string
}

export interface LogPolicy {
  file_size_max?: number
  files?: number
}

export interface LoginBeginRequest {
  device?: boolean
  provider: string
  redirect?: string
}

export interface LoginBegun {
  address: string
  every?: string
  expires_at: string | null
  pending: string
  user_code?: string
}

export interface LoginProvider {
  caption?: string
  kind: string
  name: string
}

export interface LoginProviders {
  providers: LoginProvider[] | null
}

export interface LoginRequest {
  answer?: ProviderAnswer
  new_password?: string
  password: string
  pending?: string
  provider?: string
  user: string
}

export interface Loss {
  devices: number
  hours: number
  nodes: number
  open?: boolean
  saved: boolean
  starting: string
  steps?: number
  stopping: string
  waiting: string
  work: string
}

export interface Machine {
  claim?: JobRef
  cost?: string
  cpu: number
  cpu_used: number
  devices?: DeviceShare[]
  eligibility: Eligibility
  free: boolean
  id: string
  memory: number
  memory_used: number
  name: string
  pool: string
  status: NodeStatus
  work: MachineWork[] | null
}

export interface MachineList {
  machines: Machine[] | null
}

export interface MachineWork {
  attempt: number
  checkpoint_at?: string
  checkpoint_step?: number
  devices: number
  ending?: boolean
  ends_by?: string
  gang_devices?: number
  job: JobRef
  lost?: string
  nodes: number
  p50?: string
  p90?: string
  preemptible?: boolean
  priority: Priority
  running_at?: string
  since: string | null
  vip?: boolean
}

export interface Maintenance {
  all?: boolean
  at?: string
  begun?: boolean
  by?: string
  create_index?: number
  end: string | null
  id: string
  keep_running?: boolean
  modify_index?: number
  nodes?: string[]
  pool?: string
  reason?: string
  start: string | null
}

export interface MaintenanceChanged {
  index: number
  window: MaintenanceDetail
}

export interface MaintenanceDetail {
  all?: boolean
  at?: string
  begun?: boolean
  by?: string
  create_index?: number
  end: string | null
  id: string
  keep_running?: boolean
  modify_index?: number
  names: string[] | null
  nodes?: string[]
  others?: number
  pool?: string
  reason?: string
  running: MaintenanceJob[] | null
  start: string | null
}

export interface MaintenanceJob {
  checkpoint: boolean
  expected: string | null
  job_id: string
  job_name: string
  limit: string | null
  nodes: string[] | null
  project: string
  subjob: number
  user?: string
}

export interface MaintenanceList {
  windows: MaintenanceDetail[] | null
}

export interface MaintenanceRequest {
  all?: boolean
  end?: string
  for?: string
  keep_running?: boolean
  nodes?: string[]
  pool?: string
  reason?: string
  start?: string
}

export interface Member {
  certificate_ends_at?: string
  gossip_addr: string
  id: string
  leader?: boolean
  name: string
  protocol?: number
  role: string
  rpc_addr: string
  status: string
  version?: string
}

export interface MemberList {
  members: Member[] | null
}

export interface MemberRequest {
  role?: string
  user: string
}

export interface Membership {
  project: string
  role: string
}

export interface MetricPoint {
  at: string | null
  step: number
  value: number
}

export interface MetricResult {
  count: number
  last: MetricPoint
  max: number
  min: number
  name: string
  subjob?: number
}

export interface MetricSeries {
  count: number
  last: MetricPoint
  max: number
  min: number
  name: string
  not_finite?: number
  not_finite_at?: string
  points: MetricPoint[] | null
  source: string
}

export interface Metrics {
  events?: string
  patterns?: string[]
}

export type Mode = 'single' | 'pytorch' | 'deepspeed' | 'horovod' | 'mpi' | 'tensorflow' | 'mindspore' | 'jax' | 'none'
export const modes: Mode[] = ['single', 'pytorch', 'deepspeed', 'horovod', 'mpi', 'tensorflow', 'mindspore', 'jax', 'none']

export interface Moment {
  at: string | null
  id: string
  params?: Record<string, string>
  stage: Stage
  took?: string
}

export interface Mount {
  read_only?: boolean
  source?: string
  storage?: string
  target: string
}

export interface NewJoinToken {
  join: string
  token: JoinToken
}

export interface NewShare {
  path: string
  secret: string
  token: Token
}

export interface NewToken {
  secret: string
  token: Token
}

export interface NodeDetail {
  addr: string
  allocations: Allocation[] | null
  attributes?: Record<string, string>
  capacity: Capacity
  create_index: number
  data?: string[]
  devices?: Device[]
  drain_deadline?: string
  drivers?: string[]
  eligibility: Eligibility
  faults?: NodeFault[]
  id: string
  incarnation: number
  machine?: string
  maintenance?: NodeMaintenance[]
  may: string[] | null
  modify_index: number
  name: string
  own_pool?: string
  pool?: string
  raw?: boolean
  rdma?: boolean
  register_index: number
  registered_at?: string
  removed?: boolean
  root?: boolean
  rpc_addr: string
  session?: string
  status: NodeStatus
  status_at?: string
  status_reason?: Reason
  storages?: string[]
  topology?: string[]
  unknown?: string[]
  used: Usage
  version: string
}

export interface NodeDevices {
  at?: string
  cpu: number
  cpu_busy?: number
  cpu_held: number
  devices: DeviceState[] | null
  eligibility: Eligibility
  id: string
  measured: boolean
  memory: number
  memory_busy?: number
  memory_held: number
  name: string
  pool: string
  status: NodeStatus
}

export interface NodeFault {
  name: string
  reason: Reason
  unfit?: boolean
}

export interface NodeHistory {
  at: (string | null)[] | null
  devices: CardHistory[] | null
  id: string
  machine: GaugeHistory[] | null
  name: string
  step: string
}

export interface NodeImage {
  bytes: number
  created_at?: string
  description?: string
  devices?: string[]
  digests?: string[]
  driver_version?: string
  id: string
  in_use?: boolean
  names?: string[]
  private?: boolean
  pulled?: boolean
  scope?: string[]
  used_at?: string
}

export interface NodeImages {
  images?: NodeImage[]
  left?: number
  work?: ImageWork[]
}

export interface NodeList {
  next?: string
  nodes: NodeSummary[] | null
}

export interface NodeMaintenance {
  begun?: boolean
  end: string | null
  id: string
  keep_running?: boolean
  reason?: string
  start: string | null
}

export type NodeStatus = 'ready' | 'disconnected' | 'lost' | 'left'
export const nodeStatuses: NodeStatus[] = ['ready', 'disconnected', 'lost', 'left']

export interface NodeSummary {
  addr: string
  attributes?: Record<string, string>
  capacity: Capacity
  create_index: number
  data?: string[]
  devices?: Device[]
  drain_deadline?: string
  drivers?: string[]
  eligibility: Eligibility
  faults?: NodeFault[]
  id: string
  incarnation: number
  machine?: string
  maintenance?: NodeMaintenance[]
  modify_index: number
  name: string
  own_pool?: string
  pool?: string
  raw?: boolean
  rdma?: boolean
  register_index: number
  registered_at?: string
  removed?: boolean
  root?: boolean
  rpc_addr: string
  session?: string
  status: NodeStatus
  status_at?: string
  status_reason?: Reason
  storages?: string[]
  topology?: string[]
  unknown?: string[]
  used: Usage
  version: string
}

export interface Nomination {
  gang: GangPlan
  since: string | null
  victims: AttemptKey[] | null
}

export interface NotificationInfo {
  deliveries: NotifyDelivery[] | null
  do?: string
  id: string
  job?: string
  job_id?: string
  kind: string
  lines?: string[]
  project?: string
  seen: boolean
  time: string | null
  title: string
  what: string[] | null
}

export interface NotificationList {
  notifications: NotificationInfo[] | null
  through: number
  unseen: number
}

export interface NotificationsSeen {
  through: number
}

export interface NotifyChannelChanged {
  index: number
  secret?: string
}

export interface NotifyChannelInfo {
  host?: string
  kind: string
  last?: NotifyDelivery
  name: string
}

export interface NotifyChannelRequest {
  kind: string
  secret?: string
  url?: string
}

export interface NotifyDelivery {
  channel: string
  next_at?: string
  problem?: string
  sent_at?: string
  tries?: number
}

export interface NotifyQuiet {
  from: number
  to: number
  zone: string
}

export interface NotifyRequest {
  expire_in?: string
  on: NotifyRule[] | null
  quiet?: NotifyQuiet
  wait_longer?: string
}

export interface NotifyRule {
  channels: string[] | null
  kind: string
  since?: string
}

export interface NotifyStatus {
  allowed: string[] | null
  channels: NotifyChannelInfo[] | null
  chosen: boolean
  email?: string
  expire_in: string
  kinds: string[] | null
  mail: boolean
  on: NotifyRule[] | null
  quiet?: NotifyQuiet
  user: string
  version?: number
  wait_longer: string
}

export interface NotifyTested {
  problem?: string
  sent: boolean
}

export type Outcome = 'succeeded' | 'failed' | 'lost' | 'preempted' | 'stopped' | 'expired'
export const outcomes: Outcome[] = ['succeeded', 'failed', 'lost', 'preempted', 'stopped', 'expired']

export interface Outlook {
  all: PoolLoad
  at: string | null
  could_start: Startable[] | null
  now: number
  pools: PoolLoad[] | null
  times: (string | null)[] | null
}

export interface OutputKeep {
  apart?: boolean
  as: string
  name?: string
  path?: string
  storage?: string
  when?: string
}

export interface ParallelRequest {
  parallel: number
}

export interface ParamValue {
  name: string
  value: string
}

export interface PasswordChanged {
  first?: string
  index: number
  until?: string
}

export interface PasswordRequest {
  current?: string
  forget?: boolean
  password?: string
  reset?: boolean
}

export interface Past {
  forgotten?: PastUse[]
  from: string | null
  more?: number
  nodes: PastNode[] | null
  to: string | null
}

export interface PastCA {
  fingerprint: string
  until: string | null
}

export interface PastCard {
  gone?: boolean
  id: string
  index: number
}

export interface PastNode {
  cards: PastCard[] | null
  complete_since?: string
  joined_at?: string
  node: string
  node_id: string
  outages?: PastOutage[]
  pool: string
  removed?: boolean
  spans: PastSpan[] | null
}

export interface PastOutage {
  card?: number
  from: string | null
  to: string | null
}

export interface PastSpan {
  attempt?: number
  cards: number[] | null
  cpu?: number
  from: string | null
  held?: boolean
  job?: string
  job_id?: string
  project?: string
  subjob?: number
  to: string | null
  unknown_cards?: number
  user?: string
}

export interface PastUse {
  cards: number
  from: string | null
  nodes: number
  pool: string
  to: string | null
}

export interface Performance {
  action?: string
  compare?: string
  pattern?: string
  threshold: number
  times?: number
}

export interface Placement {
  driver_version?: string
  nodes?: string[]
  pool?: string
  spread_or_pack?: string
}

export interface Pool {
  age_weight?: number
  ceilings?: PoolCeilings
  ceilings_at?: string
  ceilings_by?: string
  constraints?: Record<string, string>
  create_index?: number
  dedicated?: boolean
  defaults?: PoolDefaults
  description?: string
  exec?: PoolExec
  floors?: PoolFloors
  half_life?: string
  modify_index?: number
  name: string
  no_rdma?: boolean
  nodes?: string[]
  order?: QueueOrder
  raw?: boolean
  rdma?: boolean
  sku?: SKU
}

export interface PoolCeilings {
  devices?: number
  grace?: string
  hold?: string
  max_resumes?: number
  no_checkpoint?: boolean
  nodes?: number
  time_limit?: string
}

export interface PoolDefaults {
  hold?: string
  priority?: Priority
  task?: TaskDefaults
  time_limit?: string
}

export interface PoolDetail {
  cpu: number
  cpu_used: number
  defined: boolean
  devices: number
  devices_used: number
  effective?: Ceiling[]
  members?: string[]
  memory: number
  memory_used: number
  models: DeviceShare[] | null
  nodes: number
  pool: Pool
  queued: number
  ready: number
  running: number
}

export interface PoolExec {
  projects?: Record<string, string>
  root?: boolean
  users?: Record<string, string>
}

export interface PoolFloors {
  cpu?: number
  devices?: number
  memory?: number
  sku?: number
}

export interface PoolList {
  pools: PoolDetail[] | null
}

export interface PoolLoad {
  away: number[] | null
  counts_nodes?: boolean
  foreseen: number[] | null
  held: number[] | null
  pool: string
  reserved: number[] | null
  total: number[] | null
  used: number[] | null
}

export interface PoolShare {
  cpu_hours: number
  device_hours: number
  fair: boolean
  pool: string
  rank: number
  recent: number
}

export interface PortRequest {
  name: string
  static?: number
}

export type Priority = 'normal' | 'urgent' | 'critical'
export const priorities: Priority[] = ['normal', 'urgent', 'critical']

export interface Probe {
  ok: boolean
  reason?: string
}

export interface Progress {
  cards?: string[]
  for?: string
  idle?: boolean
  limit?: string
  measured?: boolean
  mute?: boolean
  over?: boolean
  silent?: boolean
  step?: number
}

export interface Project {
  admins?: string[]
  archived?: boolean
  archived_at?: string
  archived_by?: string
  bounds_at?: string
  bounds_by?: string
  ceilings?: PoolCeilings
  code_max?: number
  create_index?: number
  data_quota?: number
  defaults?: TaskDefaults
  description?: string
  granted?: Granted[]
  job_defaults?: JobDefaults
  members?: string[]
  modify_index?: number
  name: string
  no_sharing?: boolean
  quotas?: Quota[]
  urgent_limit?: number
  viewers?: string[]
  weight?: number
}

export interface ProjectDetail {
  defined: boolean
  effective: Ceiling[] | null
  held: Record<string, number> | null
  project: Project
  queued: number
  quotas: QuotaUse[] | null
  running: number
  shared?: Shared
  shares: PoolShare[] | null
  urgent: number
}

export interface ProjectList {
  projects: ProjectDetail[] | null
}

export interface ProjectUse {
  project: string
  use: UseOverTime
  users: UserUse[] | null
}

export interface ProviderAnswer {
  code?: string
  error?: string
  iss?: string
  state?: string
}

export interface Queue {
  entries: QueueEntry[] | null
  hidden?: number
  next?: string
}

export interface QueueEntry {
  awaits?: JobRef[]
  devices?: number
  forecast?: When
  holders?: JobRef[]
  job_id: string
  job_name: string
  job_number?: number
  moved?: boolean
  nodes: number
  pool?: string
  position: number
  preemptible?: boolean
  priority: Priority
  project: string
  queued_at: string | null
  subjob: number
  user?: string
  vip?: boolean
  wait?: WaitReason
}

export interface QueueForecast {
  at: string | null
  starts: Start[] | null
}

export interface QueueMoveRequest {
  before?: string
  last?: boolean
}

export type QueueOrder = 'submission' | 'fair'
export const queueOrders: QueueOrder[] = ['submission', 'fair']

export interface Quota {
  guaranteed?: number
  kind: string
  maximum?: number
  model?: string
}

export interface QuotaUse {
  borrowed?: number
  guaranteed?: number
  held: number
  kind: string
  maximum?: number
  model?: string
}

export interface RaftPeer {
  addr: string
  id: string
  leader: boolean
  name?: string
  voter: boolean
}

export interface RaftPeerList {
  index: number
  peers: RaftPeer[] | null
  removed?: RemovedServer[]
}

export interface RankDevice {
  gauges?: Record<string, number>
  healthy: boolean
  id: string
  index: number
  model: string
}

export interface RankFile {
  content?: string
  path: string
}

export interface RankHistory {
  alloc_id: string
  cpu: number
  memory: number
  node: string
  node_id: string
  rank: number
  series: GaugeHistory[] | null
  status: AllocStatus
}

export interface RankMetrics {
  alloc_id: string
  attempt: number
  left_out?: number
  node: string
  rank: number
  series: MetricSeries[] | null
  subjob?: number
}

export interface RankPlacement {
  devices?: string[]
  node_id: string
  ports?: Record<string, number>
}

export interface RankPlan {
  command?: string[]
  env: Record<string, string> | null
  files?: RankFile[]
  hold?: boolean
  name: string
  node?: string
  ports?: Record<string, number>
  rank: number
}

export interface RankUsage {
  alloc_id: string
  at?: string
  cpu: number
  cpu_busy?: number
  cpu_seconds?: number
  devices?: RankDevice[]
  measured: boolean
  memory: number
  memory_used?: number
  node: string
  node_id: string
  processes?: number
  rank: number
  status: AllocStatus
}

export interface Reason {
  id: string
  params?: Record<string, string>
}

export interface RemovedNode {
  at: string | null
  by?: string
  id: string
  name?: string
  until: string | null
}

export interface RemovedServer {
  at: string | null
  by?: string
  id: string
}

export interface RenewRequest {
  certificate: string
  csr: string
  proof: string | null
}

export interface Renewed {
  ca?: string
  certificate: string
  past_ca?: StructsPastCA[]
}

export type ReportBy = 'user' | 'project' | 'pool' | 'cards' | 'tag' | 'size'
export const reportBies: ReportBy[] = ['user', 'project', 'pool', 'cards', 'tag', 'size']

export type ReportPer = '' | 'day' | 'week' | 'month'
export const reportPers: ReportPer[] = ['', 'day', 'week', 'month']

export interface ReportUse {
  card_ms: number
  core_ms: number
  failed_ms: number
  good_ms: number
  key: string
  lost_ms: number
  period?: string
  ranks: number
  running_ms: number
  stopped_ms: number
  yielded_ms: number
}

export interface ReportWait {
  attempts: number
  forecast: number
  held_p50: number
  held_p90: number
  key: string
  max_ms: number
  mean_ms: number
  p50_ms: number
  p90_ms: number
  p95_ms: number
  period?: string
  within_minute: number
}

export interface Resources {
  cpu: number
  devices?: DeviceRequest[]
  disk?: number
  label?: string
  last_devices?: number
  memory: number
  ports?: PortRequest[]
  rdma?: boolean
  rdma_by_nodes?: boolean
  shared_memory?: number
  sku?: number
}

export interface Restart {
  delay?: string
  max_restarts: number
}

export interface Row {
  away?: boolean
  bars: Bar[] | null
  devices?: number
  more?: number
  node: string
  node_id: string
  pool: string
}

export interface SKU {
  cpu: number
  devices?: DeviceRequest[]
  memory: number
}

export interface SSHAuthority {
  key: string
}

export interface SavedCheckpoint {
  attempt: number
  job_id: string
  path: string
  rank: number
  saved_at: string | null
  step?: number
}

export interface SecretChanged {
  index: number
  jobs: SecretJob[] | null
  unmasked?: boolean
  version?: number
}

export interface SecretInfo {
  created_at: string | null
  created_by: string
  jobs: SecretJob[] | null
  name: string
  own: boolean
  project?: string
  updated_at: string | null
  updated_by: string
  verbs: string[] | null
  version: number
}

export interface SecretJob {
  id: string
  name: string
  user: string
}

export interface SecretKeys {
  current: string
  keys: number
  lacking: string[] | null
  resealed: number
  secrets: number
  server_key: string
}

export interface SecretList {
  secrets: SecretInfo[] | null
}

export interface SecretRequest {
  value: string | null
}

export interface SecretUse {
  image?: boolean
  name: string
  user?: string
  var?: string
}

export interface Self {
  cluster?: string
  memberships: Membership[] | null
  name: string
  project: string
  role: string
  service?: ServiceAccount
  token: Token
  user?: User
}

export interface SelfUse {
  effective: Ceiling[] | null
  idle: IdleUse[] | null
  jobs: JobUse[] | null
  more?: number
  pool: string
  project: string
  queued: number
  quotas: QuotaUse[] | null
  running: number
  use: UseOverTime
  user: string
}

export interface ServerCondition {
  backup?: string
  full?: boolean
  id: string
  name?: string
}

export interface ServerHealth {
  addr: string
  backup_failed?: string
  disk_full?: boolean
  healthy: boolean
  id: string
  leader: boolean
  name?: string
  status: string
  voter: boolean
}

export interface ServersJoinRequest {
  addresses: string[] | null
}

export interface ServersJoined {
  joined: number
}

export interface ServiceAccount {
  create_index?: number
  created_at?: string
  created_by?: string
  description?: string
  disabled?: boolean
  disabled_at?: string
  disabled_by?: string
  modify_index?: number
  name: string
  owner?: string
  project?: string
  role: string
}

export interface ServiceAccountDetail {
  account: ServiceAccount
  live: number
  tokens?: Token[]
  user: string
  verbs: string[] | null
}

export interface ServiceAccountList {
  accounts: ServiceAccountDetail[] | null
}

export interface ServiceAccountRequest {
  description?: string
  owner?: string
  role?: string
}

export interface ServiceAccountStateRequest {
  disabled?: boolean
  jobs?: string
  to?: string
}

export interface ServiceRevokeRequest {
  all?: boolean
  token?: string
}

export interface ServiceTokenRequest {
  addresses?: string[]
  name?: string
  ttl?: string
  verbs?: string[]
}

export interface Session {
  expires_at: string | null
  token: Token
}

export interface SessionBeginRequest {
  provider: string
}

export interface SessionBegun {
  address: string
}

export interface SessionEnded {
  address?: string
}

export interface SessionRequest {
  answer?: ProviderAnswer
  code?: string
  new_password?: string
  password?: string
  provider?: string
  token?: string
  user?: string
}

export interface Settings {
  ceilings?: PoolCeilings
  ceilings_at?: string
  ceilings_by?: string
  modify_index?: number
  no_sharing?: boolean
  service_token_ttl?: string
  sharing_at?: string
  sharing_by?: string
}

export interface SettingsAnswer {
  effective: Ceiling[] | null
  settings: Settings
  shared: Shared
}

export interface SettingsRequest {
  ceilings?: PoolCeilings
  no_sharing?: boolean
  service_token_ttl?: string
}

export interface ShareList {
  shares: Token[] | null
}

export interface ShareRequest {
  name?: string
  ttl?: string
}

export interface Shared {
  live: number
  read_only: number
  read_write: number
}

export interface Shift {
  after?: When
  before?: When
  by: string
  job_id: string
  job_name: string
  project: string
  subjob: number
}

export interface Shown {
  columns?: TableColumn[]
  count?: number
  encoding?: string
  height?: number
  kind: string
  media?: string
  more?: boolean
  rows?: (string[] | null)[]
  text?: string
  why?: string
  width?: number
}

export interface SnapshotMeta {
  cluster: string
  index: number
  secret_keys?: string[]
  sha256: string
  size: number
  taken_at?: string
  term: number
}

export interface Span {
  p50: string
  p90: string
}

export interface SpecAnswer {
  beyond?: Beyond
  label?: string
  nodes?: number
  p50: string | null
  p90: string | null
  point: string | null
  spec: number
  verdict: Verdict
  wait?: WaitReason
}

export type Stage = 'fault' | 'noticed' | 'agreed' | 'saved' | 'stopped' | 'placed' | 'running' | 'stepped'
export const stages: Stage[] = ['fault', 'noticed', 'agreed', 'saved', 'stopped', 'placed', 'running', 'stepped']

export interface Start {
  attempt: number
  beyond?: Beyond
  devices?: number
  job_id: string
  job_name: string
  nodes: number
  p50: string | null
  p90: string | null
  point: string | null
  pool: string
  position: number
  priority: Priority
  project: string
  subjob: number
  user?: string
  verdict: Verdict
  wait?: WaitReason
}

export interface Startable {
  free: number
  half: number
  kind: string
  model: string
  more?: boolean
  most: number
  node: number
  single: number
  whole: number
}

export interface StopOrder {
  grace: string
  signal: string
}

export interface Subjob {
  attempt: number
  attempts_from?: number
  avoid?: string[]
  checkpoints?: SavedCheckpoint[]
  claim?: Nomination
  consents?: Consent[]
  control?: Control
  create_index: number
  exit_code: number
  finished_at?: string
  index: number
  infra_losses: number
  job_id: string
  modify_index: number
  moved?: boolean
  moves?: number
  no_passing_at?: string
  not_before?: string
  pending?: string[]
  place: number
  queued_at: string | null
  reason?: Reason
  restarts: number
  started_at?: string
  state: JobState
  stop_by?: string
  stop_intended?: JobState
  turn?: boolean
  wait?: WaitReason
}

export interface SubjobList {
  next?: string
  subjobs: Subjob[] | null
}

export interface Supports {
  finish_now?: boolean
  pause?: boolean
  resume?: boolean
  throttle?: boolean
}

export interface Sweep {
  args?: string
  goal?: string
  max_trials?: number
  method: string
  metric?: string
  parallel?: number
  params: SweepParam[] | null
  seed?: number
}

export interface SweepParam {
  count?: number
  double?: string[]
  int?: string[]
  log?: string[]
  name: string
  values?: string[]
}

export interface TableColumn {
  name: string
  type?: string
}

export interface Task {
  arguments?: string
  command: string
  dir?: string
  driver: string
  env?: Record<string, string>
  hooks?: Hook[]
  image?: string
  logs?: LogPolicy
  options?: Record<string, string>
  pull?: string
  secrets?: SecretUse[]
  ulimits?: Record<string, string>
  user?: string
}

export interface TaskDefaults {
  arguments?: string
  env?: Record<string, string>
}

export interface TaskPage {
  address: string
  expires_at: string | null
  port: number
}

export interface TaskPageRequest {
  port: string
}

export interface Template {
  bytes: number
  created_at: string | null
  created_by: string
  description?: string
  hcl: string
  name: string
  own: boolean
  project: string
  updated_at: string | null
  updated_by: string
  verbs: string[] | null
}

export interface TemplateInfo {
  bytes: number
  created_at: string | null
  created_by: string
  description?: string
  name: string
  own: boolean
  project: string
  updated_at: string | null
  updated_by: string
  verbs: string[] | null
}

export interface TemplateList {
  templates: TemplateInfo[] | null
}

export interface TemplateRequest {
  description?: string
  hcl: string
}

export interface Tensorboard {
  logdir: string
}

export interface Throttle {
  busy: string
  keep: string
}

export interface ThrottleRequest {
  busy?: string
  idle: string
  reason?: string
  subjob?: number
}

export interface TimeLimitRequest {
  time_limit: string
}

export interface Timeline {
  from: string | null
  more?: number
  rows: Row[] | null
  to: string | null
}

export interface Token {
  addresses?: string[]
  created_at: string | null
  created_by?: string
  ends_at?: string
  expires_at?: string
  from?: string
  hash?: string
  id: string
  job_id?: string
  method?: string
  modify_index: number
  name?: string
  project?: string
  provider?: string
  role: string
  used_at?: string
  used_from?: string
  user?: string
  verbs?: string[]
}

export interface TokenDeleted {
  address?: string
  index: number
}

export interface TokenList {
  next?: string
  tokens: Token[] | null
}

export interface TokenRequest {
  addresses?: string[]
  name?: string
  project?: string
  role: string
  ttl?: string
  user?: string
  verbs?: string[]
}

export interface Trial {
  attempt?: number
  exit_code?: number
  finished_at?: string
  metric?: MetricResult
  name?: string
  params?: ParamValue[]
  started_at?: string
  state: JobState
  subjob: number
  turn?: boolean
}

export interface TrialList {
  away?: string[]
  goal?: string
  left_out?: number
  metric?: string
  trials: Trial[] | null
  waiting?: number
}

export interface Usage {
  allocs: number
  claim?: string
  cpu: number
  devices?: Record<string, string>
  memory: number
  modify_index: number
  node_id: string
  overcommitted?: boolean
  ports?: Record<string, string>
}

export interface UsageReport {
  by: ReportBy
  from: string | null
  gaps: HistoryGap[] | null
  index: number
  lines: ReportUse[] | null
  per: ReportPer
  rows: number
  since?: string
  to: string | null
  zone: string
}

export interface UseOverTime {
  cpu_hours: number
  days: DayUse[] | null
  device_hours: number
  from: string | null
  known_since?: string
  to: string | null
}

export interface User {
  create_index?: number
  created_at?: string
  created_by?: string
  disabled?: boolean
  disabled_at?: string
  disabled_by?: string
  display_name?: string
  email?: string
  identities?: Identity[]
  language?: string
  modify_index?: number
  name: string
  project?: string
  role?: string
  ssh_keys?: string[]
}

export interface UserDetail {
  live: number
  memberships: Membership[] | null
  user: User
}

export interface UserList {
  users: UserDetail[] | null
}

export interface UserStateRequest {
  disabled?: boolean
  jobs?: string
  to?: string
}

export interface UserUse {
  cpu_hours: number
  device_hours: number
  user: string
}

export interface VIP {
  ask?: VIPAsk
  machines: VIPMachine[] | null
}

export interface VIPAsk {
  for: string
  message?: string
  silence?: string
}

export interface VIPMachine {
  busy?: string
  node: string
}

export type Verdict = 'now' | 'later' | 'never' | 'unknown'
export const verdicts: Verdict[] = ['now', 'later', 'never', 'unknown']

export interface Victim {
  attempt: number
  checkpoint_at?: string
  grace: string
  job_id: string
  job_name: string
  lost: string
  nodes: string[] | null
  preemptible?: boolean
  priority: Priority
  project: string
  since: string | null
  subjob: number
  user?: string
}

export interface WaitReason {
  holders?: string[]
  id: string
  never?: boolean
  params?: Record<string, string>
  position?: number
}

export interface WaitsReport {
  by: ReportBy
  from: string | null
  gaps: HistoryGap[] | null
  index: number
  lines: ReportWait[] | null
  per: ReportPer
  rows: number
  since?: string
  to: string | null
  zone: string
}

export interface Warning {
  seq: number
  signal: string
}

export interface WhatIfRequest {
  changes: Change[] | null
}

export interface When {
  beyond?: Beyond
  p50: string | null
  p90: string | null
  point: string | null
  verdict: Verdict
}

export interface Workdir {
  bytes?: number
  files?: number
  git?: WorkdirGit
  repo?: WorkdirRepo
  source: string
  tree?: string
}

export interface WorkdirGit {
  branch?: string
  commit?: string
  dirty?: boolean
}

export interface WorkdirRepo {
  ref?: string
  subdir?: string
}

export interface Yield {
  at: string | null
  attempt: number
  subjob: number
  to: JobRef
}

export interface StructsKeyRotation {
  by?: string
  from: string
  stage: KeyStage
  stage_at: string | null
  started_at: string | null
  to: string
}

export interface StructsPastCA {
  certificate: CACertificate
  cross: string
  until: string | null
}
