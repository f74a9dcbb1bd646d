package wire

// ProtocolVersion is the version of everything agents say to each other and
// write to the log. It rises by one with every change; each has its line:
//
//	1  2026-11-21  first version: commands 1 to 18, node session, exec stream
//	2  2026-11-21  pools, projects, claims, places in the queue, forecasts: commands 19 to 25
//	3  2026-11-21  figures of nodes and treatment of their devices: Node.Figures, Node.Treat, command 26
//	4  2026-11-21  pause, continue, throttle and finish: commands 27 and 28, Allocation.Control and its answer
//	5  2026-11-21  containers kept as images: Alloc.Commit; events tell causes and the health of devices
//	6  2026-11-22  what ranks used over time: Node.RankPast
//	7  2026-11-22  commands with a guard: command 30; cursors of the event stream
//	8  2026-11-22  ended jobs are forgotten many at once: command 31
//	9  2026-11-22  commands and stored states say which version wrote them, and fields that a server does not know stop it; servers tell a full disk
//	10  2026-11-22  whom tasks run as: Assignment.RunAs, Pool.Exec
//	11  2026-11-22  servers that stay removed: command 32; Agent.Ping tells the address and whether the caller was removed
//	12  2026-11-22  removed nodes: command 33, Agent.Trust
//	13  2026-11-23  how servers do: command 34, Agent.Ping tells a full disk and failed backups
//	14  2026-11-23  rotation of the keys that all agents share: command 35, Agent.Trust tells keys
//	15  2026-11-23  the bytes of live jobs are bounded, and the event of forgotten jobs names projects: JobSubmit.BytesMax, JobsForget.ByProject
//	16  2026-11-23  where RDMA is the nodes say, and a pool may deny it: Resources.RDMAByNodes, Pool.NoRDMA; settings of the container engine: Task.Options;
//	                commands that count once: Guarded.Once; starts that fail are waited for and explained: Job.PatientStarts;
//	                what a rank writes may be bounded by its job: Resources.Disk; who has no quota yields to guarantees: Job.OutsideYields;
//	                checkpoints are saved at every end: Job.SavesAtEnds; VIP jobs kill when they can have all: Job.KillsLast; time limits are warned of: Job.LimitWarning, Attempt.WarnedAt, Allocation.Warning;
//	                devices that have nothing to do: AllocNote.Idle, Allocation.IdleSince; addresses of nodes: Member.Addrs;
//	                another platform's variables and files: Distributed.Emulate; gangs on fewer nodes in one block: Job.Elastic;
//	                rotation of the CA: command 36, Agent.Trust tells certificates
//	17  2026-11-26  what people write on jobs: Job.Tags, Job.Note, command 37
//	18  2026-11-26  maintenance windows: commands 38 and 39, Cluster.Maintenance, Node.Maintenance
//	19  2026-11-26  agents tell when their certificates end: Meta.CertificateEnds
//	20  2026-11-26  owners are asked for VIP jobs: command 40, VIP.Ask, Subjob.Consents
//	21  2026-11-26  faults that tasks bring upon their devices are events of their jobs: Told.Event
//	22  2026-11-26  accounts of people, and who belongs to projects in which role: commands 41 to 44, Project.Admins, Project.Viewers, users in stored states
//	23  2026-11-26  servers give each other their audit records: Server.Audit, Server.AuditCheck
//	24  2026-11-27  projects have defaults, ceilings and an archive: command 45, Project.Ceilings, Project.Archived, Project.BoundsBy
//	25  2026-11-27  people sign in with passwords: commands 46 and 47, Token.Method, Token.From, Token.EndsAt, passwords in stored states
//	26  2026-11-27  secrets of projects and users: commands 48 to 51, Task.Secrets, Server.Secrets, Server.OfferServerKey, secrets and their keys in stored states
//	27  2026-11-27  tokens of programs are good for some verbs and from some addresses: Token.Verbs, Token.Addresses
//	28  2026-11-27  people sign in through directories and other providers: commands 52 and 53, User.Identities, Project.Granted, Token.Provider
//	29  2026-11-27  images of registries that a secret signs in to: SecretUse.Image
//	30  2026-11-27  people are told what happened: commands 54 and 55, settings and messages in stored states
//	31  2026-11-27  settings of the whole cluster, and sharing that administrators switch off: command 56, RestSettings, Project.NoSharing, Pool.CeilingsBy, settings in stored states
//	32  2026-11-27  code travels with jobs: Job.Workdir
//	33  2026-11-27  servers hear what nodes refuse at their own doors: Server.Refusals
//	34  2026-11-27  service accounts: commands 57 to 61, RestService, Token.UsedAt, Token.UsedFrom, Settings.ServiceTokenTTL, service accounts in stored states
//	35  2026-11-27  servers keep the code that travels with jobs: commands 62 and 63, Server.Code, Server.TakeCode, code in stored states
//	36  2026-11-27  conditions are told once: NotifyMark.Holds, NotifyStep.Raised and Cleared, the kind quota in NotifySet
//	37  2026-11-27  jobs say where they are told of: Job.Notify, JobDefaults.Notify
//	38  2026-11-27  code of jobs comes from git repositories: Workdir.Repo
//	39  2026-11-27  named data: commands 64 to 70, RestData, DataRef.Project, DataRef.Tag, DataRef.Object, Project.DataQuota, data in stored states
//	40  2026-11-27  how much code travels with a job is its project's to say: Project.CodeMax; none of a project that was deleted: ProjectDelete.EndsCode, CodePut.Since, ProjectUsage.CodeSince
//	41  2026-11-27  nodes tell digests of what jobs wrote: FileRequest.Digest, FileChunk.SHA256
//	42  2026-11-27  images of nodes: commands 71 and 72, Node.Images, Node.Image, what is declared of images in stored states
//	43  2026-11-27  the bytes of named data: Node.Data
//	44  2026-11-27  where the bytes of named data lie stays when its owner changes: DataObject.Home
//	45  2026-11-27  outputs of jobs become versions of named data: Job.OutputKeep, DataBegin.Take, DataDrop.Cause, DataVersion.Origin, what Node.Data is asked to take
//	46  2026-11-27  nodes hand each other copies of named data: Node.Staged, Server.StagingPeers, Server.StagingMay
//	47  2026-11-27  files of named data come one by one: DataAsk.File
//	48  2026-11-27  uploads that nobody goes on with are swept: what Node.Data is asked to list and to clear
//	49  2026-11-27  ssh into tasks: ExecStart.SSH
//	50  2026-11-27  templates of jobs: commands 73 and 74, RestTemplate, templates in stored states
//	51  2026-11-27  subjobs of a batch make a version each of what they write: OutputKeep.Apart, DataOrigin.Apart
//	52  2026-11-28  jobs that wait for others and for times, and numbers of jobs: Job.After, Job.Begin, Job.Deadline, Job.MaxQueueTime, Job.Number,
//	                JobSubmit.Numbered, JobLimits.Queued, Subjob.Pending
//	54  2026-11-28  servers give each other rows of the history: Server.History
//	55  2026-11-28  sweeps, arrays, and how many subjobs run at a time: command 75, Job.Sweep, Batch.Array, Batch.Parallel, Subjob.Turn
const ProtocolVersion = 55

// The first versions that know what must not be proposed to older servers.
const (
	ProtocolGuards       = 7  // guarded commands
	ProtocolForget       = 8  // CommandJobsForget
	ProtocolRemovals     = 11 // CommandServerRemoval
	ProtocolNodeRemovals = 12 // CommandNodeRemove
	ProtocolConditions   = 13 // CommandServerReport
	ProtocolKeys         = 14 // CommandKeyRotate
	ProtocolJobBytes     = 15 // JobSubmit.BytesMax, JobsForget.ByProject
	ProtocolRDMA         = 16 // Resources.RDMAByNodes, Pool.NoRDMA
	ProtocolOnce         = 16 // Guarded.Once
	ProtocolStarts       = 16 // Job.PatientStarts
	ProtocolCA           = 16 // CommandCARotate
	ProtocolOutside      = 16 // Job.OutsideYields
	ProtocolSaves        = 16 // Job.SavesAtEnds
	ProtocolKills        = 16 // Job.KillsLast
	ProtocolIdle         = 16 // AllocNote.Idle
	ProtocolTags         = 17 // Job.Tags, Job.Note, CommandJobAnnotate
	ProtocolMaintenance  = 18 // CommandMaintenancePut, CommandMaintenanceStep
	ProtocolConsent      = 20 // VIP.Ask, CommandJobConsent
	ProtocolTaskFaults   = 21 // EventDeviceFault and EventDeviceFaultShared in Told.Event
	ProtocolUsers        = 22 // CommandUserPut, CommandUserState, CommandUserDelete, CommandProjectMember, RestUser
	ProtocolProjects     = 24 // CommandProjectArchive, Project.Ceilings, Project.BoundsBy
	ProtocolSignIn       = 25 // CommandPasswordSet, CommandTokenExtend, Token.Method
	ProtocolNotify       = 30 // CommandNotifySet, CommandNotifyStep
	ProtocolSecrets      = 26 // CommandSecretSet to CommandSecretsReseal, RestSecret, Task.Secrets, Server.Secrets, Server.OfferServerKey
	ProtocolProviders    = 28 // CommandSignIn, CommandUserIdentity, User.Identities, Project.Granted, Token.Provider
	ProtocolSettings     = 31 // CommandSettingsPut, RestSettings, Project.NoSharing, Pool.CeilingsBy
	ProtocolCode         = 35 // Job.Workdir, CommandCodePut, CommandCodeForget, Server.Code, Server.TakeCode
	ProtocolDataBytes    = 43 // Node.Data
	ProtocolDataLeft     = 48 // DataAskLeft, DataAskClear
	ProtocolDataFiles    = 47 // DataAskOpen to DataAskGather
	ProtocolData         = 39 // CommandDataPut to CommandDataMark, RestData, DataRef.Project, DataRef.Tag, DataRef.Object, Project.DataQuota
	ProtocolCodeSince    = 40 // ProjectDelete.EndsCode
	ProtocolHolds        = 36 // NotifyMark.Holds, structs.NotifyQuota in NotifySet
	ProtocolServices     = 34 // CommandServiceAccountPut to CommandTokensUsed, RestService, Token.UsedAt
	ProtocolKeep         = 45 // Job.OutputKeep, DataBegin.Take, what Node.Data is asked to take
	ProtocolSSH          = 49 // ExecStart.SSH
	ProtocolStaging      = 46 // Node.Staged
	ProtocolTemplates    = 50 // CommandTemplatePut, CommandTemplateDelete, RestTemplate
	ProtocolHistory      = 54 // Server.History
	ProtocolAfter        = 52 // Job.After, Job.Begin, Job.Deadline, Job.MaxQueueTime, JobSubmit.Numbered, JobLimits.Queued
	ProtocolSweeps       = 55 // Job.Sweep, Batch.Array, Batch.Parallel, CommandJobParallel
	ProtocolImages       = 42 // CommandImagePut, CommandImageTold, Node.Images, Node.Image
)
