"""The bodies of the API, written by `make generate` from the OpenAPI document: change the Go types, not this file.

They are dicts. Times are RFC 3339 text or None, spans text such as "1h30m". Servers that are newer say more.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict


class Accuracy(TypedDict):
    all: Calibration  # accuracy of the first forecasts of all attempts that have started
    pools: Optional[Dict[str, Calibration]]  # the same for each pool, by name


class After(TypedDict, total=False):
    id: str  # id of the job that is meant; absent where the caller may not read it
    job: str  # name, number or id of another job, as its author wrote it
    project: str  # project of the other job; absent for the job's own
    when: str  # how far it must have got: `succeeded`, `failed`, `ended` or `started`


class _AgentSelf(TypedDict):
    cluster: str  # id of the cluster
    config: Optional[Dict[str, Any]]  # configuration of the agent, secrets redacted
    id: str  # id of the agent that answers
    leader: bool  # whether it is the server that leads
    name: str  # name of the agent in its configuration
    protocol: int  # version of the protocol that it speaks
    roles: Optional[List[str]]  # `server`, `client` or both
    version: str  # version of the program


class AgentSelf(_AgentSelf, total=False):
    stats: Dict[str, str]  # figures of Raft, gossip and its certificate, by name


class AgentVersion(TypedDict):
    agents: int  # how many living agents run this version
    names: Optional[List[str]]  # names of agents that run it, servers first, at most 16
    version: str  # version of the program

AllocDesired = Literal['run', 'stop']

AllocStatus = Literal['pending', 'preparing', 'prepared', 'running', 'complete', 'failed', 'killed', 'lost']


class _Allocation(TypedDict):
    attempt: int  # number of the attempt, from 1
    create_index: int  # index of the log at which it was made
    desired: AllocDesired  # what the server wants of it: `run` or `stop`
    exit_code: int  # exit code of its command; 255 when nobody saw the exit
    id: str  # id of the allocation
    job_id: str  # id of the job
    job_name: str  # name of the job
    modify_index: int  # index of the log at which it changed last
    name: str  # name of the rank, also the host name of its task
    node_id: str  # id of the node
    node_name: str  # name of the node
    project: str  # name of the project
    rank: int  # rank in the gang, from 0
    released: bool  # whether its command may start: the barrier of its attempt is open
    spec: Resources  # resources of this rank
    status: AllocStatus  # how far it is, as its node reported last; `lost` by the server
    subjob: int  # number of the subjob in its batch, from 0


class Allocation(_Allocation, total=False):
    cause: Reason  # why it failed, was killed or was lost
    control: Control  # what people want of it while it runs: a pause or a throttle
    desired_reason: Reason  # why the server wants that
    devices: List[str]  # ids of the cards that it was given
    finished_at: str  # when it ended, by the node's clock; for a lost one, when the server wrote it off
    held: Dict[str, int]  # what counts in the project's quota: devices by kind and model, thousandths of cores under `cpu`
    hold: Hold  # how it is kept enterable after it has failed; absent when it is not
    idle_since: str  # since when none of its cards has had anything to do; absent while one works or unmeasured
    infra: bool  # whether the cause lies with the node, not with the user
    lease_over: bool  # lost: whether its node has surely ended what was strict
    note_seq: int  # number of the last note that its node sent of it
    obeyed: int  # `seq` of the last `control` that its node answered; absent when none
    oom_killed: bool  # whether it was killed for running out of memory
    pace: Progress  # how it has gone silent while it runs; absent while it is heard or nobody watches
    placed_at: str  # when it was placed on its node
    pool: str  # pool of its node when it was placed
    ports: Dict[str, int]  # its TCP ports on the node, by name
    progress: int  # progress of the step, per cent; absent when not known
    quarantined: bool  # lost: whether it keeps its cards until its node returns with an inventory
    resume: SavedCheckpoint  # newest checkpoint when it was placed; absent when there was none
    seen: Dict[str, str]  # facts of its environment that all ranks of the gang should share
    signal: int  # number of the signal that ended its command; absent when none did
    started_at: str  # when its command started, by the node's clock
    step: str  # step of its preparation: `precheck`, `image`, `data`, `files`, `hooks` or `barrier`
    stop: StopOrder  # signal and grace with which it is stopped; absent: as its job says
    warning: Warning  # signal to its command that the time limit comes


class AllocationList(TypedDict):
    allocations: Optional[List[Allocation]]  # by subjob, attempt and rank


class _Answered(TypedDict):
    asked_at: Optional[str]  # when the owner was asked
    of: JobRef  # job whose owner was asked; empty for one that the caller may not read
    until: Optional[str]  # until when the owner has time to answer


class Answered(_Answered, total=False):
    answer: ConsentAnswer  # `yes` or `no`; absent while there is no answer
    at: str  # when it was answered
    by: str  # user who answered
    over: bool  # whether the gang that was asked about runs no more


class ArchiveRequest(TypedDict, total=False):
    archived: bool  # whether the project is archived from now on
    stop_jobs: bool  # whether its queued and running jobs are stopped; without it a project that has some is refused


class _Asked(TypedDict):
    asked_at: Optional[str]  # when the owner was asked
    attempt: int  # number of the attempt, from 1
    silence: str  # what no answer means by then: `wait` or `kill`
    subjob: int  # number of the subjob in its batch, from 0
    to: JobRef  # VIP job that asks
    until: Optional[str]  # until when the owner has time to answer


class Asked(_Asked, total=False):
    answer: ConsentAnswer  # `yes` or `no`; absent while there is no answer
    at: str  # when it was answered
    by: str  # user who answered
    machines: List[str]  # names of the VIP job's machines on which the job runs
    message: str  # words of the VIP job to the owner
    stops: bool  # whether the job is stopped once the VIP job can have all its machines


class _AskedList(TypedDict):
    asked: Optional[List[Asked]]  # what VIP jobs ask the job's owner
    job_id: str  # id of the job


class AskedList(_AskedList, total=False):
    index: int  # index of the log that the answer is of


class _Attempt(TypedDict):
    allocs: Optional[List[str]]  # ids of its allocations, by rank
    create_index: int  # index of the log at which it was made
    exit_code: int  # exit code of the rank that failed first, or 128 plus the number of its signal
    job_id: str  # id of the job
    modify_index: int  # index of the log at which it changed last
    number: int  # number of the attempt, from 1
    placed_at: Optional[str]  # when it was placed
    spec: int  # which of the job's alternative resources it uses, from 0
    state: AttemptState  # how far it is, from `preparing` to `ended`
    subjob: int  # number of the subjob in its batch, from 0


class Attempt(_Attempt, total=False):
    by: AttemptKey  # attempt that it yielded to; absent unless it was preempted
    cause: Reason  # why it ended
    checkpoint_at: str  # when it last registered a checkpoint
    ended_at: str  # when nothing of it ran or held resources any more
    ending_at: str  # when its ranks began to be stopped
    first_failed: str  # id of the allocation that failed first; absent when none did
    hung_at: str  # since when its hang watch finds that it hangs; absent while it does not
    lost: int  # how many of its ranks torchrun goes on without because their nodes failed
    outcome: Outcome  # how it ended, and so who pays for it; absent before
    paused_at: str  # since when every rank stands still; absent while it is not paused
    paused_for: str  # how long earlier pauses lasted in all; not counted as run time; a span of time, such as 1h30m
    released_at: str  # when its barrier opened and commands could start
    running_at: str  # when the commands of all ranks ran
    warned_at: str  # when its ranks were told that its time limit comes


class AttemptKey(TypedDict):
    job_id: str  # id of the job
    number: int  # number of the attempt, from 1
    subjob: int  # number of the subjob in its batch, from 0


class AttemptList(TypedDict):
    attempts: Optional[List[Attempt]]  # by subjob and number

AttemptState = Literal['preparing', 'released', 'running', 'ending', 'ended']


class AuditActor(TypedDict, total=False):
    kind: str  # who it is: `user`, `guest` or `board` for a share link, `server`; missing for somebody unknown
    method: str  # how the caller said who it is: `token`, `session` or `share`
    role: str  # role of the user
    token_id: str  # id of the token that was shown, or that the session stands for
    user: str  # name of the user; of a server its id


class _AuditChain(TypedDict):
    at: Optional[str]  # time of that line
    first: int  # number of the first line that is kept
    hash: str  # SHA-256 of that line
    holder: str  # id of the server on whose disk they are
    last: int  # number of the last line that follows the one before
    lines: int  # how many lines were read
    server: str  # id of the server whose records they are


class AuditChain(_AuditChain, total=False):
    broken: str  # how the next line does not follow: `unreadable`, `server`, `missing`, `order`, `hash`, or `copy` where it differs from another disk's; missing when all lines follow
    file: str  # file with the line that does not follow
    line: int  # place of that line in its file, from 1
    seq: int  # number of the line that does not follow


class AuditCheck(TypedDict):
    away: Optional[List[str]]  # ids of servers that did not answer
    chains: Optional[List[AuditChain]]  # the chains on the disks of the servers that answered
    names: Optional[Dict[str, str]]  # names of the servers by their ids
    whole: bool  # whether every chain on every disk is whole, and every server answered


class _AuditList(TypedDict):
    records: Optional[List[AuditRecord]]  # the records, newest first
    servers: Optional[List[AuditServer]]  # the servers whose records were looked at


class AuditList(_AuditList, total=False):
    next: str  # cursor of the next page; missing when there is no more
    until: str  # back to when records were looked at, where the page is not full and there may be more


class AuditObject(TypedDict, total=False):
    id: str  # id of the object; missing for a kind as a whole
    kind: str  # kind of the object
    owner: str  # user who made the object
    part: str  # allocation of a job, or the link that was made to it
    project: str  # project of the object

AuditOutcome = Literal['allowed', 'refused', 'failed']


class _AuditRecord(TypedDict):
    action: str  # what was asked for: the name of a route, or what the guide lists
    actor: AuditActor  # who asked
    object: AuditObject  # what it was asked about
    outcome: AuditOutcome  # what became of it
    prev: str  # SHA-256 of the line before, in hexadecimal; empty in the first line
    seq: int  # place in the chain of its server, from 1
    server: str  # id of the server that wrote it
    time: Optional[str]  # when it was written


class AuditRecord(_AuditRecord, total=False):
    address: str  # address that the request came from
    count: int  # how many requests it stands for, where that is not one
    forwarded: int  # how many agents passed the request on before, as it says itself: the address is that of the last one
    index: int  # index of the log at which the change was made
    node: str  # id, by its certificate, of the node through which it came, or that has refused it at its own door
    reason: str  # id of the refusal or failure
    received: int  # bytes that a terminal received from its caller
    request: str  # id of the request, which its answer has as `X-Request-Id`
    said: str  # address that it came from, by the word of that node alone
    sent: int  # bytes that a terminal sent to its caller
    status: int  # HTTP status of the answer
    took: str  # how long a terminal was open; a span of time, such as 1h30m


class _AuditServer(TypedDict):
    answered: bool  # whether the server itself answered; else the records are those of a copy
    id: str  # id of the server
    last: int  # number of its newest record that is known; 0 when none is


class AuditServer(_AuditServer, total=False):
    last_at: str  # time of its newest record that is known
    name: str  # name of the server; missing for one that is not there any more


class _AutopilotHealth(TypedDict):
    failure_tolerance: int  # how many voters may still fail without losing the quorum
    healthy: bool  # whether there is a leader and all servers are healthy
    servers: Optional[List[ServerHealth]]  # how each server is
    versions: Optional[List[AgentVersion]]  # versions that living agents run, that of most agents first


class AutopilotHealth(_AutopilotHealth, total=False):
    certificates: List[CertificateEnd]  # certificates that end within 24 hours, the first to end first, at most 16
    leader_id: str  # id of the server that leads; absent when there is none


class Available(TypedDict):
    models: Optional[List[DeviceDemand]]  # cards of the cluster by kind and model, with what queued jobs ask for
    nodes: Optional[List[AvailableNode]]  # nodes that could hold a rank of the job if they were empty, by name
    specs: Optional[List[AvailableSpec]]  # how many nodes each spec of the job could use, in their order


class _AvailableNode(TypedDict):
    cpu: float  # cores that the node offers to jobs
    cpu_used: float  # cores that allocations hold
    id: str  # id of the node
    memory: int  # memory that the node offers to jobs, bytes
    memory_used: int  # memory that allocations hold, bytes
    name: str  # name of the node
    now: Optional[List[int]]  # which of `specs` have room on it now
    pool: str  # name of the pool
    specs: Optional[List[int]]  # which of the job's specs could stand on it if it were empty, as numbers from 0
    state: str  # `idle`: one of the specs has room now; `tight`: none has
    status: NodeStatus  # whether the node is there, as the servers see it


class AvailableNode(_AvailableNode, total=False):
    cards: List[CardUse]  # each of its cards and who uses it, by number
    devices: List[DeviceShare]  # how many cards of each kind and model it has
    driver_versions: List[str]  # driver versions of its cards, each once
    kernel: str  # version of its kernel
    os: str  # its operating system, as people read it


class _AvailableSpec(TypedDict):
    idle: int  # how many nodes have room for a rank now
    need: int  # how many nodes the job asks for
    nodes: int  # how many nodes could hold a rank if they were empty
    spec: int  # number of the spec in the job, from 0


class AvailableSpec(_AvailableSpec, total=False):
    label: str  # label of the spec in the job file; absent when it has none


class _AwaitedJob(TypedDict):
    called: str  # what the job file calls it
    id: str  # id of the node
    when: str  # how far it must have got: `succeeded`, `failed`, `ended` or `started`


class AwaitedJob(_AwaitedJob, total=False):
    idle: str  # why it uses nothing of what it holds: `paused`, `held` or `cards`
    name: str  # name of the node
    project: str  # name of the project
    state: JobState  # state of it now; absent where the caller may not read it
    subjob: int  # number of the subjob in its batch, from 0
    user: str  # who submitted the job
    vip: bool  # whether it is a VIP job, with machines of its choice
    waits: bool  # whether it is waited for still

_Bar = TypedDict(
    "_Bar",
    {
        "from": "Optional[str]",  # when it begins on the node; null when not known
        "job_id": "str",  # id of the job
        "job_name": "str",  # name of the job
        "kind": "str",  # `running` holds the node, `reserved` keeps it, `forecast` is expected there
        "p50": "Optional[str]",  # half of all futures have it gone by then; for `reserved`, begun
        "p90": "Optional[str]",  # nine tenths of all futures have it gone by then; for `reserved`, begun
        "project": "str",  # name of the project
        "subjob": "int",  # number of the subjob in its batch, from 0
        "to": "Optional[str]",  # when it leaves the node, perhaps after the timeline's end; null when not known
    },
    total=True,
)


class Bar(_Bar, total=False):
    devices: int  # how many cards it holds on the node; absent when it has none or is only reserved


class Batch(TypedDict, total=False):
    array: str  # numbers of the subjobs, such as `0-99:2`
    count: int  # number of equal subjobs; `NOMADLIKE_SUBJOB_INDEX` tells them apart
    parallel: int  # how many subjobs may run at a time; 0 for all
    subtasks: List[BatchSubtask]  # subjobs that differ from each other, in order


class BatchSubtask(TypedDict, total=False):
    algorithm: str  # the algorithm that it uses
    command: str  # its command, instead of the task's
    env: Dict[str, str]  # variables in addition to those of the task
    name: str  # name of the subjob

Beyond = Literal['', 'p90', 'p50']


class BootstrapRequest(TypedDict, total=False):
    secret: str  # one-time setup secret of the cluster


class CACertificate(TypedDict):
    fingerprint: str  # SHA-256 of the CA certificate, hexadecimal
    pem: str  # the certificate itself as PEM


class _CAState(TypedDict):
    keys: KeyState  # which CA is in use, and its replacement under way


class CAState(_CAState, total=False):
    certificates: List[CACertificate]  # certificates of all fingerprints in `keys`
    past: List[StructsPastCA]  # earlier CAs that are still followed to the present one, oldest first, at most 2


class Calibration(TypedDict):
    bias_s: float  # mean of forecast less true start, seconds; above 0 means too late
    cov50_pct: float  # starts that were not after the P50, per cent
    cov90_pct: float  # starts that were not after the P90, per cent
    hit_pct: float  # forecasts within five minutes or a fifth of the wait, per cent
    mae_s: float  # mean absolute error, seconds
    medae_s: float  # median absolute error, seconds
    n: int  # how many forecasts were judged
    p90_abs_err_s: float  # absolute error that nine tenths do not exceed, seconds


class Capacity(TypedDict):
    cpu: float  # cores that the node offers to jobs
    memory: int  # memory that the node offers to jobs, bytes
    port_max: int  # last of the ports that jobs are given, inclusive
    port_min: int  # first of the ports that jobs are given, inclusive


class _CardHistory(TypedDict):
    id: str  # id of the card
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    series: Optional[List[GaugeHistory]]  # what it measured, one series for each gauge


class CardHistory(_CardHistory, total=False):
    gone: bool  # whether the node has the card no more: only its id is known
    model: str  # model of the card
    slice: int  # which part of its card it is, from 1; absent for a whole card


class _CardUse(TypedDict):
    device: str  # id of the card
    healthy: bool  # whether the card is well
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    text: str  # its use in short: `3:digits`, or `1(2):digits` for part 2 of card 1
    used: bool  # whether an allocation holds it


class CardUse(_CardUse, total=False):
    job: str  # name of the job that uses it; absent when free or not readable by the caller
    job_id: str  # id of the job that uses it; absent when free or not readable by the caller
    slice: int  # which part of its card it is, from 1; absent for a whole card


class _Ceiling(TypedDict):
    level: Level  # whose bound it is: `cluster`, `pool` or `project`
    max: str  # as a job file writes it; `none`: nothing of it is allowed
    path: str  # the argument of a job file that it bounds; `devices`: of all nodes together


class Ceiling(_Ceiling, total=False):
    at: str  # when it was set
    by: str  # who set it; missing where that was not written down
    name: str  # name of the pool or the project


class CertificateEnd(TypedDict):
    ends_at: Optional[str]  # when the certificate ends; the agent is not ready from then on, until renewed
    id: str  # id of the agent
    name: str  # name of the agent's machine
    role: str  # role for which the agent joined: `server` or `client`


class Change(TypedDict, total=False):
    before: str  # `move`: id or name of the job that it shall stand before
    count: int  # `add`: how many nodes; `submit`: how often, 0 for once
    job: Job  # `submit`: the job that is queued
    job_id: str  # job that is changed, by id or name; `submit`: one like it
    kind: ChangeKind  # what the change does
    last: bool  # `move`: whether the job shall stand last in its tier
    node: str  # name or id of the node: `drain` empties it, `add` copies it
    priority: Priority  # `priority`: the new tier
    project: str  # `quota`: the project that gets `quotas`
    quotas: List[Quota]  # `quota`: what the project gets instead of its quotas
    subjob: int  # `stop`: number of the subjob of a batch, from 0; absent for the whole job

ChangeKind = Literal['drain', 'add', 'quota', 'priority', 'move', 'submit', 'stop']


class Changed(TypedDict):
    index: int  # index of the log from which every read shows the change


class _Check(TypedDict):
    ok: bool  # whether this part of the agent is well


class Check(_Check, total=False):
    message: str  # what is wrong; absent when it is well


class Checkpoint(TypedDict, total=False):
    dir: str  # a directory that the node of rank 0 watches for checkpoints, absolute, as the task sees it
    elastic: Elastic  # how few nodes it may resume on, in jobs of older versions; refused in new ones
    grace: str  # how long the job has to save and exit; a span of time, such as 1h30m
    max_resumes: int  # how often it resumes after failures of its own
    pattern: str  # which entries of `dir` are checkpoints; all when absent
    performance: Performance  # watch that compares a number in the training log with a threshold
    precheck: bool  # each node checks itself before every start
    signal: str  # what every rank receives before each end that leaves time for it


class _Cluster(TypedDict):
    bootstrapped: bool  # whether the first management token was made
    ca_fingerprint: str  # SHA-256 of the CA certificate, hexadecimal
    created_at: Optional[str]  # when the cluster was made
    id: str  # id of the cluster
    modify_index: int  # index of the log at which it changed last
    protocol_version: int  # version of the protocol with which the cluster was founded


class Cluster(_Cluster, total=False):
    ca: CAState  # state of the CA; absent until it is rotated for the first time
    gossip_key: KeyState  # state of the gossip key; absent until it is rotated for the first time
    maintenance: List[Maintenance]  # maintenance windows that have not ended, by start
    removed: List[RemovedServer]  # servers that an administrator took out and that stay out, oldest first
    removed_nodes: List[RemovedNode]  # nodes that are shut out, oldest first
    revived_at: str  # when its state was last brought back from a backup or a survivor
    setup_hash: str  # SHA-256 of the one-time setup secret; absent once it is used
    unwell: List[ServerCondition]  # servers whose disk is full or whose last backup failed


class _ClusterInit(TypedDict):
    cluster: Cluster  # record of the new cluster


class ClusterInit(_ClusterInit, total=False):
    join_tokens: List[JoinToken]  # join tokens that were made before the log existed


class CodeArchived(TypedDict):
    bytes: int  # bytes of all its files
    files: int  # files and links of the directory
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    left: int  # names that stayed behind
    left_out: Optional[List[CodeLeftOut]]  # the first of them, with the rule
    tree: str  # digest of the manifest, by which jobs name the code


class CodeKept(TypedDict):
    chunks: int  # chunks that came and are on the server's disk
    fresh: int  # of them, that the server did not have


class _CodeLeftOut(TypedDict):
    path: str  # what stayed behind
    rule: str  # the rule that left it out


class CodeLeftOut(_CodeLeftOut, total=False):
    dir: bool  # it is a directory, with all below it
    file: str  # the file with the rule; empty for the usual leavings
    line: int  # its line


class CodeMade(TypedDict):
    bytes: int  # bytes of all its files
    files: int  # files and links of the directory
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    tree: str  # digest of the manifest, by which jobs name the code


class CodeMissing(TypedDict):
    known: bool  # the project has the whole directory: nothing has to be sent
    max: int  # how many bytes of code may travel with a job of the project
    missing: Optional[List[str]]  # digests of the chunks that were asked about and are not there


class CodeMissingRequest(TypedDict, total=False):
    chunks: List[CodePartRef]  # chunks of the directory, at most 8000; without any only known is of interest
    tree: str  # digest of the directory's manifest


class CodePartRef(TypedDict, total=False):
    digest: str  # sha256: and 64 digits
    size: int  # bytes


class CommitRequest(TypedDict, total=False):
    comment: str  # words that are kept with the image, at most 512 bytes
    mine: bool  # whether that secret is the caller's own
    name: str  # name and tag after `nomadlike/PROJECT/`, such as `trained:1`; at most 128 bytes
    push: str  # name of a registry to which the image is sent as well
    secret: str  # secret of the job's project that signs in to that registry


class _Committed(TypedDict):
    bytes: int  # size of the image, bytes
    id: str  # id of the image's content, beginning with `sha256:`
    image: str  # whole name of the image, with its tag


class Committed(_Committed, total=False):
    digest: str  # digest under which the registry has it
    pushed: str  # name under which the registry has it; absent where it was not sent


class _Consent(TypedDict):
    asked_at: Optional[str]  # when the owner was asked
    of: AttemptKey  # attempt whose owner was asked
    until: Optional[str]  # until when the owner has time to answer


class Consent(_Consent, total=False):
    answer: ConsentAnswer  # `yes` or `no`; absent while there is no answer
    at: str  # when it was answered
    by: str  # user who answered

ConsentAnswer = Literal['', 'yes', 'no']


class ConsentRequest(TypedDict, total=False):
    answer: ConsentAnswer  # `yes` or `no`: whether the job may be stopped
    reason: str  # words for the history, at most 400 bytes
    to: str  # id or name of the VIP job; absent: the only one that asks


class _Control(TypedDict):
    seq: int  # index of the log of the order; the node answers with it


class Control(_Control, total=False):
    busy: str  # throttle: how long it runs each time; a span of time, such as 1h30m
    idle: str  # throttle: how long it stands still after each `busy`; absent for no throttle; a span of time, such as 1h30m
    paused: bool  # whether it stands still


class _DataChanged(TypedDict):
    index: int  # log index of the change


class DataChanged(_DataChanged, total=False):
    version: int  # version that was made, tagged or removed; absent otherwise


class DataChunksRequest(TypedDict, total=False):
    chunks: Optional[List[CodePartRef]]  # chunks of the version, together at most 8 MiB


class _DataCopy(TypedDict):
    node: str  # name of the node
    node_id: str  # id of the node
    version: int  # version of which it holds a copy


class DataCopy(_DataCopy, total=False):
    away: bool  # whether the node does not answer now


class _DataDetail(TypedDict):
    all_bytes: int  # bytes of all versions, as the project's quota counts them
    bytes: int  # bytes of the newest version
    count: int  # versions that jobs may name
    favourite: bool  # whether the caller has marked it
    favourites: int  # how many users have marked it
    files: int  # files and links of the newest version
    object: DataObject  # the named data itself
    verbs: Optional[List[str]]  # what the caller may do to it


class DataDetail(_DataDetail, total=False):
    jobs: List[DataJob]  # jobs that have not ended and use it, as far as the caller may see them; of one object only
    newest: int  # version that jobs get which name none; absent before the first
    newest_at: str  # when the newest version was ready
    newest_tag: str  # tag of the newest version
    outputs: List[DataOutputJob]  # jobs that were to make a version of it and have not, newest first, at most 20; with outputs only
    running: int  # jobs that run and use it; of lists only


class _DataEntry(TypedDict):
    name: str  # name as it is shown: what no text can hold is replaced
    size: int  # bytes; of a directory those of all files below it


class DataEntry(_DataEntry, total=False):
    dir: bool  # whether it is a directory
    files: int  # files and links below a directory
    link: str  # what a symbolic link says; absent of anything else
    ref: str  # the name as addresses spell it, where that is not simply the name in percent signs
    runs: bool  # whether it may be executed


class _DataFile(TypedDict):
    id: str  # its name in the upload, drawn from its path
    offset: int  # bytes that are on the storage's disk
    path: str  # below the version's directory
    size: int  # bytes that it is to have


class DataFile(_DataFile, total=False):
    dir: bool  # it is an empty directory
    executable: bool  # it may be run
    sha256: str  # that it is to have, in hexadecimal digits; absent where nobody said


class _DataFiles(TypedDict):
    files: Optional[List[DataFile]]  # by their ids


class DataFiles(_DataFiles, total=False):
    next: str  # the id to ask for those behind; absent when these are all


class DataFilesBegun(TypedDict):
    begun: bool  # it was begun before: some of it may be there
    expires_at: Optional[str]  # when it is given up; each day on which something comes it is kept for another week
    index: int  # of the log, that the upload was noted at
    storage: str  # that it lies in
    upload: str  # names the upload in what follows
    url: str  # where a tus client makes files
    version: int  # that it is to be


class _DataFilesFinished(TypedDict):
    all: int  # of how many
    bytes: int  # looked at so far
    done: bool  # the version is there; ask again until it is
    files: int  # once it is done
    known: bool  # the newest version had these files already: no other one was made
    version: int  # its number


class DataFilesFinished(_DataFilesFinished, total=False):
    digest: str  # of its tree: the same as that of a push of the same directory
    index: int  # of the log, that the version was noted at


class DataFilesRequest(TypedDict, total=False):
    access: str  # of new data: private, project or cluster; project unless told
    bytes: int  # of them together, at most: the project's quota is judged by it
    description: str  # of new data
    files: int  # how many files are to come, at most
    key: str  # a word of the caller's own choice: begun again with the same one, the upload goes on; without it nobody goes on with it
    storage: str  # where new data is to lie; the only storage there is unless told
    tag: str  # that the version gets


class _DataFinished(TypedDict):
    all: int  # whether it covers all nodes, instead of `nodes` or `pool`
    bytes: int  # bytes that were looked at so far
    done: bool  # whether the version is there; ask again until it is
    files: int  # files and links of the version, once it is done
    version: int  # version of the program


class DataFinished(_DataFinished, total=False):
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot


class _DataInput(TypedDict):
    kind: str  # vendor and type of the device, as `nvidia/gpu`
    name: str  # name of the node
    project: str  # name of the project
    version: int  # version of the program


class DataInput(_DataInput, total=False):
    digest: str  # digest of the version; absent for a registered directory


class DataJob(TypedDict):
    id: str  # id of the job
    name: str  # name of the job
    project: str  # project of the job
    user: str  # owner of the job
    version: int  # version that it uses


class DataKept(TypedDict):
    chunks: int  # chunks that came and are on the storage's disk


class DataLack(TypedDict):
    cause: Reason  # why it cannot be read
    kind: str  # kind of data: `algorithm`, `dataset`, `model` or `volume`
    name: str  # name of the data, as the job has it
    path: str  # where it should lie on the node
    storage: str  # name of the storage that should have it


class _DataLineage(TypedDict):
    edges: Optional[List[LineageEdge]]  # where bytes went
    nodes: Optional[List[LineageNode]]  # versions, jobs and code
    root: int  # place in nodes of the version that was asked for


class DataLineage(_DataLineage, total=False):
    cut: bool  # there is more, beyond 200 nodes or 20 steps


class DataList(TypedDict):
    objects: Optional[List[DataDetail]]  # named data by project, kind and name, without its versions
    quota: int  # bytes that the project may have; 0: any number
    used: int  # bytes of all named data of the project


class DataMarkRequest(TypedDict, total=False):
    off: bool  # take the mark back


class DataMissing(TypedDict):
    missing: Optional[List[int]]  # places in the list of the chunks that have to be sent, from 0


class DataMissingRequest(TypedDict, total=False):
    chunks: Optional[List[CodePartRef]]  # chunks of the version, at most 8000


class _DataObject(TypedDict):
    access: str  # who else may use it: `private`, `project` or `cluster`
    kind: str  # `dataset`, `model` or `algorithm`
    name: str  # its name, unique among those of the kind in the project
    next: int  # number that the next version gets
    project: str  # project that has it
    storage: str  # storage that all its versions lie in


class DataObject(_DataObject, total=False):
    changed_at: str  # when what it says of itself was changed last
    changed_by: str  # who changed that last
    description: str  # what it is, for people
    favourites: List[str]  # not told: see `favourite` beside it
    home: str  # user in whose directory of the storage its versions lie: who made it
    labels: Dict[str, str]  # labels, by key
    made_at: str  # when it was made
    made_by: str  # who made it
    modify_index: int  # log index that changed it last
    owner: str  # the user whose it is
    published: bool  # whether administrators published it for jobs of every project
    versions: List[DataVersion]  # its versions, oldest first; uploads for those who may write it


class _DataOrigin(TypedDict):
    job: str  # name of the job
    output: str  # output of the job, as its file says
    project: str  # name of the project


class DataOrigin(_DataOrigin, total=False):
    access: str  # who else could see the job
    apart: bool  # whether a subjob of a batch made it, in a directory of its own
    code: str  # digest of the code that travelled with the job
    command: str  # command of the job, cut where it is long
    commit: str  # commit of git in which the code lay
    dirty: bool  # the code differed from that commit
    failed: bool  # the job had not succeeded when it was made
    image: str  # image of the job
    inputs: List[DataInput]  # versions of named data that the job read
    node_id: str  # node that ran rank 0
    path: str  # file or directory below the output; absent: all of it
    step: int  # training step of the checkpoint
    storage: str  # storage of the output; absent: the first of the node that takes outputs
    subjob: int  # subjob of the job
    user: str  # who submitted the job


class DataOutputJob(TypedDict):
    id: str  # id of the job
    name: str  # its name
    output: JobOutput  # what became of its output
    project: str  # its project
    user: str  # whose it is


class DataPick(TypedDict, total=False):
    asked: str  # what the job said instead of a version: a tag, or `latest` where it said nothing
    digest: str  # digest of the version's manifest; absent for a registered directory
    owner: str  # owner of the named data, who stands for {user} in the storage's path
    project: str  # project that has the named data
    source: str  # directory of a registered version, below the storage


class DataPreview(TypedDict):
    shown: Shown  # the beginning of the file
    size: int  # bytes of the file
    version: int  # version that was read

DataRef = TypedDict(
    "DataRef",
    {
        "annotations": "bool",  # whether the annotations of a labelled dataset are shown as well
        "from": "str",  # the collection that it is taken from: `private` when absent, `favorite` or `pretrained`
        "name": "str",  # its name in the storage
        "object": "DataPick",  # which named data it is, fixed at admission; absent for a directory of a storage
        "prepare": "bool",  # whether nodes copy it to fast storage before the start
        "project": "str",  # another project that has the named data and lets everybody use it
        "read_only": "bool",  # whether the task cannot write it
        "sha256": "str",  # the digest that the one file of `source` must have, hexadecimal
        "source": "str",  # a path below the storage, instead of the name
        "storage": "str",  # name of the storage; by default the first of the node that serves its kind
        "tag": "str",  # tag of the version of named data, instead of `version`; absent once the job was admitted
        "version": "int",  # its version, if it has versions
    },
    total=False,
)


class DataRegisterRequest(TypedDict, total=False):
    access: str  # of new data, who else may use it; absent: `project`
    description: str  # of new data, what it is
    source: str  # directory below the storage, in the place of {name} in its path
    storage: str  # storage that the directory lies in
    tag: str  # tag of the version


class DataRequest(TypedDict, total=False):
    access: str  # who else may use it: `private`, `project` or `cluster`
    description: str  # what it is, for people
    labels: Dict[str, str]  # all its labels, by key
    owner: str  # user to hand it over to
    published: bool  # whether jobs of every project find it; of administrators of the cluster
    storage: str  # storage that its versions are to lie in; only of new data


class DataStorage(TypedDict):
    name: str  # name of the storage
    nodes: Optional[List[str]]  # nodes that have it and answer


class DataTagRequest(TypedDict, total=False):
    tag: str  # the tag; empty: take the version's own away
    version: int  # number of the version


class DataTakeRequest(TypedDict, total=False):
    access: str  # who may use a new name; project unless told
    attempt: int  # attempt; absent: the newest
    checkpoint: int  # step of a checkpoint that it registered, instead of path
    description: str  # what a new name is
    job: str  # id or name of the job
    path: str  # file or directory below its output; absent: all of it
    storage: str  # storage of a new name
    subjob: int  # of a batch, take what this subjob wrote; without it what all of them did
    tag: str  # tag of the version


class DataTree(TypedDict):
    entries: Optional[List[DataEntry]]  # names in the directory, directories first; none of a file
    entry: DataEntry  # what the path names
    names: int  # names in the directory, those of other pages too
    next: int  # after of the next page; 0 at the last one
    version: int  # version that was read


class _DataUpload(TypedDict):
    begun: bool  # it was begun before: some of it may be there
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    known: bool  # the newest version is this one already: nothing has to be sent
    storage: str  # storage that the version goes to
    version: int  # version of the program


class DataUpload(_DataUpload, total=False):
    upload: str  # what the upload is called in what follows


class DataUploadRequest(TypedDict, total=False):
    access: str  # who may use new data: private, project or cluster
    bytes: int  # bytes of all files of the version, as the project's quota counts them
    description: str  # what it is, for people to read
    digest: str  # digest of the manifest that is to come
    files: int  # files and links of the version
    storage: str  # storage for new data; the only one that there is unless told
    tag: str  # tag that the version gets


class _DataUse(TypedDict):
    copies: Optional[List[DataCopy]]  # nodes that hold copies on disks of their own
    hidden: int  # jobs that have not ended and that the caller may not see
    jobs: Optional[List[DataUser]]  # jobs that name it and that the caller may see: those that have not ended, then the newest
    more: bool  # whether there are more than 200
    storage: DataStorage  # the storage that has its versions


class DataUse(_DataUse, total=False):
    unknown: bool  # whether some nodes hold more copies than they tell of


class _DataUser(TypedDict):
    id: str  # id of the job
    name: str  # name of the job
    project: str  # project of the job
    state: JobState  # state of the job
    submitted_at: Optional[str]  # when it was submitted
    user: str  # owner of the job
    version: int  # version that it uses


class DataUser(_DataUser, total=False):
    asked: str  # what the job said instead of a number: latest or a tag
    finished_at: str  # when it ended; absent while it has not


class DataVerified(TypedDict):
    all: int  # whether it covers all nodes, instead of `nodes` or `pool`
    bytes: int  # bytes that were looked at so far
    done: bool  # whether all was looked at; ask again until it is
    files: int  # files and links of the version, once it is done
    version: int  # version of the program
    wrong: Optional[List[DataWrong]]  # names that are not as they were sent, at most 50
    wrongs: int  # how many there are


class _DataVersion(TypedDict):
    number: int  # counts the versions, from 1; none comes twice
    state: str  # `uploading`, `ready` or `registered`


class DataVersion(_DataVersion, total=False):
    attempt: int  # attempt of that job
    bytes: int  # bytes of all its files; of an upload, those that it is to have
    digest: str  # digest of its manifest; absent until it is ready, and for a registered directory
    expires_at: str  # when the upload is given up unless somebody goes on with it
    files: int  # files and links; of an upload, those that it is to have
    job_id: str  # job that made it
    made_at: str  # when it was ready; of an upload, when it began
    made_by: str  # who made it
    origin: DataOrigin  # what made it, of a version that is made of what a job wrote
    source: str  # directory that was registered, below the storage
    tag: str  # tag that names it
    upload_id: str  # id of the upload that it came from


class DataWrong(TypedDict):
    path: str  # the name, below the version's directory
    what: str  # gone, changed, or extra: not of the version


class DayUse(TypedDict):
    cpu_hours: float  # core hours of the day; those of forgotten jobs are not known
    device_hours: float  # device hours of the day
    kinds: Optional[List[KindUse]]  # the device hours by kind, most first
    start: Optional[str]  # beginning of the day


class Debug(TypedDict, total=False):
    hold: str  # how long a failed job is kept enterable; a span of time, such as 1h30m


class _Default(TypedDict):
    path: str  # field that was left out, in the words of the job file
    value: str  # what it is set to, as the job file would have it

_DefaultBesides = TypedDict(
    "_DefaultBesides",
    {
        "from": "str",  # whose default it is: `project` or `pool`; absent when neither says so
    },
    total=False,
)


class Default(_Default, _DefaultBesides):
    pass


class _Device(TypedDict):
    healthy: bool  # whether the card is well
    id: str  # id of the card
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    kind: str  # vendor and type of the card, such as `nvidia/gpu`
    memory: int  # memory of the card, bytes
    model: str  # model of the card
    numa_node: int  # NUMA node that it is attached to; -1 when not known


class Device(_Device, total=False):
    attrs: Dict[str, str]  # what else its plugin tells of it, by name
    driver_version: str  # version of its driver
    health: Reason  # what is wrong with the card; absent when nothing is
    link_group: str  # group of cards of the node that reach each other fast; absent when in none
    pci_bus: str  # its PCI address

DeviceAct = Literal['clear', 'reset', 'quarantine']


class _DeviceDemand(TypedDict):
    free: int  # how many of them are well, held by nobody, and on nodes that take work
    jobs: int  # how many queued subjobs ask for them
    kind: str  # vendor and type of the card, such as `nvidia/gpu`
    model: str  # model of the card
    total: int  # how many there are
    used: int  # how many of them allocations hold
    wanted: int  # how many of them all queued jobs ask for together


class DeviceDemand(_DeviceDemand, total=False):
    sick: int  # how many of them are not well


class _DeviceList(TypedDict):
    nodes: Optional[List[NodeDevices]]  # nodes with their cards, by name


class DeviceList(_DeviceList, total=False):
    next: str  # cursor of the next page; empty on the last


class _DeviceOwner(TypedDict):
    alloc_id: str  # id of the allocation
    attempt: int  # number of the attempt, from 1
    job: str  # name of the job
    job_id: str  # id of the job
    project: str  # name of the project
    rank: int  # rank in the gang, from 0


class DeviceOwner(_DeviceOwner, total=False):
    subjob: int  # number of the subjob in its batch, from 0
    user: str  # user whose job it is


class _DeviceProcess(TypedDict):
    memory: int  # bytes that the process holds on the device; 0 for unknown
    pid: int  # process id on the node


class DeviceProcess(_DeviceProcess, total=False):
    name: str  # name of the process; empty for unknown


class DeviceRequest(TypedDict, total=False):
    count: int  # devices on each node; `-1` for all of the node
    ids: List[str]  # exactly these devices, on nodes that placement names
    kind: str  # vendor and type of the device, as `nvidia/gpu`
    memory: int  # bytes of memory that each device has at least; 0 for any
    model: str  # only this model; empty for any
    models: List[str]  # any of these models, instead of `model`


class _DeviceShare(TypedDict):
    free: int  # how many of them are well, held by nobody, and on nodes that take work
    kind: str  # vendor and type of the device, as `nvidia/gpu`
    model: str  # model of the device
    total: int  # devices of the model that there are
    used: int  # devices of the model that allocations hold


class DeviceShare(_DeviceShare, total=False):
    sick: int  # devices of the model that are not healthy


class _DeviceState(TypedDict):
    healthy: bool  # whether the device is healthy and may get work
    id: str  # id of the device
    index: int  # the vendor's number of it on its node, from 0; may change at a reboot
    kind: str  # vendor and type of the device, as `nvidia/gpu`
    memory: int  # memory of the device, in bytes
    model: str  # model of the device
    numa_node: int  # NUMA node of the machine that it is at; `-1` for unknown
    used: bool  # whether an allocation holds it


class DeviceState(_DeviceState, total=False):
    action: str  # what its condition asks for: `notice`, `task`, `cordon`, `reset`, `reboot` or `service`; empty for nothing
    at: str  # when its gauges were measured; absent without a fresh measurement
    attrs: Dict[str, str]  # further facts about the device by name, such as links and parts
    driver_version: str  # version of the device driver; empty for unknown
    gauges: Dict[str, float]  # current measurements by gauge name; without those that the device lacks
    health: Reason  # why it is not healthy, in words of the catalogue
    link_group: str  # group of devices that the vendor's links join; empty for none
    owner: DeviceOwner  # rank that holds it; absent for nobody or a job that the caller may not read
    pci_bus: str  # PCI address of the device; empty for unknown
    processes: List[DeviceProcess]  # processes with a context on it; for operators only
    slice: int  # which part of its card it is, from 1; 0 for a whole card


class DeviceTreatRequest(TypedDict, total=False):
    act: DeviceAct  # `clear` forgets its faults, `reset` resets and tests it, `quarantine` keeps new work off
    device: str  # the device: its id, a unique beginning of that, or its number
    reason: str  # why it is quarantined, at most 256 bytes; for `quarantine` only


class DeviceTreated(TypedDict):
    device: str  # id of the device that was treated
    index: int  # index of the log at which the change was made


class _DiffJob(TypedDict):
    id: str  # id of the job
    name: str  # name of the job
    state: JobState  # state of the job
    submitted_at: Optional[str]  # when the job was submitted, by the server's clock


class DiffJob(_DiffJob, total=False):
    finished_at: str  # when all of the job had ended; absent until then
    user: str  # user who submitted the job


class Difference(TypedDict):
    after: str  # value in the job asked about; empty where it says nothing
    before: str  # value in the job compared with; empty where it says nothing
    path: str  # which value: an argument of the job file, or what the ranks found


class Distributed(TypedDict, total=False):
    chief: bool  # tensorflow: rank 0 is the chief
    emulate: str  # a platform whose variables and host file the ranks get as well
    launcher: str  # deepspeed: `pdsh` or `no_ssh`; empty lets the command decide
    master_port: int  # port at which the ranks meet; 0 for a free one of rank 0's node
    min_nodes: int  # pytorch: the fewest nodes of an elastic gang; only in jobs of old versions
    mode: Mode  # what is set for the ranks, and how the command is rewritten
    parameter_servers: int  # tensorflow: servers in addition to the workers; 0 for none
    procs_per_node: int  # processes per node; 0 for one per device, or 1 without devices and in jax
    rank_table: str  # mindspore: format of the rank table; empty for `v1.0`
    rewrite: str  # how the command is rewritten: `launch`, `torchrun`, `procs` or `none`
    world_size: str  # what `WORLD_SIZE` counts: `nodes` or `procs`


class DrainRequest(TypedDict, total=False):
    deadline: str  # how long running work may end by itself; 0 moves it away at once; a span of time, such as 1h30m


class _Effect(TypedDict):
    earlier: int  # queued subjobs whose P50 gets earlier
    later: int  # queued subjobs whose P50 gets later
    same: int  # queued subjobs whose P50 stays
    shifts: Optional[List[Shift]]  # what changes for each subjob, the largest differences first


class Effect(_Effect, total=False):
    hidden: int  # shifts left out because the caller may not read their jobs
    more: int  # shifts left out because there are too many


class Elastic(TypedDict, total=False):
    allow_resize: bool  # a gang on fewer nodes restarts on more when that is worthwhile
    by: ElasticBy  # what adapts the gang to its nodes: `restart` or `torchrun`
    min_nodes: int  # the fewest nodes that the gang runs on

ElasticBy = Literal['restart', 'torchrun']

Eligibility = Literal['eligible', 'cordoned', 'draining']


class _Error(TypedDict):
    code: ErrorCode  # what kind of error it is, for programs
    id: str  # id of the message in the catalogue


class Error(_Error, total=False):
    details: List[Error]  # further problems found together with the first
    hint: str  # what may help, in English; empty for none
    message: str  # the error in English
    params: Dict[str, str]  # values for the placeholders of the message

ErrorCode = Literal['invalid', 'unauthorized', 'forbidden', 'not_found', 'conflict', 'unavailable', 'timeout', 'not_available', 'too_large', 'internal']


class _Event(TypedDict):
    id: str  # id of the message in the catalogue
    index: int  # index of the log entry that made it; others may share it
    seq: int  # its order among the events of the same log index
    time: Optional[str]  # when it happened, by the clock of the server that proposed it
    topic: str  # what it is about: `job`, `attempt`, `alloc`, `node`, `token`, `cluster`, `pool` or `project`


class Event(_Event, total=False):
    alloc_id: str  # id of the allocation
    attempt: int  # number of the attempt, from 1; absent when it is about none
    by: str  # user or agent that caused it; empty for none
    cause: Reason  # why it happened, in words of the catalogue; absent when not told
    job_id: str  # id of the job
    node_id: str  # id of the node
    params: Dict[str, str]  # values for the placeholders of the message
    project: str  # name of the project
    severity: str  # `warn` or `error`; empty for information
    subjob: int  # number of the subjob in its batch, from 0


class _EventLine(TypedDict):
    index: int  # index of the log of the event; without one, all up to it is known


class EventLine(_EventLine, total=False):
    cursor: str  # `cursor` with which to go on right after this line
    error: Error  # why the stream ends after this line
    event: Event  # what happened; absent when the line only says how far all is known


class EventList(TypedDict):
    events: Optional[List[Event]]  # what happened, oldest first


class _Fault(TypedDict):
    attempt: int  # number of the attempt, from 1
    loss: Loss  # what the fault cost
    moments: Optional[List[Moment]]  # steps from the fault to the next attempt's first step, in order
    outcome: Outcome  # how the attempt ended: `failed` or `lost`
    rank: int  # rank that ended first, from 0; `-1` when none is known
    subjob: int  # number of the subjob in its batch, from 0


class Fault(_Fault, total=False):
    cause: Reason  # why the attempt ended, in words of the catalogue
    next: int  # number of the attempt that went on; 0 for none, or not yet
    node: str  # name of the node of the rank that ended first; empty when unknown
    node_id: str  # id of the node


class _FileEntry(TypedDict):
    modified: Optional[str]  # when it was last modified, by the clock of its file system
    name: str  # name within its directory; empty for the top
    size: int  # bytes of the file; 0 for a directory


class FileEntry(_FileEntry, total=False):
    dir: bool  # whether it is a directory
    link: bool  # whether it is a link or other special file, which cannot be read


class _FileList(TypedDict):
    alloc_id: str  # id of the allocation
    attempt: int  # number of the attempt, from 1
    entries: Optional[List[FileEntry]]  # entries of the directory by name; empty for a file
    entry: FileEntry  # the file or directory itself
    path: str  # path of the file or directory, without a slash at its start; empty for the top
    rank: int  # rank in the gang, from 0


class FileList(_FileList, total=False):
    more: bool  # whether the directory has more entries than are listed
    sha256: str  # SHA-256 of the bytes that were asked about, in hex; missing where nobody asked, or the node is too old to tell


class _Forecast(TypedDict):
    attempt: int  # number of the attempt whose start is forecast, from 1
    given_at: Optional[str]  # when the forecast was made, by the server's clock
    job_id: str  # id of the job
    job_name: str  # name of the job
    p50: Optional[str]  # start is as likely before this moment as after
    p90: Optional[str]  # start is 90 per cent likely by this moment
    point: Optional[str]  # best single estimate of the start
    project: str  # name of the project
    revision: int  # which forecast of the attempt it is, 0 for the first
    subjob: int  # number of the subjob in its batch, from 0


class Forecast(_Forecast, total=False):
    features: List[float]  # numbers that the calibration learns from; left out of answers
    pool: str  # name of the pool
    position: int  # place in the queue, from 1; 0 when not known
    started_at: str  # when the attempt got its nodes, by the server's clock; absent until then
    withdrawn: bool  # whether the job left the queue without a start


class _GangPlan(TypedDict):
    attempt: int  # number that the new attempt must get
    job_id: str  # id of the job
    placements: Optional[List[RankPlacement]]  # node, ports and devices of each rank, in the order of ranks
    spec: int  # which of the job's alternatives of resources is used, from 0
    subjob: int  # number of the subjob in its batch, from 0


class GangPlan(_GangPlan, total=False):
    claim: bool  # whether the nodes are only nominated until others leave them
    victims: List[AttemptKey]  # attempts that must end first; its own running one for a change of size


class GaugeHistory(TypedDict):
    gauge: str  # name of the gauge
    values: Optional[List[Optional[float]]]  # one value for each span of time; null where nothing was measured


class Granted(TypedDict, total=False):
    provider: str  # provider of sign-ins whose rules give it
    role: str  # role in the project
    user: str  # name of the user


class Hang(TypedDict, total=False):
    action: str  # what a hang leads to: `alert` for an event, `reschedule` for a restart elsewhere
    factor: float  # how many times the duration of a step the gang must be silent
    least: str  # shorter silence never counts; a span of time, such as 1h30m
    most: str  # silence of this length counts whatever the devices do; a span of time, such as 1h30m
    pattern: str  # regular expression whose one group is the step's number; empty for common forms


class _Health(TypedDict):
    healthy: bool  # whether the agent can do its work; false comes with status 503


class Health(_Health, total=False):
    client: Check  # how the agent does as a node; absent when it is none
    server: Check  # how the agent does as a server; absent when it is none


class _Help(TypedDict):
    id: str  # id of the message in the catalogue
    kind: HelpKind  # what of the job it would change
    p50: Optional[str]  # start is as likely before this moment as after
    p90: Optional[str]  # start is 90 per cent likely by this moment
    point: Optional[str]  # best single estimate of the start
    sooner: str  # by how much its P50 is earlier; 0 when there was none before; a span of time, such as 1h30m
    verdict: Verdict  # when it would start: `now`, `later`, `never` or `unknown`


class Help(_Help, total=False):
    beyond: Beyond  # which of the times are only lower bounds; empty for none
    cpu: float  # cores that it should ask for on each node; 0 for no change
    devices: int  # devices that it should ask for on each node; 0 for no change
    memory: int  # bytes of memory that it should ask for on each node; 0 for no change
    min_nodes: int  # the fewest nodes that it should begin on; 0 for no change
    model: str  # device model that it should ask for; empty for no change
    nodes: int  # nodes that it should ask for; 0 for no change
    params: Dict[str, str]  # values for the placeholders of the message
    pool: str  # pool to which it should move; empty for no change
    priority: Priority  # tier that it should have; empty for no change
    time_limit: str  # time limit that it should have; empty for no change; a span of time, such as 1h30m
    victims: List[Victim]  # gangs that would be ended for it

HelpKind = Literal['nodes', 'elastic', 'spec', 'pool', 'time_limit', 'priority', 'preemptible', 'spread', 'devices', 'driver_version', 'any_node', 'no_rdma', 'resources', 'two']


class HistoryGap(TypedDict):
    after: int  # index of the log behind which rows are missing
    until: int  # the last index of which they are

_Hold = TypedDict(
    "_Hold",
    {
        "for": "str",  # how long it is held, counted by the node from the command's end; a span of time, such as 1h30m
        "since": "Optional[str]",  # when the hold began, by the server's clock
        "until": "Optional[str]",  # when the hold should end, by the server's clock
    },
    total=True,
)


class Hold(_Hold, total=False):
    freed: bool  # whether somebody released its devices, which the node then lets go of
    over: bool  # whether somebody ended the hold, so that the node cleans up


class Hook(TypedDict, total=False):
    command: str  # what the hook runs
    timeout: str  # after this time it is killed and has failed; 0 for 5 minutes; a span of time, such as 1h30m
    when: str  # at which point: `prestart`, `poststart`, `prestop` or `poststop`


class Identity(TypedDict, total=False):
    linked_by: str  # administrator who linked it; empty where the first sign-in made the account
    provider: str  # name of the provider of sign-ins
    role: str  # role in the whole cluster that the rules of the provider gave at the last sign-in
    seen_at: str  # when the last sign-in through the provider was
    subject: str  # what the provider knows the person by for good


class IdentityRequest(TypedDict, total=False):
    provider: str  # name of the provider
    subject: str  # what the provider knows the person by for good; empty: the account is nobody there from now on


class IdleUse(TypedDict):
    devices: int  # how many devices it holds
    job: str  # name of the job
    job_id: str  # id of the job
    node: str  # name of the node
    project: str  # project of the job
    rank: str  # name of the rank
    since: Optional[str]  # since when none of them has had anything to do

ImageAct = Literal['pull', 'push', 'tag', 'remove', 'save']


class ImageActRequest(TypedDict, total=False):
    act: ImageAct  # `pull`, `push`, `tag` or `remove`
    image: str  # name or id of the image
    mine: bool  # whether that secret is the caller's own
    secret: str  # secret of the project that signs in to the registry
    to: str  # other name, of `push` and `tag`


class ImageActed(TypedDict):
    index: int  # index of the event in the log
    work: ImageWork  # what was begun or done


class _ImageEntry(TypedDict):
    count: int  # how many nodes have it
    in_use: bool  # whether a container of one of them uses it
    name: str  # name of the image, without the public registry
    variants: int  # how many contents nodes have under the name; more than 1 is a tag that has moved

_ImageEntryBesides = TypedDict(
    "_ImageEntryBesides",
    {
        "bytes": "int",  # size of that content, bytes
        "description": "str",  # words for people
        "devices": "List[str]",  # kinds of devices that it is for, such as `nvidia` or `huawei/npu`, or `cpu` for none; absent for any
        "digest": "str",  # digest under which its registry has that content; absent where none has it
        "driver_version": "str",  # driver versions that it works with
        "from": "str",  # whose word the four fields above are: `declared` by an operator, or `labels` of the image
        "id": "str",  # id of the content that most nodes have
        "nodes": "List[ImageOnNode]",  # the nodes that have it; only where one image is asked for
        "scope": "List[str]",  # what the image is for: training, development, inference; absent for everything
        "set_at": "str",  # when it was declared last
        "set_by": "str",  # who declared it
    },
    total=False,
)


class ImageEntry(_ImageEntry, _ImageEntryBesides):
    pass


class _ImageList(TypedDict):
    asked: int  # how many nodes were asked
    away: Optional[List[str]]  # names of the nodes that did not answer in time
    images: Optional[List[ImageEntry]]  # the images by name


class ImageList(_ImageList, total=False):
    left: int  # how many images are left out


class _ImageOnNode(TypedDict):
    bytes: int  # size, bytes
    id: str  # id of the content, beginning with `sha256:`
    node: str  # name of the node
    node_id: str  # id of the node
    pool: str  # pool of the node


class ImageOnNode(_ImageOnNode, total=False):
    digest: str  # digest under which its registry has it
    in_use: bool  # whether a container uses it
    used_at: str  # when a job used it last


class ImageRequest(TypedDict, total=False):
    description: str  # words for people; absent: as before
    devices: Optional[List[str]]  # kinds of devices that it is for; empty for any; null: as before
    driver_version: str  # driver versions that it works with; absent: as before
    name: str  # name of the image; without a tag it is about every tag that has no declaration of its own
    scope: Optional[List[str]]  # what it is for: training, development, inference; empty for everything; null: as before


class _ImageWork(TypedDict):
    act: ImageAct  # `pull`, `push`, `tag` or `remove`
    by: str  # who ordered it
    image: str  # name of the image
    started_at: Optional[str]  # when it began


class ImageWork(_ImageWork, total=False):
    bytes: int  # size of the image, bytes
    digest: str  # digest under which its registry has it
    done: int  # how much has come or gone, bytes
    ended_at: str  # when it ended; absent while it goes on
    err: Error  # why it failed; absent otherwise
    id: str  # id of the content
    step: str  # what it is at: `resolve`, `pull`, `extract` or `push`
    to: str  # other name, of `push` and `tag`
    total: int  # how much there is as far as is known, bytes


class Job(TypedDict, total=False):
    access: str  # what other project members may do with it: `read-write`, `read-only` or `none`
    after: List[After]  # jobs that must get so far before it may start
    algorithms: List[DataRef]  # code from storages
    batch: Batch  # independent subjobs under one name; absent for a job of one
    begin: str  # time before which it does not start, as its author wrote it, with a zone
    begin_at: str  # the time that `begin` meant at submission
    category: str  # what it is for, for people and filters
    checkpoint: Checkpoint  # how the job continues from what it saved
    datasets: List[DataRef]  # datasets from storages
    deadline: str  # time by which it has ended, as its author wrote it, with a zone
    deadline_at: str  # the time that `deadline` meant at submission
    debug: Debug  # for how long a failed job is held for people to look at
    description: str  # what the job is, for people
    distributed: Distributed  # how the ranks find each other
    elastic: Elastic  # how the gang may run on fewer nodes than it asks for
    expected_runtime: str  # how long it is expected to run, for the forecast; 0 when not told; a span of time, such as 1h30m
    fencing: str  # after the loss of a node: `commit` starts elsewhere at once, `strict` waits
    hang: Hang  # what happens to a gang that hangs; absent without a watch
    id: str  # id of the job
    idempotency_key: str  # key that makes a repeated submission the same one; empty for none
    jupyter: bool  # a Jupyter server next to the command; not available yet
    kills_last: bool  # for a VIP job: jobs to kill end only when all its machines are otherwise available
    limit_warning: LimitWarning  # signal to every rank some time before the time limit; absent for none
    max_queue_time: str  # how long it may wait for room before its first start; a span of time, such as 1h30m
    meta: Dict[str, str]  # names and values for the user's own use
    metrics: Metrics  # where training metrics come from, besides common forms of logs
    models: List[DataRef]  # models from storages
    mounts: List[Mount]  # directories of storages at any place in the task
    name: str  # name of the job
    nodes: int  # nodes of one attempt: they all start together, or none does
    note: str  # note of people on the job; empty for none
    notify: JobNotify  # what its owner is told of it, beside what they chose for all of their jobs
    number: int  # number of the job in the cluster, from 1 in the order of submission; absent for jobs of older versions
    output: str  # directory below the storage for the results; empty for none
    output_keep: OutputKeep  # what the output becomes; absent when it becomes nothing
    output_storage: str  # storage of the results; empty for the first that takes outputs
    outside_yields: bool  # in a project without quotas, it yields to owners of guarantees if preemptible
    patient_starts: bool  # after a command that could not be started, the next attempt waits, longer each time
    placement: Placement  # which nodes the job may run on
    preemptible: bool  # whether higher tiers and owners of quotas may preempt it
    priority: Priority  # tier in the queue: `normal`, `urgent` or `critical`
    project: str  # name of the project
    resources: Optional[List[Resources]]  # what each node gives; equal alternatives, the first that can start wins
    restart: Restart  # how the job restarts after a rank has failed; absent when it does not
    resume: SavedCheckpoint  # checkpoint of an ended job from which this one goes on; absent for none
    saves_at_ends: bool  # checkpoint signal and grace come at every end that leaves time for them
    source: str  # job file as submitted; empty when too long or not for the caller to read
    ssh: bool  # access by SSH; not available yet
    stop_grace: str  # time from SIGTERM to SIGKILL when the job is stopped; a span of time, such as 1h30m
    submitted_at: str  # when the job was submitted, by the server's clock
    supports: Supports  # what may be done to the job while it runs; absent for everything
    sweep: Sweep  # trials of one command with different values of parameters
    tags: List[str]  # tags by which people find the job
    task: Task  # process or container of every rank
    tensorboard: Tensorboard  # a TensorBoard for a directory; not available yet
    throttle: Throttle  # how the job is throttled from its start; absent when it is not
    time_limit: str  # how long it may run once all ranks run; by default the pool's limit, or none; a span of time, such as 1h30m
    type: JobType  # kind of the job: `training`, `batch` or `dev`
    user: str  # user who submitted the job
    vip: VIP  # machines that a VIP job chooses, and what happens to jobs there
    volumes: List[DataRef]  # directories of storages that outlive the job
    workdir: Workdir  # the code that travels with the job, and in which its tasks start


class JobAnnotateRequest(TypedDict, total=False):
    add: List[str]  # tags to add; those that the job already has are left alone
    note: str  # the new note; absent leaves it as it was, empty removes it
    remove: List[str]  # tags to remove; those that the job does not have are left alone


class JobAnnotations(TypedDict):
    index: int  # index of the log at which the change was made
    job_id: str  # id of the job
    note: str  # note of people on the job; empty for none
    tags: Optional[List[str]]  # tags by which people find the job


class JobChange(TypedDict, total=False):
    at: str  # what is changed, as `resources[1].device.count`; `#` at the end means a label, `task.env[KEY]` with KEY in quotes an entry of an object
    value: Any  # the new value; an object whose one entry is `secret`, a name, means that secret; null takes away what is there


class JobControlRequest(TypedDict, total=False):
    reason: str  # why, in words for the history; may be empty
    subjob: int  # number of the one subjob meant, from 0; absent for all


class JobDefaults(TypedDict, total=False):
    image: str  # image of tasks whose driver is `docker` and that name none
    notify: JobNotify  # what owners of jobs are told that say nothing of it
    output_storage: str  # storage of jobs that have an output and name no storage
    pool: str  # pool of jobs that name neither a pool nor nodes
    priority: Priority  # priority of jobs that name none
    time_limit: str  # time limit of jobs that set none; a span of time, such as 1h30m


class _JobDetail(TypedDict):
    attempt: int  # highest attempt number of its subjobs; 0 before the first
    counts: Optional[Dict[str, int]]  # number of subjobs in each state
    exit_code: int  # exit code of the first subjob that did not succeed, otherwise 0
    job: Job  # the job as it was admitted
    may: Optional[List[str]]  # what the caller may do to the job
    state: JobState  # state of the job
    subjobs: Optional[List[Subjob]]  # how its subjobs stand; a first page only


class JobDetail(_JobDetail, total=False):
    after: List[AwaitedJob]  # jobs that it was submitted to wait for, in the order of the job file
    answers: List[Answered]  # what owners answered to this VIP job
    asked: List[Asked]  # what VIP jobs ask the owner of this job
    awaits: List[JobRef]  # jobs that must end before it gets the nodes nominated for it
    control: Control  # pause or throttle that people want of its first subjob
    finished_at: str  # when all of the job had ended; absent until then
    followers: List[JobRef]  # the first jobs that wait for it now and that the caller may read
    holders: List[JobRef]  # jobs that hold what it waits for; unreadable ones as one without a name
    output_counts: Dict[str, int]  # outputs of all subjobs by state
    outputs: List[JobOutput]  # what became of what it wrote to its output, at most 64: of more, those that are no version come first
    reason: Reason  # why its first subjob is in its state, in words of the catalogue
    started_at: str  # when its first subjob ran first, by the server's clock; absent until then
    wait: WaitReason  # why its first subjob is still queued; absent when it is not
    yielded: List[Yield]  # attempts that lost their nodes to other jobs, newest first


class _JobDiff(TypedDict):
    after: DiffJob  # the job that was asked about
    before: DiffJob  # the job it is compared with; null when none of its lineage succeeded
    differences: Optional[List[Difference]]  # in what the two job files differ, in their order
    found: Optional[List[Difference]]  # differences in node, image and versions that the first ranks found


class JobDiff(_JobDiff, total=False):
    hidden: bool  # whether values of variables were not compared, as the caller may not read them


class _JobFaults(TypedDict):
    faults: Optional[List[Fault]]  # faults of the job, by subjob and attempt; the newest when there are many
    job_id: str  # id of the job
    lost: float  # hours of devices that all faults cost, or of nodes without devices


class JobFaults(_JobFaults, total=False):
    away: List[str]  # nodes that did not tell of steps, by name


class _JobForecast(TypedDict):
    at: Optional[str]  # when the forecast was made, by the server's clock; null when nothing is queued
    history: Optional[List[Optional[List[Forecast]]]]  # forecasts told before, one list for each attempt, oldest first
    job_id: str  # id of the job
    starts: Optional[List[Start]]  # forecast of each queued subjob; empty when none is queued


class JobForecast(_JobForecast, total=False):
    helps: List[Help]  # changes that would start the first of `starts` sooner; only when asked for
    holders: List[JobRef]  # jobs that hold what it waits for; unreadable ones as one without a name


class JobFormatted(TypedDict):
    defaults: Optional[List[Default]]  # values that the defaults filled in
    hcl: str  # the job file in canonical form
    job: Job  # the job that the file describes, with defaults filled in


class _JobHistory(TypedDict):
    at: Optional[List[Optional[str]]]  # beginning of each span, the same for all series
    attempt: int  # number of the attempt, from 1; 0 when there was none yet
    job_id: str  # id of the job
    ranks: Optional[List[RankHistory]]  # what each rank used, in the order of ranks
    step: str  # length of each span; a span of time, such as 1h30m
    subjob: int  # number of the subjob in its batch, from 0


class JobHistory(_JobHistory, total=False):
    away: List[str]  # nodes that did not answer, by name
    more: int  # ranks left out because there are too many


class _JobList(TypedDict):
    jobs: Optional[List[JobSummary]]  # one page of jobs, newest first


class JobList(_JobList, total=False):
    next: str  # cursor of the next page; empty on the last


class _JobMetrics(TypedDict):
    ranks: Optional[List[RankMetrics]]  # what each rank measured of itself, newest attempt first


class JobMetrics(_JobMetrics, total=False):
    away: List[str]  # names of the nodes that did not answer
    left_out: int  # number of ranks beyond the bound of 64; ask for them by attempt and rank


class JobNotify(TypedDict, total=False):
    on: Optional[List[str]]  # kinds of happenings that are told
    to: str  # name of a channel of the owner, or `bell`


class _JobOutlook(TypedDict):
    at: Optional[str]  # when the forecast was made
    defaults: Optional[List[Default]]  # values that the job leaves to nomadlike
    p50: Optional[str]  # forecast of the start, as likely before as after; null when not known
    p90: Optional[str]  # start by the forecast, 90 per cent likely by then; null when not known
    point: Optional[str]  # the one best forecast of the start; null when not known
    pool: str  # pool in whose queue it would stand
    position: int  # place in that queue, from 1
    spec: int  # index of the alternative in the job's resources under which it starts; -1 for none
    specs: Optional[List[SpecAnswer]]  # forecast of each alternative of the job, as if it were the only one
    subjobs: int  # number of subjobs of a batch; 1 otherwise
    verdict: Verdict  # whether it starts: `now`, `later`, `never` or `unknown`


class JobOutlook(_JobOutlook, total=False):
    beyond: Beyond  # which times are lower bounds: `p90`, or `p50` for all three; empty for none
    helps: List[Help]  # changes of the job that would start it sooner, most useful first, at most 6
    holders: List[JobRef]  # jobs that hold what it would wait for; one without a name stands for hidden ones
    room: int  # how many of the subjobs would start now
    runtime: Span  # how long it will run, as far as that is known
    victims: List[Victim]  # gangs that would be ended at once for the job; unnamed where the caller may not read
    wait: WaitReason  # why it does not start now
    warnings: List[Error]  # what is doubtful about the job, in the caller's language


class _JobOutput(TypedDict):
    state: str  # waiting, making, kept, refused, unkept (the job did not succeed), removed, or lies (nobody asked for a version)


class JobOutput(_JobOutput, total=False):
    attempt: int  # attempt that wrote it
    cause: Reason  # why there is no version, or not yet
    kind: str  # kind of the named data that it is to become
    name: str  # name of that data
    node: str  # name of the node that ran rank 0
    path: str  # where it lies, below the place that the storage has for outputs; absent before the first attempt
    step: int  # step of the checkpoint, where each of them is kept
    storage: str  # name of the storage; absent: the first of the node
    subjob: int  # index of the subjob
    version: int  # number of the version, once it is begun


class JobParsed(TypedDict):
    defaults: Optional[List[Default]]  # values that the job leaves to nomadlike
    job: Job  # the job that the file describes, defaults filled in


class _JobPlan(TypedDict):
    ceilings: Optional[List[Ceiling]]  # the most that such a job may ask for, and who set it
    defaults: Optional[List[Default]]  # values that the job leaves to nomadlike
    job: Job  # the job as it would be submitted, defaults filled in
    ranks: Optional[List[RankPlan]]  # launch of the first subjob's ranks, at most 256, or the one that was asked for
    starts: int  # number of subjobs that would start now
    starts_now: bool  # whether all its subjobs would start now


class JobPlan(_JobPlan, total=False):
    lacks: List[DataLack]  # data that no node has, for which the job would be refused
    later: List[Reason]  # what of the ranks only their nodes can tell, at the start
    notes: List[Reason]  # what the author may want to know about the launch of the ranks
    wait: WaitReason  # why it does not start now
    warnings: List[Error]  # what is doubtful about the job, in the caller's language


class JobPriorityRequest(TypedDict, total=False):
    priority: Priority  # the new tier of the job: `normal`, `urgent` or `critical`


class _JobRef(TypedDict):
    id: str  # id of the job; empty for one that the caller may not read


class JobRef(_JobRef, total=False):
    idle: str  # why it uses nothing of what it holds: `paused`, `held` or `cards`
    name: str  # name of the job; empty once it is deleted
    project: str  # name of the project
    subjob: int  # number of the subjob in its batch, from 0
    user: str  # who submitted the job
    vip: bool  # whether it is a VIP job, with machines of its choice


class JobRequest(TypedDict, total=False):
    hcl: str  # text of a job file, instead of `job`
    job: Job  # the job as JSON, instead of `hcl`
    rank: int  # the one rank to show, with what its files hold; for plans only
    resume: str  # id of an ended job from whose checkpoint this one goes on
    resume_step: int  # step of the checkpoint to go on from; 0 for the newest
    set: List[JobChange]  # changes of values in `hcl` before it is read
    variables: Dict[str, str]  # values of the job file's variables, by name
    zone: str  # time zone of times that name none, by name or as an offset such as `+08:00`; absent for that of the server


class JobResult(TypedDict):
    job_id: str  # id of the job
    metrics: Optional[List[MetricResult]]  # where its metrics stand, by name, at most 64


class _JobResults(TypedDict):
    jobs: Optional[List[JobResult]]  # results of the jobs that have measured something, in the order in which they were named


class JobResults(_JobResults, total=False):
    away: List[str]  # names of the nodes that did not answer
    left_out: int  # number of jobs beyond the bound of one answer; ask for fewer

JobState = Literal['queued', 'starting', 'running', 'paused', 'stopping', 'succeeded', 'failed', 'stopped', 'expired']


class JobStopRequest(TypedDict, total=False):
    reason: str  # why, in the person's words, for the history
    release: str  # only ends debug holds with `hold`, or gives back their devices with `devices`
    subjob: int  # the subjob to stop, from 0; absent for the whole job


class _JobSubmitted(TypedDict):
    index: int  # index of the log from which every read shows the change
    job_id: str  # id of the job
    name: str  # name of the job


class JobSubmitted(_JobSubmitted, total=False):
    number: int  # number of the job in the cluster
    warnings: List[Error]  # what is doubtful about the job, in the caller's language


class _JobSummary(TypedDict):
    attempt: int  # highest number of an attempt of its subjobs; 0 before the first
    counts: Optional[Dict[str, int]]  # number of subjobs in each state
    exit_code: int  # exit code of the first subjob that did not succeed, else 0
    id: str  # id of the job
    name: str  # name of the job
    nodes: int  # number of nodes of one attempt
    priority: Priority  # tier in the queue: `normal`, `urgent` or `critical`
    project: str  # name of the project
    state: JobState  # state of the job, summed up over its subjobs
    subjobs: int  # number of subjobs of a batch; 1 otherwise
    submitted_at: Optional[str]  # when the job was submitted
    type: JobType  # kind of job: `training`, `batch` or `dev`


class JobSummary(_JobSummary, total=False):
    asked: Asked  # the first unanswered question of a VIP job to its owner
    code: List[str]  # names of its algorithms and favourites, the latter as `favorite/NAME`
    control: Control  # what people want of its first subjob while it runs: paused or throttled
    finished_at: str  # when the last of its subjobs ended; absent until all have
    held_until: str  # when the last of its debug holds ends
    idle: str  # why it uses nothing of what it holds: `paused`, `held` or `cards`
    idle_since: str  # since when all its cards have had nothing to do; with idle `cards`
    limit_at: str  # when the first of its running subjobs reaches its time limit
    note: str  # beginning of the job's note, at most 200 characters
    number: int  # number of the job in the cluster
    output: str  # where its outputs go
    pool: str  # pool that the job names; absent when it names none
    preemptible: bool  # whether it may be preempted
    reason: Reason  # why its first subjob is in its state
    specs: List[str]  # labels of its specs and models of their cards
    started_at: str  # when the first of its subjobs ran first
    tags: List[str]  # what people find the job by
    time_limit: str  # how long an attempt may run; given with `limit_at`; a span of time, such as 1h30m
    trend: JobTrend  # how one metric of a running job goes, where trends were asked for
    user: str  # who submitted the job
    vip: bool  # whether it is a VIP job, with machines of its choice
    wait: WaitReason  # why its first subjob still waits


class JobTrend(TypedDict):
    metric: str  # name of the metric: a loss, else a speed, else the one observed most
    values: Optional[List[float]]  # its last observations, at most 24, the newest last

JobType = Literal['training', 'batch', 'dev']


class _JobUsage(TypedDict):
    attempt: int  # number of the newest attempt; 0 when there was none yet
    job_id: str  # id of the job
    ranks: Optional[List[RankUsage]]  # what each rank uses now, in the order of ranks
    subjob: int  # number of the subjob in its batch, from 0


class JobUsage(_JobUsage, total=False):
    more: int  # number of ranks that were left out, beyond 1024


class _JobUse(TypedDict):
    cpu_hours: float  # core hours that it used
    device_hours: float  # device hours that it used
    job_id: str  # id of the job
    name: str  # name of the job
    project: str  # project of the job


class JobUse(_JobUse, total=False):
    forgotten: bool  # whether the job itself is no longer kept


class _JobValidated(TypedDict):
    valid: bool  # whether the job would be accepted


class JobValidated(_JobValidated, total=False):
    problems: List[Error]  # everything that is wrong with the job, in the caller's language
    warnings: List[Error]  # what is doubtful about the job, in the caller's language


class JoinRequest(TypedDict, total=False):
    agent_id: str  # id of the agent that joins, 32 characters
    certificate: str  # old certificate of an agent that joins again, PEM
    csr: str  # request for the agent's certificate, PEM
    name: str  # name of the agent's machine
    proof: str  # signature of the CSR by the old certificate's key, for joining again
    role: str  # role of the agent: `server` or `client`
    secret: str  # secret of the join token
    token_id: str  # id of the join token


class _JoinToken(TypedDict):
    created_at: Optional[str]  # when the token was made
    expires_at: Optional[str]  # when the token ends
    id: str  # id of the join token
    modify_index: int  # index of the log at which it changed last
    role: str  # role of the agents that it lets in: `server` or `client`
    uses_left: int  # how many more agents it lets in; -1 for no limit


class JoinToken(_JoinToken, total=False):
    created_by: str  # who made the token
    hash: str  # hash (SHA-256) of the token's secret; left out when tokens are listed or made


class JoinTokenList(TypedDict):
    tokens: Optional[List[JoinToken]]  # the join tokens, without their secrets


class JoinTokenRequest(TypedDict, total=False):
    role: str  # role of the agents that it lets in: `server` or `client`
    ttl: str  # how long the token is valid; one hour by default; a span of time, such as 1h30m
    uses: int  # how many agents it lets in; 0 for one, -1 for no limit


class _Joined(TypedDict):
    certificate: str  # certificates of the agent and of the CA, PEM
    gossip_key: str  # key that encrypts gossip, base64
    servers: Optional[List[str]]  # gossip addresses to join, host:port


class Joined(_Joined, total=False):
    ca: str  # certificates of the CAs to trust, PEM, the one that signs first
    ca_key: str  # key of the CA, PEM; for servers only
    init: ClusterInit  # first record of the cluster; for servers only
    next_ca: str  # certificate of the CA that a rotation leads to, PEM; for servers only
    next_ca_key: str  # key of the CA that a rotation leads to, PEM; for servers only
    past_ca: List[StructsPastCA]  # earlier CAs, with what leads from each to the present one


class KeyAgent(TypedDict):
    alive: bool  # whether the agent is alive
    awaited: bool  # whether a rotation waits for this agent
    id: str  # id of the agent
    keys: Optional[List[str]]  # fingerprints of the keys that it says it holds, the one in use first
    name: str  # name of the agent's machine
    role: str  # role of the agent: `server` or `client`

_KeyRotation = TypedDict(
    "_KeyRotation",
    {
        "from": "str",  # fingerprint of the key that is replaced
        "stage": "KeyStage",  # how far it is: `install` or `use`
        "stage_at": "Optional[str]",  # when this stage began
        "started_at": "Optional[str]",  # when the rotation began
        "to": "str",  # fingerprint of the new key
    },
    total=True,
)


class KeyRotation(_KeyRotation, total=False):
    by: str  # who asked for the rotation

KeyStage = Literal['install', 'use', 'done']


class KeyState(TypedDict, total=False):
    current: str  # fingerprint of the key in use; empty until the first rotation
    rotation: StructsKeyRotation  # rotation that is under way; absent when there is none


class _Keys(TypedDict):
    agents: Optional[List[KeyAgent]]  # the agents with the keys that they hold
    current: str  # fingerprint of the key that agents use
    kind: str  # which key: `gossip` or `ca`
    settled: bool  # whether no rotation is under way and every awaited agent holds the current key alone
    waiting: Optional[List[str]]  # names of the agents that have not done what the stage asks


class Keys(_Keys, total=False):
    past: List[PastCA]  # earlier CAs that are still followed, oldest first
    rotation: KeyRotation  # rotation that is under way; absent when there is none


class _KindUse(TypedDict):
    device_hours: float  # hours that they were held, summed over devices


class KindUse(_KindUse, total=False):
    kind: str  # vendor and type of the devices; absent for jobs that are forgotten
    model: str  # their full model

Level = Literal['cluster', 'pool', 'project']


class LimitWarning(TypedDict, total=False):
    before: str  # how long before the time limit every rank receives the signal; a span of time, such as 1h30m
    signal: str  # which signal; by default that of the checkpoint block, or `SIGUSR1`

LineageEdge = TypedDict(
    "LineageEdge",
    {
        "from": "int",  # place in nodes from which bytes went
        "to": "int",  # place in nodes to which they went
    },
    total=True,
)


class _LineageNode(TypedDict):
    depth: int  # steps away: below 0 what the version was made of, above 0 what was made of it
    what: str  # data, job or code


class LineageNode(_LineageNode, total=False):
    apart: bool  # whether it is a subjob of a batch whose subjobs make a version each
    at: str  # when the version was made
    attempt: int  # attempt of the job
    by: str  # who made the version; the user of a job
    bytes: int  # bytes of the version
    command: str  # command of the job
    commit: str  # commit of git in which the code lay
    digest: str  # digest of the version or the code
    dirty: bool  # the code differed from that commit
    failed: bool  # the job had not succeeded by then
    files: int  # files of the version
    gone: bool  # it is removed or forgotten; what a version keeps of it is said
    hidden: bool  # the caller may not see it, and nothing else is said
    image: str  # image of the job
    job_id: str  # id of the job
    kind: str  # kind of the data
    name: str  # name of the data or the job
    output: str  # output of the job
    path: str  # part of the output that was taken
    project: str  # project of the data or the job
    step: int  # training step of the checkpoint
    subjob: int  # index of that subjob
    version: int  # number of the version


class LogPolicy(TypedDict, total=False):
    file_size_max: int  # size of one log file at most, in bytes
    files: int  # number of log files that are kept


class LoginBeginRequest(TypedDict, total=False):
    device: bool  # whether there is no browser here: a code is typed elsewhere
    provider: str  # name of the provider, of kind oidc
    redirect: str  # where a command line waits for the browser: `http://127.0.0.1:PORT/signed-in`, or the same at `[::1]`


class _LoginBegun(TypedDict):
    address: str  # address at the provider, for a browser
    expires_at: Optional[str]  # when the sign-in must be finished
    pending: str  # what finishes the sign-in, sealed; whoever began it keeps it


class LoginBegun(_LoginBegun, total=False):
    every: str  # after how long to ask whether the code was typed; 0 with a browser; a span of time, such as 1h30m
    user_code: str  # code that the person types there; empty with a browser


class _LoginProvider(TypedDict):
    kind: str  # ldap: name and password are asked for; oidc: in a browser
    name: str  # its name in the configuration of servers


class LoginProvider(_LoginProvider, total=False):
    caption: str  # what people are shown


class LoginProviders(TypedDict):
    providers: Optional[List[LoginProvider]]  # those that there are, in the order of the configuration


class LoginRequest(TypedDict, total=False):
    answer: ProviderAnswer  # what the browser brought back; absent where a code was typed elsewhere
    new_password: str  # password that takes the place of a first one; at least 12 characters
    password: str  # the account's password
    pending: str  # `pending` of a sign-in that was begun at a provider of kind oidc
    provider: str  # name of the provider that user and password are of; without one they are those of an account
    user: str  # name of the account


class _Loss(TypedDict):
    devices: int  # number of devices of the attempt that ended; 0 when it had none
    hours: float  # device hours of work, stopping and starting; node hours when there are no devices
    nodes: int  # number of ranks of the attempt that ended
    saved: bool  # whether the attempt had registered a checkpoint
    starting: str  # time from the placement of the next attempt until all its ranks ran; a span of time, such as 1h30m
    stopping: str  # time from the end of the attempt until its last rank was gone; a span of time, such as 1h30m
    waiting: str  # time in the queue before the next attempt was placed, not part of `hours`; a span of time, such as 1h30m
    work: str  # work that was lost, since the newest checkpoint or since the attempt ran; a span of time, such as 1h30m


class Loss(_Loss, total=False):
    open: bool  # whether the loss still grows
    steps: int  # training steps that were made again; 0 for none or not known


class _Machine(TypedDict):
    cpu: float  # number of cores that jobs may have there
    cpu_used: float  # number of cores that allocations hold there
    eligibility: Eligibility  # whether it takes work: `eligible`, `cordoned` or `draining`
    free: bool  # whether it takes work, holds nothing and is kept for nobody
    id: str  # id of the node
    memory: int  # memory that jobs may have there, in bytes
    memory_used: int  # memory that allocations hold there, in bytes
    name: str  # name of the node
    pool: str  # name of the pool
    status: NodeStatus  # status of the node: `ready`, `disconnected`, `lost` or `left`
    work: Optional[List[MachineWork]]  # the gangs that hold something of the machine


class Machine(_Machine, total=False):
    claim: JobRef  # job for which the machine is kept free; absent for none
    cost: str  # device time that would be lost if its work were ended now; a span of time, such as 1h30m
    devices: List[DeviceShare]  # its devices by model: how many there are and are held


class MachineList(TypedDict):
    machines: Optional[List[Machine]]  # the machines, free ones first, then those where least would be lost


class _MachineWork(TypedDict):
    attempt: int  # number of the attempt, from 1
    devices: int  # number of devices that it holds on this machine
    job: JobRef  # the job; empty for one that the caller may not read
    nodes: int  # number of nodes of the whole gang, which ends together
    priority: Priority  # tier in the queue: `normal`, `urgent` or `critical`
    since: Optional[str]  # when its allocation on the machine was placed


class MachineWork(_MachineWork, total=False):
    checkpoint_at: str  # when its newest checkpoint was registered; absent when there is none
    checkpoint_step: int  # training step of its newest checkpoint; 0 when not told
    ending: bool  # whether it is already being stopped
    ends_by: str  # when its time limit ends it; absent without one
    gang_devices: int  # number of devices that the whole gang holds
    lost: str  # how long it has worked since its newest checkpoint, or since it ran; a span of time, such as 1h30m
    p50: str  # forecast of its end, as likely before as after; absent when not known
    p90: str  # end by the forecast, 90 per cent likely by then; absent when not known
    preemptible: bool  # whether it may be preempted
    running_at: str  # when all its ranks ran; absent before
    vip: bool  # whether it is a VIP job, which is never ended for others


class _Maintenance(TypedDict):
    end: Optional[str]  # when the window ends
    id: str  # id of the window
    start: Optional[str]  # when the window starts


class Maintenance(_Maintenance, total=False):
    all: bool  # whether it covers all nodes, instead of `nodes` or `pool`
    at: str  # when the window was made
    begun: bool  # whether its start has passed and its nodes are closed
    by: str  # who made the window
    create_index: int  # index of the log at which it was made
    keep_running: bool  # whether what runs at the start goes on; otherwise it is stopped as by a drain
    modify_index: int  # index of the log at which it changed last
    nodes: List[str]  # names of the nodes that it lists; absent with `pool` or `all`
    pool: str  # pool whose nodes it covers; absent with `nodes` or `all`
    reason: str  # why, in the operator's words


class MaintenanceChanged(TypedDict):
    index: int  # index of the log from which every read shows the change
    window: MaintenanceDetail  # the window as it is now, with the jobs that run into it


class _MaintenanceDetail(TypedDict):
    end: Optional[str]  # when the window ends
    id: str  # id of the window
    names: Optional[List[str]]  # names of the nodes that it covers now
    running: Optional[List[MaintenanceJob]]  # jobs on its nodes that may still run at its start, or run once it has begun
    start: Optional[str]  # when the window starts


class MaintenanceDetail(_MaintenanceDetail, total=False):
    all: bool  # whether it covers all nodes, instead of `nodes` or `pool`
    at: str  # when the window was made
    begun: bool  # whether its start has passed and its nodes are closed
    by: str  # who made the window
    create_index: int  # index of the log at which it was made
    keep_running: bool  # whether what runs at the start goes on; otherwise it is stopped as by a drain
    modify_index: int  # index of the log at which it changed last
    nodes: List[str]  # names of the nodes that it lists; absent with `pool` or `all`
    others: int  # number of further jobs there that the caller may not read
    pool: str  # pool whose nodes it covers; absent with `nodes` or `all`
    reason: str  # why, in the operator's words


class _MaintenanceJob(TypedDict):
    checkpoint: bool  # whether it keeps checkpoints: it is asked for one and goes on from there
    expected: Optional[str]  # forecast of its end, as likely before as after; null when not known
    job_id: str  # id of the job
    job_name: str  # name of the job
    limit: Optional[str]  # when its time limit ends it; null without one
    nodes: Optional[List[str]]  # names of its nodes that the window covers
    project: str  # name of the project
    subjob: int  # number of the subjob in its batch, from 0


class MaintenanceJob(_MaintenanceJob, total=False):
    user: str  # who submitted the job


class MaintenanceList(TypedDict):
    windows: Optional[List[MaintenanceDetail]]  # the windows that have not ended, by start

MaintenanceRequest = TypedDict(
    "MaintenanceRequest",
    {
        "all": "bool",  # whether it covers all nodes, instead of `nodes` or `pool`
        "end": "str",  # when the window ends, instead of `for`
        "for": "str",  # how long the window lasts, instead of `end`; a span of time, such as 1h30m
        "keep_running": "bool",  # whether what runs at the start goes on; otherwise it is stopped as by a drain
        "nodes": "List[str]",  # names or ids of its nodes, instead of `pool` or `all`
        "pool": "str",  # pool whose nodes it covers, instead of `nodes` or `all`
        "reason": "str",  # why, in the operator's words
        "start": "str",  # when the window starts; now by default, unchanged in a change
    },
    total=False,
)


class _Member(TypedDict):
    gossip_addr: str  # address of its gossip, host:port
    id: str  # id of the agent
    name: str  # name of the agent's machine
    role: str  # role of the agent: `server` or `client`
    rpc_addr: str  # address of its TLS port, host:port
    status: str  # how gossip sees it: `alive`, `suspect`, `dead` or `left`


class Member(_Member, total=False):
    certificate_ends_at: str  # when the first of its certificates ends, as the agent itself says
    leader: bool  # whether it is the leader of the servers
    protocol: int  # version of the protocol that it speaks
    version: str  # version of nomadlike that it runs


class MemberList(TypedDict):
    members: Optional[List[Member]]  # the agents that gossip knows


class MemberRequest(TypedDict, total=False):
    role: str  # `viewer`, `user` or `project-admin`; empty: belongs to it no more
    user: str  # account that belongs to it


class Membership(TypedDict):
    project: str  # project that the user belongs to
    role: str  # role there: `viewer`, `user` or `project-admin`


class MetricPoint(TypedDict):
    at: Optional[str]  # when it was observed
    step: int  # training step of the observation
    value: float  # what was observed


class _MetricResult(TypedDict):
    count: int  # number of observations
    last: MetricPoint  # the newest observation
    max: float  # the largest of the observed values
    min: float  # the smallest of the observed values
    name: str  # name of the metric


class MetricResult(_MetricResult, total=False):
    subjob: int  # number of the subjob that measured last, from 0


class _MetricSeries(TypedDict):
    count: int  # number of observations
    last: MetricPoint  # the newest observation
    max: float  # the largest of the observed values
    min: float  # the smallest of the observed values
    name: str  # name of the metric
    points: Optional[List[MetricPoint]]  # observations, never means; a long series keeps every second, fourth and so on
    source: str  # where it was found: `log`, or the directory of the event file


class MetricSeries(_MetricSeries, total=False):
    not_finite: int  # number of observations that were no number or infinite; they are in no point
    not_finite_at: str  # when the last value that was no number or infinite was observed


class Metrics(TypedDict, total=False):
    events: str  # directory of TensorBoard event files, as the task sees it; empty for the usual one
    patterns: List[str]  # regular expressions for log lines, with groups such as `step`, `name` and `value`

Mode = Literal['single', 'pytorch', 'deepspeed', 'horovod', 'mpi', 'tensorflow', 'mindspore', 'jax', 'none']


class _Moment(TypedDict):
    at: Optional[str]  # when it was; null when not known or not yet
    id: str  # id of the message that says what was then, or why the time is not known
    stage: Stage  # which step of the way it is, from `fault` to `stepped`


class Moment(_Moment, total=False):
    params: Dict[str, str]  # values for the placeholders of the message, by name
    took: str  # time since the moment before that is known; a span of time, such as 1h30m


class Mount(TypedDict, total=False):
    read_only: bool  # the task cannot write it
    source: str  # a path below the storage, or an absolute path that the node allows
    storage: str  # name of the storage; empty when `source` is an absolute path of the node
    target: str  # where the task finds it, an absolute path


class NewJoinToken(TypedDict):
    join: str  # the text to give to joiners: fingerprint of the CA, id and secret
    token: JoinToken  # record of the new join token


class NewShare(TypedDict):
    path: str  # what follows the address of an agent in the link, with the secret behind its `#`
    secret: str  # secret of the link, shown only this once
    token: Token  # record of the token that the link stands for


class NewToken(TypedDict):
    secret: str  # secret of the token, shown only this once
    token: Token  # record of the new token, without its secret


class _NodeDetail(TypedDict):
    addr: str  # IP address for data between ranks
    allocations: Optional[List[Allocation]]  # allocations that occupy the node, of jobs that the caller may read
    capacity: Capacity  # what it offers to jobs, without its own reserve
    create_index: int  # index of the log at which it was made
    eligibility: Eligibility  # whether new work may be placed on it, as operators say
    id: str  # id of the node
    incarnation: int  # how often its agent has been started
    may: Optional[List[str]]  # what the caller may do to the node
    modify_index: int  # index of the log at which it changed last
    name: str  # name of the node
    register_index: int  # index of the log at which it registered last
    rpc_addr: str  # address of its agent, as `host:port`
    status: NodeStatus  # what the cluster knows of it: `ready`, `disconnected`, `lost` or `left`
    used: Usage  # what allocations hold on it
    version: str  # version of its agent


class NodeDetail(_NodeDetail, total=False):
    attributes: Dict[str, str]  # what its agent found out about the machine, by name
    data: List[str]  # names of the data of which it holds prepared copies
    devices: List[Device]  # its cards, one entry for each card or part of a card
    drain_deadline: str  # when a drain stops the work that is still there; absent without a deadline
    drivers: List[str]  # task drivers that are healthy on it
    faults: List[NodeFault]  # what is not well about the machine apart from its cards, by name
    machine: str  # mark of the machine, the same for every agent on it
    maintenance: List[NodeMaintenance]  # maintenance windows that cover it and have not ended, by start
    own_pool: str  # name of the pool in the node's own configuration
    pool: str  # name of the pool
    raw: bool  # it does not isolate processes; jobs with the driver `exec` need a pool that allows it
    rdma: bool  # it has a working RDMA network card
    registered_at: str  # when it registered last, by the clock of the servers
    removed: bool  # an operator has removed it; it goes once no strict job needs its lease
    root: bool  # the record of its pool lets tasks run as root
    session: str  # the stream over which it registered last, as named by its server
    status_at: str  # since when it has this status, by the clock of the servers
    status_reason: Reason  # why it has this status; absent while it is ready
    storages: List[str]  # what its storages serve, as `kind/name`, in the order of its configuration
    topology: List[str]  # where the machine stands, outermost first, such as room, rack and switch
    unknown: List[str]  # ids of allocations that run on it and that a state restored from a backup does not know


class _NodeDevices(TypedDict):
    cpu: float  # cores that it offers to jobs
    cpu_held: float  # cores given to allocations
    devices: Optional[List[DeviceState]]  # its cards with their owners and figures, by kind and number
    eligibility: Eligibility  # whether new work may be placed on it, as operators say
    id: str  # id of the node
    measured: bool  # the node answered in time; else figures are missing or at most a minute old
    memory: int  # bytes of memory that it offers to jobs
    memory_held: int  # bytes of memory given to allocations
    name: str  # name of the node
    pool: str  # name of the pool
    status: NodeStatus  # what the cluster knows of it: `ready`, `disconnected`, `lost` or `left`


class NodeDevices(_NodeDevices, total=False):
    at: str  # when the node measured this, by the node's clock; absent when nothing was measured
    cpu_busy: float  # cores of the machine at work lately; absent when unknown
    memory_busy: int  # bytes of memory of the machine in use; absent when unknown


class _NodeFault(TypedDict):
    name: str  # what is unhealthy, such as `link/eth0` or `processes`
    reason: Reason  # what is wrong with it


class NodeFault(_NodeFault, total=False):
    unfit: bool  # the node takes no new work while the fault lasts


class NodeHistory(TypedDict):
    at: Optional[List[Optional[str]]]  # beginning of each span of the series, oldest first
    devices: Optional[List[CardHistory]]  # what each card measured, by number, those that are gone last
    id: str  # id of the node
    machine: Optional[List[GaugeHistory]]  # what the machine itself measured, one series for each gauge
    name: str  # name of the node
    step: str  # length of the span of one value; a span of time, such as 1h30m


class _NodeImage(TypedDict):
    bytes: int  # size, bytes
    id: str  # id of the content, beginning with `sha256:`


class NodeImage(_NodeImage, total=False):
    created_at: str  # when it was made
    description: str  # words for people
    devices: List[str]  # kinds of devices that it is for, such as `nvidia` or `huawei/npu`, or `cpu` for none; absent for any
    digests: List[str]  # names with the digests under which registries have it
    driver_version: str  # driver versions that it works with
    in_use: bool  # whether a container uses it
    names: List[str]  # names of the image
    private: bool  # whether it came with the credentials of a job, and is for those who have them
    pulled: bool  # whether the agent has pulled it, and so may remove it when the disk is full
    scope: List[str]  # what the image is for: training, development, inference; absent for everything
    used_at: str  # when a job used it last


class NodeImages(TypedDict, total=False):
    images: List[NodeImage]  # the images that the node holds, those used last first
    left: int  # how many images are left out
    work: List[ImageWork]  # what is being done with images, and what was, newest last


class _NodeList(TypedDict):
    nodes: Optional[List[NodeSummary]]  # nodes of the page, by name


class NodeList(_NodeList, total=False):
    next: str  # cursor of the next page; empty on the last


class _NodeMaintenance(TypedDict):
    end: Optional[str]  # when the window ends
    id: str  # id of the maintenance window
    start: Optional[str]  # when the window starts


class NodeMaintenance(_NodeMaintenance, total=False):
    begun: bool  # its start has passed, and the node is closed
    keep_running: bool  # what runs at the start goes on; else it is stopped as by a drain
    reason: str  # why, in the words of the operator

NodeStatus = Literal['ready', 'disconnected', 'lost', 'left']


class _NodeSummary(TypedDict):
    addr: str  # IP address for data between ranks
    capacity: Capacity  # what it offers to jobs, without its own reserve
    create_index: int  # index of the log at which it was made
    eligibility: Eligibility  # whether new work may be placed on it, as operators say
    id: str  # id of the node
    incarnation: int  # how often its agent has been started
    modify_index: int  # index of the log at which it changed last
    name: str  # name of the node
    register_index: int  # index of the log at which it registered last
    rpc_addr: str  # address of its agent, as `host:port`
    status: NodeStatus  # what the cluster knows of it: `ready`, `disconnected`, `lost` or `left`
    used: Usage  # what allocations hold on it
    version: str  # version of its agent


class NodeSummary(_NodeSummary, total=False):
    attributes: Dict[str, str]  # what its agent found out about the machine, by name
    data: List[str]  # names of the data of which it holds prepared copies
    devices: List[Device]  # its cards, one entry for each card or part of a card
    drain_deadline: str  # when a drain stops the work that is still there; absent without a deadline
    drivers: List[str]  # task drivers that are healthy on it
    faults: List[NodeFault]  # what is not well about the machine apart from its cards, by name
    machine: str  # mark of the machine, the same for every agent on it
    maintenance: List[NodeMaintenance]  # maintenance windows that cover it and have not ended, by start
    own_pool: str  # name of the pool in the node's own configuration
    pool: str  # name of the pool
    raw: bool  # it does not isolate processes; jobs with the driver `exec` need a pool that allows it
    rdma: bool  # it has a working RDMA network card
    registered_at: str  # when it registered last, by the clock of the servers
    removed: bool  # an operator has removed it; it goes once no strict job needs its lease
    root: bool  # the record of its pool lets tasks run as root
    session: str  # the stream over which it registered last, as named by its server
    status_at: str  # since when it has this status, by the clock of the servers
    status_reason: Reason  # why it has this status; absent while it is ready
    storages: List[str]  # what its storages serve, as `kind/name`, in the order of its configuration
    topology: List[str]  # where the machine stands, outermost first, such as room, rack and switch
    unknown: List[str]  # ids of allocations that run on it and that a state restored from a backup does not know


class Nomination(TypedDict):
    gang: GangPlan  # the gang with the nodes that it gets once others have left them
    since: Optional[str]  # when the nodes were nominated, by the clock of the servers
    victims: Optional[List[AttemptKey]]  # attempts of jobs that were asked to end for it


class _NotificationInfo(TypedDict):
    deliveries: Optional[List[NotifyDelivery]]  # how it fared at each channel but the bell
    id: str  # id of the message, the same at each channel and each try
    kind: str  # kind of happening; digest for several in one
    seen: bool  # whether the bell shows it as seen
    time: Optional[str]  # when it happened
    title: str  # what happened, in one line
    what: Optional[List[str]]  # what happened and why, a line each


class NotificationInfo(_NotificationInfo, total=False):
    do: str  # what to do about it
    job: str  # name of the job
    job_id: str  # id of the job
    lines: List[str]  # last lines of the error
    project: str  # project of the job


class NotificationList(TypedDict):
    notifications: Optional[List[NotificationInfo]]  # messages, newest first
    through: int  # what to say was seen
    unseen: int  # how many were not seen


class NotificationsSeen(TypedDict, total=False):
    through: int  # place in the list up to which everything was seen


class _NotifyChannelChanged(TypedDict):
    index: int  # log index of the change


class NotifyChannelChanged(_NotifyChannelChanged, total=False):
    secret: str  # secret of a webhook that was drawn; told only this once


class _NotifyChannelInfo(TypedDict):
    kind: str  # email, webhook, dingtalk, feishu or wecom
    name: str  # name of the channel


class NotifyChannelInfo(_NotifyChannelInfo, total=False):
    host: str  # host that it leads to; the rest of the address is never told
    last: NotifyDelivery  # how the newest message fared that was tried there


class NotifyChannelRequest(TypedDict, total=False):
    kind: str  # email, webhook, dingtalk, feishu or wecom
    secret: str  # what messages are signed with; a webhook's is drawn where none is given
    url: str  # address that messages are sent to; none for e-mail


class _NotifyDelivery(TypedDict):
    channel: str  # name of the channel


class NotifyDelivery(_NotifyDelivery, total=False):
    next_at: str  # when it is tried next; absent when it is over
    problem: str  # what went wrong in the last try
    sent_at: str  # when the channel took it
    tries: int  # how often it was tried

NotifyQuiet = TypedDict(
    "NotifyQuiet",
    {
        "from": "int",  # minutes after midnight at which quiet hours begin
        "to": "int",  # minutes after midnight at which they end; earlier than their beginning: on the next day
        "zone": "str",  # time zone of the IANA database
    },
    total=False,
)


class NotifyRequest(TypedDict, total=False):
    expire_in: str  # how long before its time limit a job is told of, 1 minute to 30 days; a span of time, such as 1h30m
    on: Optional[List[NotifyRule]]  # kinds of happenings, each with its channels
    quiet: NotifyQuiet  # quiet hours
    wait_longer: str  # how long a job waits when that is told, 1 minute to 30 days; a span of time, such as 1h30m


class NotifyRule(TypedDict, total=False):
    channels: Optional[List[str]]  # names of channels; bell is that of the pages
    kind: str  # kind of happening
    since: str  # from when on it is told; set by the servers


class _NotifyStatus(TypedDict):
    allowed: Optional[List[str]]  # hosts that the administrator allows channels to lead to
    channels: Optional[List[NotifyChannelInfo]]  # channels beside the bell
    chosen: bool  # whether the caller chose this; else it is what everybody is told
    expire_in: str  # how long before its time limit a job is told of; a span of time, such as 1h30m
    kinds: Optional[List[str]]  # kinds that the caller may choose
    mail: bool  # whether the cluster has a mail server
    on: Optional[List[NotifyRule]]  # kinds of happenings that are told, each with its channels
    user: str  # who is told
    wait_longer: str  # how long a job waits when that is told; a span of time, such as 1h30m


class NotifyStatus(_NotifyStatus, total=False):
    email: str  # mail address of the account
    quiet: NotifyQuiet  # quiet hours
    version: int  # log index of the choice


class _NotifyTested(TypedDict):
    sent: bool  # whether the channel took the message


class NotifyTested(_NotifyTested, total=False):
    problem: str  # what went wrong, as the channel told it

Outcome = Literal['succeeded', 'failed', 'lost', 'preempted', 'stopped', 'expired']


class Outlook(TypedDict):
    all: PoolLoad  # load of all pools with cards; of all pools when none has any
    at: Optional[str]  # when the forecast was made
    could_start: Optional[List[Startable]]  # by model of card, how many jobs of the caller's project could start now; null when unknown
    now: int  # place of `at` among `times`, from 0; what follows it is foreseen
    pools: Optional[List[PoolLoad]]  # load of each pool, by name
    times: Optional[List[Optional[str]]]  # instants that are counted: the last 24 hours and the next 12, every 15 minutes

OutputKeep = TypedDict(
    "OutputKeep",
    {
        "apart": "bool",  # of a batch: each subjob makes a version of its own; fixed at admission
        "as": "str",  # kind of the named data: model, dataset or algorithm
        "name": "str",  # name of the data; absent: that of the job
        "path": "str",  # file or directory below the output that becomes a version; absent: all of it
        "storage": "str",  # storage in which the versions lie, chosen at admission
        "when": "str",  # success (the default): when the job has succeeded; checkpoint: at each checkpoint that it registers
    },
    total=False,
)


class ParallelRequest(TypedDict, total=False):
    parallel: int  # how many subjobs may run at a time; 0 for all


class ParamValue(TypedDict):
    name: str  # name of the parameter
    value: str  # its value, as the command has it


class _PasswordChanged(TypedDict):
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot


class PasswordChanged(_PasswordChanged, total=False):
    first: str  # password that was drawn for the first sign-in; shown this once
    until: str  # when the drawn password ends


class PasswordRequest(TypedDict, total=False):
    current: str  # the caller's present password
    forget: bool  # take the password away: the account signs in with none from now on
    password: str  # the new password, of at least 12 characters
    reset: bool  # draw a first password, good for three days; tokens by signing in with the one before end

_Past = TypedDict(
    "_Past",
    {
        "from": "Optional[str]",  # moment from which on it tells
        "nodes": "Optional[List[PastNode]]",  # the nodes by name, last those that were removed
        "to": "Optional[str]",  # moment at which it was asked
    },
    total=True,
)


class Past(_Past, total=False):
    forgotten: List[PastUse]  # what jobs used that are kept no longer, nobody knows on which nodes, by `from`; absent for nothing
    more: int  # number of nodes left out; absent for none


class PastCA(TypedDict):
    fingerprint: str  # fingerprint of the certificate of a CA of before, SHA-256
    until: Optional[str]  # until when those who trust it alone can follow it to the present CA


class _PastCard(TypedDict):
    id: str  # id of the card
    index: int  # the vendor's number of the card on its node; 0 for one that is gone


class PastCard(_PastCard, total=False):
    gone: bool  # whether the node has the card no more


class _PastNode(TypedDict):
    cards: Optional[List[PastCard]]  # cards of the node by number, last those that it has no more
    node: str  # name of the node
    node_id: str  # id of the node
    pool: str  # name of the pool
    spans: Optional[List[PastSpan]]  # times in which ranks held cards of the node, by `from`


class PastNode(_PastNode, total=False):
    complete_since: str  # what ended before was too much and is left out; absent when nothing is
    joined_at: str  # when the node joined, if that was after `from`
    outages: List[PastOutage]  # times in which the node or a card of it took no work; absent for none
    removed: bool  # whether the cluster has the node no more

_PastOutage = TypedDict(
    "_PastOutage",
    {
        "from": "Optional[str]",  # when it began; null when it was so before anything that is known
        "to": "Optional[str]",  # when it ended; null while it lasts
    },
    total=True,
)


class PastOutage(_PastOutage, total=False):
    card: int  # place of the card in `cards`, from 0; absent for the whole node

_PastSpan = TypedDict(
    "_PastSpan",
    {
        "cards": "Optional[List[int]]",  # places in `cards` of those that it held, from 0
        "from": "Optional[str]",  # when it got them
        "to": "Optional[str]",  # when it gave them back; null while it holds them
    },
    total=True,
)


class PastSpan(_PastSpan, total=False):
    attempt: int  # number of the attempt, from 1; absent for a job that the caller may not read
    cpu: float  # cores that it held
    held: bool  # whether the rank had failed and was held for people to look at
    job: str  # name of the job; absent when the caller may not read it
    job_id: str  # id of the job; absent when the caller may not read it
    project: str  # project of the job; absent when the caller may not read it
    subjob: int  # number of the subjob in its batch, from 0; absent for 0
    unknown_cards: int  # number of cards that it held besides, of which nobody knows which
    user: str  # who submitted the job; absent when the caller may not read it

PastUse = TypedDict(
    "PastUse",
    {
        "cards": "int",  # number of cards that it held on all nodes
        "from": "Optional[str]",  # when it was placed
        "nodes": "int",  # number of nodes
        "pool": "str",  # pool in which it ran
        "to": "Optional[str]",  # when its last rank ended
    },
    total=True,
)


class Performance(TypedDict, total=False):
    action: str  # `alert` (default), an event, or `reschedule`, a restart elsewhere
    compare: str  # which side of the threshold is bad: `gt` (default) or `lt`
    pattern: str  # regular expression whose one group is the figure, or the first of two divided by the second
    threshold: float  # the figure that each line of the log is compared with
    times: int  # how many bad lines in a row trigger the action; 3 by default


class Placement(TypedDict, total=False):
    driver_version: str  # version constraints on the device driver, all of which must hold
    nodes: List[str]  # only these nodes, by name or id
    pool: str  # only nodes of this pool
    spread_or_pack: str  # `pack` (default) fills nodes, `spread` spreads over them


class Pool(TypedDict, total=False):
    age_weight: float  # fair order: device-hours of use forgiven for each hour in the queue
    ceilings: PoolCeilings  # the most that its jobs may ask for
    ceilings_at: str  # when the ceilings were last changed
    ceilings_by: str  # who last changed the ceilings
    constraints: Dict[str, str]  # selects nodes by attributes, all of which must match; values may list alternatives separated by a bar
    create_index: int  # index of the log at which it was made
    dedicated: bool  # only jobs that name the pool run on it
    defaults: PoolDefaults  # what jobs that name the pool get where they set nothing
    description: str  # what it is, for people to read
    exec: PoolExec  # the accounts that tasks run as; without it, ids of their projects
    floors: PoolFloors  # the least that each node of a job on several nodes must ask for
    half_life: str  # fair order: time after which use counts half; 7 days unless told; a span of time, such as 1h30m
    modify_index: int  # index of the log at which it changed last
    name: str  # name of the pool
    no_rdma: bool  # no job may use RDMA there, whatever the nodes say
    nodes: List[str]  # names of nodes that it claims
    order: QueueOrder  # order within a tier of its queue: `submission` (default) or `fair`
    raw: bool  # processes may run on its nodes that do not isolate them
    rdma: bool  # its nodes have RDMA networks between them
    sku: SKU  # the unit in which the pool is asked for


class PoolCeilings(TypedDict, total=False):
    devices: int  # devices of one gang; 0 for no limit
    grace: str  # the grace of checkpoint blocks; 0 for no limit; a span of time, such as 1h30m
    hold: str  # how long a failed job may be held; 0 for no limit; a span of time, such as 1h30m
    max_resumes: int  # resumes of one job; 0 for no limit
    no_checkpoint: bool  # no job may have a checkpoint block
    nodes: int  # nodes of one gang; 0 for no limit
    time_limit: str  # a job must set a time limit, at most this long; 0 for no limit; a span of time, such as 1h30m


class PoolDefaults(TypedDict, total=False):
    hold: str  # how long a failed job with a debug block is held; a span of time, such as 1h30m
    priority: Priority  # tier in the queue of jobs that name none
    task: TaskDefaults  # environment and arguments of tasks that set none
    time_limit: str  # time limit of jobs that set none; a span of time, such as 1h30m


class _PoolDetail(TypedDict):
    cpu: float  # cores that all its nodes offer
    cpu_used: float  # cores held by allocations on its nodes
    defined: bool  # the pool has a record; else only nodes name it
    devices: int  # number of cards on all its nodes
    devices_used: int  # cards held by allocations on its nodes
    memory: int  # bytes of memory that all its nodes offer
    memory_used: int  # bytes of memory held by allocations on its nodes
    models: Optional[List[DeviceShare]]  # its cards by kind and model
    nodes: int  # number of nodes in it, whatever their status
    pool: Pool  # record of the pool; just its name when it has none
    queued: int  # waiting subjobs that name the pool, or name none and could run there
    ready: int  # how many of its nodes take new work now
    running: int  # number of allocations on its nodes


class PoolDetail(_PoolDetail, total=False):
    effective: List[Ceiling]  # the most that jobs of the project that the caller acts in may ask for in it; only when one pool is read
    members: List[str]  # names of its nodes; only when one pool is read


class PoolExec(TypedDict, total=False):
    projects: Dict[str, str]  # account of each project, a name or `uid:gid`
    root: bool  # tasks without an account, and those that name root, run as root of their node
    users: Dict[str, str]  # account of each user, a name or `uid:gid`


class PoolFloors(TypedDict, total=False):
    cpu: float  # cores; 0 for no bound
    devices: int  # devices; 0 for no bound
    memory: int  # bytes of memory; 0 for no bound
    sku: int  # units of the pool, or as much without them; 0 for no bound


class PoolList(TypedDict):
    pools: Optional[List[PoolDetail]]  # pools that have a record or a node, by name


class _PoolLoad(TypedDict):
    away: Optional[List[int]]  # cards not to be had at each time: of nodes away or closed, or unhealthy
    foreseen: Optional[List[int]]  # cards at each time of jobs that wait now, from their forecast start
    held: Optional[List[int]]  # cards at each time of failed ranks that are held for people
    pool: str  # name of the pool; empty for all
    reserved: Optional[List[int]]  # cards at each time that are kept free for jobs that wait
    total: Optional[List[int]]  # all cards at each time; those in none of the other counts are free
    used: Optional[List[int]]  # cards used by jobs at each time; from now on, by those that run now


class PoolLoad(_PoolLoad, total=False):
    counts_nodes: bool  # the pool has no cards: nodes are counted instead


class PoolShare(TypedDict):
    cpu_hours: float  # core-hours that are booked for the project, in full
    device_hours: float  # device-hours that are booked for the project, in full
    fair: bool  # the pool orders its queue by it
    pool: str  # name of the pool
    rank: int  # place among the projects that used the pool, from 1; least recent use first
    recent: float  # device-hours as fair share counts them: older use counts less, divided by the weight


class PortRequest(TypedDict, total=False):
    name: str  # name of the port
    static: int  # this port of the node; 0 for any free one

Priority = Literal['normal', 'urgent', 'critical']


class _Probe(TypedDict):
    ok: bool  # yes or no


class Probe(_Probe, total=False):
    reason: str  # why no: `stopping`, `no_leader`, `disk_full`, `removed`, `no_server`, `refused`, `certificate_expired` or `not_leader`

Progress = TypedDict(
    "Progress",
    {
        "cards": "List[str]",  # ids of its idle cards, at most 16
        "for": "str",  # how long it had logged nothing, or made no step, when the node told; a span of time, such as 1h30m
        "idle": "bool",  # at least one of its cards, or its processors without any, had nothing to do
        "limit": "str",  # how much silence is too much for this rank; a span of time, such as 1h30m
        "measured": "bool",  # its cards, or its processors without any, are measured
        "mute": "bool",  # it has never logged anything
        "over": "bool",  # silent for so long that it counts whatever its devices do
        "silent": "bool",  # it has logged nothing or made no step for too long; unset once it is heard again
        "step": "int",  # the last step that was seen in its log; 0 for none
    },
    total=False,
)


class Project(TypedDict, total=False):
    admins: List[str]  # names of the users that may change its members, and what others have in it
    archived: bool  # whether it takes no new jobs and is left out of lists
    archived_at: str  # when it was archived
    archived_by: str  # who archived it
    bounds_at: str  # when that was
    bounds_by: str  # who last changed quotas, weight, urgent limit, defaults or ceilings
    ceilings: PoolCeilings  # the most that its jobs may ask for, in any pool
    code_max: int  # how many bytes of code may travel with one of its jobs; 0 means 512 MiB
    create_index: int  # index of the log at which it was made
    data_quota: int  # bytes that all versions of its named data may have; 0 or absent: any number
    defaults: TaskDefaults  # what its jobs get where they set nothing, before the pool's defaults
    description: str  # what it is, for people to read
    granted: List[Granted]  # who belongs to the project by the rules of providers of sign-ins; set by servers
    job_defaults: JobDefaults  # what its jobs get that do not set it themselves
    members: List[str]  # names of the users that may submit jobs in it
    modify_index: int  # index of the log at which it changed last
    name: str  # name of the project
    no_sharing: bool  # members can do nothing with each other's jobs, whatever their owners allow
    quotas: List[Quota]  # what it may hold of each kind of resource
    urgent_limit: int  # how many urgent jobs may be queued or running at a time; absent for no limit
    viewers: List[str]  # names of the users that may only look
    weight: float  # its share of pools whose order is `fair`; 0 counts as 1


class _ProjectDetail(TypedDict):
    defined: bool  # the project has a record; else only jobs or tokens name it
    effective: Optional[List[Ceiling]]  # the most that its jobs may ask for in any pool, by its own ceilings and those of the cluster
    held: Optional[Dict[str, int]]  # all that it holds: cards by kind and model, and thousandths of cores under `cpu`
    project: Project  # record of the project; just its name when it has none
    queued: int  # number of its subjobs that wait
    quotas: Optional[List[QuotaUse]]  # its quotas with what it holds of each
    running: int  # how many of its subjobs hold something
    shares: Optional[List[PoolShare]]  # what it used of each pool
    urgent: int  # number of its urgent jobs that wait or run


class ProjectDetail(_ProjectDetail, total=False):
    shared: Shared  # jobs that their owners share with the project; only when one project is read


class ProjectList(TypedDict):
    projects: Optional[List[ProjectDetail]]  # projects by name, with their use


class ProjectUse(TypedDict):
    project: str  # name of the project
    use: UseOverTime  # what its jobs used, by day
    users: Optional[List[UserUse]]  # the same by user, most first


class ProviderAnswer(TypedDict, total=False):
    code: str  # code that the servers exchange at the provider
    error: str  # why the provider refuses, in the words of OAuth; empty where it does not
    iss: str  # issuer that the provider says it is; empty where it says nothing
    state: str  # state of the sign-in that it belongs to


class _Queue(TypedDict):
    entries: Optional[List[QueueEntry]]  # waiting subjobs in the order in which they are served


class Queue(_Queue, total=False):
    hidden: int  # how many more wait in the same selection, of jobs that the caller may not read
    next: str  # cursor of the next page; empty on the last


class _QueueEntry(TypedDict):
    job_id: str  # id of the job
    job_name: str  # name of the job
    nodes: int  # number of nodes that it asks for
    position: int  # place among all that waits, from 1
    priority: Priority  # tier in the queue: `normal`, `urgent` or `critical`
    project: str  # name of the project
    queued_at: Optional[str]  # when it last entered the queue
    subjob: int  # number of the subjob in its batch, from 0


class QueueEntry(_QueueEntry, total=False):
    awaits: List[JobRef]  # jobs asked to end for it, on nodes that are nominated for it
    devices: int  # cards of its first alternative of resources, on all nodes
    forecast: When  # when it starts, if the request asks for `forecast`
    holders: List[JobRef]  # jobs that hold what it waits for; one without a name stands for all unreadable ones
    job_number: int  # number of the job in the cluster
    moved: bool  # an administrator gave it its place
    pool: str  # name of the pool that the job names; absent when it names none
    preemptible: bool  # the job may be preempted
    user: str  # name of the user who submitted the job
    vip: bool  # the job chooses its machines
    wait: WaitReason  # the one reason why it waits, as far as the caller may know


class QueueForecast(TypedDict):
    at: Optional[str]  # when the forecast was made
    starts: Optional[List[Start]]  # when each waiting subjob starts, pool by pool in the order of service


class QueueMoveRequest(TypedDict, total=False):
    before: str  # id or name of the queued job to stand before; empty for first, unless `last`
    last: bool  # to the end of its tier

QueueOrder = Literal['submission', 'fair']


class Quota(TypedDict, total=False):
    guaranteed: int  # what belongs to the project, even while others use it: devices or cores
    kind: str  # vendor and type of devices, such as `nvidia/gpu`, or `cpu` for cores
    maximum: int  # what the project never exceeds, in devices or cores; absent for no limit
    model: str  # only devices of this model; empty for every model


class _QuotaUse(TypedDict):
    held: float  # what the project holds of it, in devices or cores
    kind: str  # vendor and type of devices, such as `nvidia/gpu`, or `cpu` for cores


class QuotaUse(_QuotaUse, total=False):
    borrowed: float  # how much of `held` exceeds what is guaranteed; absent for none
    guaranteed: int  # what belongs to the project, even while others use it: devices or cores
    maximum: int  # what the project never exceeds, in devices or cores; absent for no limit
    model: str  # only devices of this model; empty for every model


class _RaftPeer(TypedDict):
    addr: str  # address at which other servers reach it, as `host:port`
    id: str  # id of the server
    leader: bool  # it is the leader now
    voter: bool  # it votes, and counts in the quorum


class RaftPeer(_RaftPeer, total=False):
    name: str  # name of the server; absent when gossip does not know it


class _RaftPeerList(TypedDict):
    index: int  # index of the log that the answer is of
    peers: Optional[List[RaftPeer]]  # servers in the configuration of Raft


class RaftPeerList(_RaftPeerList, total=False):
    removed: List[RemovedServer]  # servers that an administrator has taken out and that are not let back in


class _RankDevice(TypedDict):
    healthy: bool  # the card may be given to new work
    id: str  # id of the card
    index: int  # the vendor's number of the card on its node, from 0; may change at a reboot
    model: str  # model of the card


class RankDevice(_RankDevice, total=False):
    gauges: Dict[str, float]  # what the card measures, by name; absent for what it does not have


class _RankFile(TypedDict):
    path: str  # path relative to the directory of the rank's task


class RankFile(_RankFile, total=False):
    content: str  # text of the file; only when the plan was asked for one rank


class RankHistory(TypedDict):
    alloc_id: str  # id of the allocation
    cpu: float  # cores that the rank may use
    memory: int  # bytes of memory that the rank may use
    node: str  # name of the node
    node_id: str  # id of the node
    rank: int  # rank in the gang, from 0
    series: Optional[List[GaugeHistory]]  # what the rank and its cards together used, one series for each gauge
    status: AllocStatus  # status of the allocation


class _RankMetrics(TypedDict):
    alloc_id: str  # id of the allocation
    attempt: int  # number of the attempt, from 1
    node: str  # name of the node
    rank: int  # rank in the gang, from 0
    series: Optional[List[MetricSeries]]  # what was measured, by name and source


class RankMetrics(_RankMetrics, total=False):
    left_out: int  # observations left out, of names beyond the bound; absent for none
    subjob: int  # number of the subjob in its batch, from 0


class _RankPlacement(TypedDict):
    node_id: str  # id of the node


class RankPlacement(_RankPlacement, total=False):
    devices: List[str]  # ids of the cards that the rank gets there
    ports: Dict[str, int]  # port that the rank gets there for each name


class _RankPlan(TypedDict):
    env: Optional[Dict[str, str]]  # environment variables of the rank, without those that only the node or image sets
    name: str  # host name of the rank, as people, frameworks and MPI use it
    rank: int  # rank in the gang, from 0


class RankPlan(_RankPlan, total=False):
    command: List[str]  # program and arguments that it would run; absent with `hold`
    files: List[RankFile]  # files written for the rank before it starts
    hold: bool  # whether the rank runs no command of its own and is reached by others, as with MPI
    node: str  # name of the node; absent when the job would not start now
    ports: Dict[str, int]  # port that the rank would get for each name


class _RankUsage(TypedDict):
    alloc_id: str  # id of the allocation
    cpu: float  # cores that the rank may use
    measured: bool  # whether the node answered just now; if not, the figures are its last ones, or 0
    memory: int  # bytes of memory that the rank may use
    node: str  # name of the node
    node_id: str  # id of the node
    rank: int  # rank in the gang, from 0
    status: AllocStatus  # state of its allocation


class RankUsage(_RankUsage, total=False):
    at: str  # when its node measured it, by the clock of the node; absent when never
    cpu_busy: float  # cores at work on average since the measurement before; 0 at the first
    cpu_seconds: float  # core seconds used since the start of the rank
    devices: List[RankDevice]  # cards that the rank holds
    memory_used: int  # resident bytes of all its processes
    processes: int  # number of its processes


class _Reason(TypedDict):
    id: str  # id of the text in the message catalogue


class Reason(_Reason, total=False):
    params: Dict[str, str]  # values that the text names


class _RemovedNode(TypedDict):
    at: Optional[str]  # when it was removed
    id: str  # id of the node
    until: Optional[str]  # until then one of its certificates could still be good or be renewed


class RemovedNode(_RemovedNode, total=False):
    by: str  # who removed it
    name: str  # name of the node


class _RemovedServer(TypedDict):
    at: Optional[str]  # when it was removed
    id: str  # id of the server


class RemovedServer(_RemovedServer, total=False):
    by: str  # who removed it


class RenewRequest(TypedDict, total=False):
    certificate: str  # certificate that has expired, in PEM
    csr: str  # request for the new certificate, in PEM
    proof: Optional[str]  # signature of the request by the old certificate's key, in base64


class _Renewed(TypedDict):
    certificate: str  # the new certificate with that of the CA, in PEM


class Renewed(_Renewed, total=False):
    ca: str  # certificates of the CAs to trust from now on, that which signs first, in PEM
    past_ca: List[StructsPastCA]  # earlier CAs, followed from one to the present

ReportBy = Literal['user', 'project', 'pool', 'cards', 'tag', 'size']

ReportPer = Literal['', 'day', 'week', 'month']


class _ReportUse(TypedDict):
    card_ms: int  # card time in milliseconds, the sum of the six by outcome
    core_ms: int  # time of processor cores in milliseconds
    failed_ms: int  # card time of what failed by itself
    good_ms: int  # card time of what ended well, or finished
    key: str  # whose line it is: a user, a project, and so on, as the report is by
    lost_ms: int  # card time of what nodes and devices took away
    ranks: int  # how many holdings were counted, one of each rank of each attempt
    running_ms: int  # card time of what has not ended
    stopped_ms: int  # card time of what people stopped, or a time limit ended
    yielded_ms: int  # card time of what made room for others


class ReportUse(_ReportUse, total=False):
    period: str  # the day, the Monday of the week, or the month; missing where the report is not cut


class _ReportWait(TypedDict):
    attempts: int  # how many attempts were placed
    forecast: int  # of how many a start was forecast when they began to wait
    held_p50: int  # how many of these started by the time by which half were to
    held_p90: int  # how many of these started by the time by which nine tenths were to
    key: str  # whose line it is: a user, a project, and so on, as the report is by
    max_ms: int  # the longest wait, in milliseconds
    mean_ms: int  # the mean wait, in milliseconds
    p50_ms: int  # half waited no longer, in milliseconds; up to 1.6 % too much
    p90_ms: int  # nine tenths waited no longer, likewise
    p95_ms: int  # nineteen of twenty waited no longer, likewise
    within_minute: int  # how many waited a minute at most


class ReportWait(_ReportWait, total=False):
    period: str  # the day, the Monday of the week, or the month; missing where the report is not cut


class Resources(TypedDict, total=False):
    cpu: float  # cores of each node, fractions allowed
    devices: List[DeviceRequest]  # cards of each node, by kind and model
    disk: int  # most bytes that a rank may write on its node outside of storages; 0 for the node's limit
    label: str  # name of the alternative; needed when the job has several
    last_devices: int  # cards of the last node when it gets fewer than the others; 0 when all get as many
    memory: int  # bytes of memory of each node
    ports: List[PortRequest]  # TCP ports of each node
    rdma: bool  # whether it needs a working RDMA network card on each node
    rdma_by_nodes: bool  # whether the nodes' own reports decide on RDMA and the pool may only deny it; set at admission
    shared_memory: int  # bytes of `/dev/shm`, part of `memory`; 0 for the node's size
    sku: int  # multiples of the pool's SKU; 0 for none


class Restart(TypedDict, total=False):
    delay: str  # wait before each restart; a span of time, such as 1h30m
    max_restarts: int  # how often it may restart after failures of its own


class _Row(TypedDict):
    bars: Optional[List[Bar]]  # what runs or is forecast on the node, in the order of its beginning
    node: str  # name of the node
    node_id: str  # id of the node
    pool: str  # name of the pool


class Row(_Row, total=False):
    away: bool  # whether the node takes no new work now
    devices: int  # number of the node's cards; absent for none
    more: int  # number of bars left out, the latest ones


class SKU(TypedDict, total=False):
    cpu: float  # cores of one unit
    devices: List[DeviceRequest]  # cards of one unit
    memory: int  # bytes of memory of one unit


class SSHAuthority(TypedDict):
    key: str  # the public key that certifies host keys of tasks, as a line of known_hosts has it


class SavedCheckpoint(TypedDict, total=False):
    attempt: int  # number of the attempt, from 1
    job_id: str  # id of the job
    path: str  # where the checkpoint lies, in the words of the task
    rank: int  # rank in the gang, from 0
    saved_at: Optional[str]  # when it was saved, by the clock of its node
    step: int  # training step that it holds; 0 when not told


class _SecretChanged(TypedDict):
    index: int  # log index of the change
    jobs: Optional[List[SecretJob]]  # jobs that have not ended and use it


class SecretChanged(_SecretChanged, total=False):
    unmasked: bool  # whether a line of the value is too short to be masked in logs
    version: int  # version that was set; absent for one that was deleted


class _SecretInfo(TypedDict):
    created_at: Optional[str]  # when it was made
    created_by: str  # who made it
    jobs: Optional[List[SecretJob]]  # jobs that have not ended and use it, as far as the caller may see them
    name: str  # name of the secret
    own: bool  # whether it is the caller's own
    updated_at: Optional[str]  # when its value was set last
    updated_by: str  # who set its value last
    verbs: Optional[List[str]]  # what the caller may do to it
    version: int  # counts its values, from 1


class SecretInfo(_SecretInfo, total=False):
    project: str  # project that it belongs to; absent for the caller's own


class SecretJob(TypedDict):
    id: str  # id of the job
    name: str  # name of the job
    user: str  # owner of the job


class SecretKeys(TypedDict):
    current: str  # id of the data key that seals; empty before the first secret
    keys: int  # data keys; more than one while a rotation is under way
    lacking: Optional[List[str]]  # fingerprints of servers' keys that are needed and not on this server
    resealed: int  # of a rotation: values that were sealed anew
    secrets: int  # secrets of the cluster
    server_key: str  # fingerprint of the servers' key that it is sealed with


class SecretList(TypedDict):
    secrets: Optional[List[SecretInfo]]  # secrets of the project by name, then the caller's own


class SecretRequest(TypedDict, total=False):
    value: Optional[str]  # the value, 1 byte to 64 KiB, in base64


class SecretUse(TypedDict, total=False):
    image: bool  # the node signs in to the registry of the image with it, and the task does not get it
    name: str  # name of the secret
    user: str  # whose own secret it is; empty: the project's. Set at admission
    var: str  # variable that holds it; empty: a file of its name


class _Self(TypedDict):
    memberships: Optional[List[Membership]]  # projects that a request may act in, by name
    name: str  # name that jobs and the record of changes carry
    project: str  # project that the request acts in
    role: str  # role there
    token: Token  # the token that the request carries


class Self(_Self, total=False):
    cluster: str  # `operator` or `admin` in the whole cluster; empty: none
    service: ServiceAccount  # the service account that asks; not there for others
    user: User  # the account of the token's user; absent without one


class _SelfUse(TypedDict):
    effective: Optional[List[Ceiling]]  # the most that jobs of the project may ask for in that pool
    idle: Optional[List[IdleUse]]  # devices that have nothing to do now, longest first, at most 200
    jobs: Optional[List[JobUse]]  # the same by job, most first, at most 100
    pool: str  # pool in which jobs of the project stand that name none
    project: str  # project that the request acts in
    queued: int  # subjobs that wait
    quotas: Optional[List[QuotaUse]]  # quotas of that project and what is held of them
    running: int  # subjobs that hold something
    use: UseOverTime  # what the caller's jobs used, by day, in all projects that they belong to
    user: str  # name that the jobs carry


class SelfUse(_SelfUse, total=False):
    more: int  # jobs that are left out


class _ServerCondition(TypedDict):
    id: str  # id of the server


class ServerCondition(_ServerCondition, total=False):
    backup: str  # why its last backup failed; empty when it did not
    full: bool  # whether its disk has no room for log entries
    name: str  # name of the server


class _ServerHealth(TypedDict):
    addr: str  # address of the server in Raft, host:port
    healthy: bool  # whether it answers the leader and has room for log entries
    id: str  # id of the server
    leader: bool  # whether it is the leader
    status: str  # `alive` or `dead`, as the leader sees it
    voter: bool  # whether it has a vote in Raft


class ServerHealth(_ServerHealth, total=False):
    backup_failed: str  # why its last backup failed; absent when it did not
    disk_full: bool  # whether its disk has no room for log entries
    name: str  # name of the server


class ServersJoinRequest(TypedDict, total=False):
    addresses: Optional[List[str]]  # gossip addresses to try, host:port, at most 16


class ServersJoined(TypedDict):
    joined: int  # number of addresses that answered


class _ServiceAccount(TypedDict):
    name: str  # its name, unique in its project
    role: str  # `viewer`, `user` or `project-admin` in its project; `operator` in the cluster


class ServiceAccount(_ServiceAccount, total=False):
    create_index: int  # the log index at which it was made
    created_at: str  # when it was made
    created_by: str  # who made it
    description: str  # what the program is and does
    disabled: bool  # whether it may do nothing; it has no tokens then
    disabled_at: str  # when it was disabled
    disabled_by: str  # who disabled it
    modify_index: int  # the log index of its last change
    owner: str  # the account of whom to ask about it; gives no rights
    project: str  # the project that it belongs to; not there for one of the whole cluster


class _ServiceAccountDetail(TypedDict):
    account: ServiceAccount  # the service account
    live: int  # subjobs that have not ended
    user: str  # what it is called where names of users stand
    verbs: Optional[List[str]]  # what the caller may do with it


class ServiceAccountDetail(_ServiceAccountDetail, total=False):
    tokens: List[Token]  # its tokens, the newest first; not there for whoever may not change it


class ServiceAccountList(TypedDict):
    accounts: Optional[List[ServiceAccountDetail]]  # the project's service accounts by name, then those of the cluster


class ServiceAccountRequest(TypedDict, total=False):
    description: str  # what the program is and does
    owner: str  # the account of whom to ask; without it that of whoever makes it, or the one that it has
    role: str  # `viewer`, `user` or `project-admin` in a project, `operator` in the cluster; without it the one that it has, or of a new one `user`, or `operator`


class ServiceAccountStateRequest(TypedDict, total=False):
    disabled: bool  # whether to disable it
    jobs: str  # what becomes of its live jobs: `run_on` (default), `stop` or `hand_over`
    to: str  # the user that they are handed over to


class ServiceRevokeRequest(TypedDict, total=False):
    all: bool  # all tokens
    token: str  # the id of the token


class ServiceTokenRequest(TypedDict, total=False):
    addresses: List[str]  # all addresses and prefixes that requests may come from; without them any
    name: str  # name of the token
    ttl: str  # how long it lives; without it 90 days, or the most that is allowed; a span of time, such as 1h30m
    verbs: List[str]  # all that it is good for, within the role; without them all of the role


class Session(TypedDict):
    expires_at: Optional[str]  # when the session ends at the latest
    token: Token  # token that it signed in with, without its hash


class SessionBeginRequest(TypedDict, total=False):
    provider: str  # name of the provider, of kind oidc


class SessionBegun(TypedDict):
    address: str  # address at the provider that the browser goes to


class SessionEnded(TypedDict, total=False):
    address: str  # where to sign out at the provider, too; empty for nowhere


class SessionRequest(TypedDict, total=False):
    answer: ProviderAnswer  # what the browser brought back from the provider, to what was begun in this browser
    code: str  # sign-in code that works once, instead of a token
    new_password: str  # password that takes the place of a first one
    password: str  # the account's password, with `user`
    provider: str  # name of the provider that user and password are of; without one they are those of an account
    token: str  # secret of a token
    user: str  # account to sign in as, instead of a token


class Settings(TypedDict, total=False):
    ceilings: PoolCeilings  # the most that any job may ask for, wherever it runs
    ceilings_at: str  # when the ceilings were last changed
    ceilings_by: str  # who last changed the ceilings
    modify_index: int  # index of the last change
    no_sharing: bool  # others of a project can do nothing with each other's jobs, whatever their owners allow
    service_token_ttl: str  # the longest that a new token of a service account lives; without it 90 days; a span of time, such as 1h30m
    sharing_at: str  # when sharing was last switched
    sharing_by: str  # who last switched sharing


class SettingsAnswer(TypedDict):
    effective: Optional[List[Ceiling]]  # the most that jobs of the caller may ask for in the pool
    settings: Settings  # what is set for the whole cluster
    shared: Shared  # jobs that their owners share with their projects


class SettingsRequest(TypedDict, total=False):
    ceilings: PoolCeilings  # all ceilings of the cluster; missing: as they were
    no_sharing: bool  # whether nobody may share jobs; missing: as it was
    service_token_ttl: str  # the longest that a new token of a service account lives; `0s` is 90 days; a span of time, such as 1h30m


class ShareList(TypedDict):
    shares: Optional[List[Token]]  # links without their secrets, oldest first


class ShareRequest(TypedDict, total=False):
    name: str  # note for people, such as whom it is for
    ttl: str  # how long the link works; 7 days by default, at most 30; a span of time, such as 1h30m


class Shared(TypedDict):
    live: int  # of both, how many have not ended
    read_only: int  # jobs that others of their projects may read
    read_write: int  # jobs that others of their projects may also change


class _Shift(TypedDict):
    by: str  # `p50` after less `p50` before, negative when sooner; 0 when either is not known; a span of time, such as 1h30m
    job_id: str  # id of the job
    job_name: str  # name of the job
    project: str  # name of the project
    subjob: int  # number of the subjob in its batch, from 0


class Shift(_Shift, total=False):
    after: When  # its start with the change; absent when it does not wait then
    before: When  # its start without the change; absent when it does not wait


class _Shown(TypedDict):
    kind: str  # text, table, image or none


class Shown(_Shown, total=False):
    columns: List[TableColumn]  # columns of a table, at most 200
    count: int  # rows of the whole table, where the file says so
    encoding: str  # gb18030 or utf-16 where the file's text is no UTF-8
    height: int  # pixels of a picture
    media: str  # media type of a picture, by its bytes
    more: bool  # whether the file goes on
    rows: List[Optional[List[str]]]  # first rows of a table, at most 20, each cell at most 200 characters
    text: str  # the beginning of a text, at most 64 KiB
    why: str  # why nothing is shown: empty, binary, broken or too_large
    width: int  # pixels of a picture


class _SnapshotMeta(TypedDict):
    cluster: str  # id of the cluster whose state it is
    index: int  # index of the last log entry in it
    sha256: str  # SHA-256 of the whole archive, in hex
    size: int  # bytes of the state in it
    term: int  # Raft term of the last log entry in it


class SnapshotMeta(_SnapshotMeta, total=False):
    secret_keys: List[str]  # fingerprints of the servers' keys that its secrets need; absent without secrets
    taken_at: str  # when it was taken, by the server that wrote it


class Span(TypedDict):
    p50: str  # length that it exceeds as likely as not; a span of time, such as 1h30m
    p90: str  # length that it stays within with 90 per cent likelihood; a span of time, such as 1h30m


class _SpecAnswer(TypedDict):
    p50: Optional[str]  # moment before which it starts as likely as after; null with `never` and `unknown`
    p90: Optional[str]  # moment by which it starts with 90 per cent likelihood; null with `never` and `unknown`
    point: Optional[str]  # most likely start; null with `never` and `unknown`
    spec: int  # index of the alternative in the job's resources, from 0
    verdict: Verdict  # short answer to when it starts


class SpecAnswer(_SpecAnswer, total=False):
    beyond: Beyond  # which of these times are only lower bounds; absent for none
    label: str  # name of the alternative
    nodes: int  # nodes that it would get now; 0 when it does not start now
    wait: WaitReason  # why it does not start now; absent when it does

Stage = Literal['fault', 'noticed', 'agreed', 'saved', 'stopped', 'placed', 'running', 'stepped']


class _Start(TypedDict):
    attempt: int  # number of the attempt whose start is forecast, from 1
    job_id: str  # id of the job
    job_name: str  # name of the job
    nodes: int  # number of nodes that it asks for
    p50: Optional[str]  # moment before which it starts as likely as after; null with `never` and `unknown`
    p90: Optional[str]  # moment by which it starts with 90 per cent likelihood; null with `never` and `unknown`
    point: Optional[str]  # most likely start; null with `never` and `unknown`
    pool: str  # name of the pool in whose queue it stands
    position: int  # place in the queue of its pool, from 1
    priority: Priority  # tier in which the job is served
    project: str  # name of the project
    subjob: int  # number of the subjob in its batch, from 0
    verdict: Verdict  # short answer to when it starts


class Start(_Start, total=False):
    beyond: Beyond  # which of these times are only lower bounds; absent for none
    devices: int  # cards on all nodes, with the first alternative; absent for none
    user: str  # user whose job it is
    wait: WaitReason  # the one reason that blocks it; absent when it starts now


class _Startable(TypedDict):
    free: int  # healthy cards that nobody holds, also on nodes that take no work
    half: int  # jobs that would start with half a node's cards each; 0 unless that is several cards
    kind: str  # vendor and type of the cards, such as `nvidia/gpu`
    model: str  # model of the cards
    most: int  # most cards on one node that one job would get
    node: int  # cards of a whole node: what most nodes of the model have
    single: int  # jobs that would start with one card each
    whole: int  # jobs that would start with a whole node's cards each


class Startable(_Startable, total=False):
    more: bool  # whether more than 512 jobs of one of these sizes would start


class StopOrder(TypedDict):
    grace: str  # how long the rank has to save and stop; a span of time, such as 1h30m
    signal: str  # signal that tells the rank to save and stop


class _Subjob(TypedDict):
    attempt: int  # number of the newest attempt; 0 before the first
    create_index: int  # index of the log at which it was made
    exit_code: int  # exit code of the last attempt, once it has ended
    index: int  # number of the subjob in its batch, from 0
    infra_losses: int  # attempts ended by nodes, cards or preemption and not charged to the user
    job_id: str  # id of the job
    modify_index: int  # index of the log at which it changed last
    place: int  # place within its tier of the queue; the lower comes first
    queued_at: Optional[str]  # when it last entered the queue
    restarts: int  # failures charged to the user's budget
    state: JobState  # what it does now


class Subjob(_Subjob, total=False):
    attempts_from: int  # attempt number up to which none is given again, since the state came from a backup
    avoid: List[str]  # ids of nodes that its next attempts avoid if they can, oldest first, at most 64
    checkpoints: List[SavedCheckpoint]  # newest registered checkpoints, oldest first, at most 8; the next attempt starts from the last
    claim: Nomination  # nodes that are kept for it until others leave them; absent for none
    consents: List[Consent]  # what the owners on its machines were asked, in order, at most 1024
    control: Control  # pause and throttle that people asked for; absent for none
    finished_at: str  # when it ended; absent before
    moved: bool  # whether an administrator set its place, which then stands before fair share
    moves: int  # how often it was taken away from a node that it now avoids
    no_passing_at: str  # reserved start, from which on nobody passes it on its nodes; absent for none
    not_before: str  # earliest start after a restart delay; absent for none
    pending: List[str]  # ids of the jobs that it still waits for: those that the caller may read
    reason: Reason  # why it is in this state
    started_at: str  # when all ranks ran for the first time; absent before
    stop_by: str  # who asked for the stop; absent for nobody
    stop_intended: JobState  # state that it takes when stopping is over; absent while it is not stopping
    turn: bool  # whether it waits until others of its job have ended
    wait: WaitReason  # why it is still queued; absent when not told


class _SubjobList(TypedDict):
    subjobs: Optional[List[Subjob]]  # subjobs of the page


class SubjobList(_SubjobList, total=False):
    next: str  # cursor of the next page; empty on the last


class Supports(TypedDict, total=False):
    finish_now: bool  # whether it may be finished early; absent for yes
    pause: bool  # whether it can be paused; absent for yes
    resume: bool  # whether another job may resume from what it saved; absent for yes
    throttle: bool  # whether it can be throttled; absent for yes


class Sweep(TypedDict, total=False):
    args: str  # how values are added to the command: `flags`, `hydra` or `json`
    goal: str  # `minimize` or `maximize`
    max_trials: int  # how many trials there are at most; of a grid 0 for all combinations
    method: str  # `grid`, `random` or `asha`
    metric: str  # metric that trials are ordered by
    parallel: int  # how many trials may run at a time; 0 for all
    params: Optional[List[SweepParam]]  # parameters
    seed: int  # what is drawn from


class SweepParam(TypedDict, total=False):
    count: int  # how many values a grid takes of a range
    double: List[str]  # two ends of a range of numbers
    int: List[str]  # two ends of a range of whole numbers
    log: List[str]  # two ends of a range that is spread over orders of magnitude
    name: str  # name of the parameter
    values: List[str]  # the values that it may have


class _TableColumn(TypedDict):
    name: str  # name of the column


class TableColumn(_TableColumn, total=False):
    type: str  # its type, where the file says so


class Task(TypedDict, total=False):
    arguments: str  # options added to the command, and to that of each subtask
    command: str  # what each rank runs: one program with its arguments
    dir: str  # working directory of the task, absolute; empty for the task's own
    driver: str  # what runs it, such as `exec` or `docker`
    env: Dict[str, str]  # environment variables of each rank
    hooks: List[Hook]  # scripts at points in the life of the command
    image: str  # docker: image that the container is made of
    logs: LogPolicy  # how much of each rank's output is kept
    options: Dict[str, str]  # docker: settings of the engine, as far as the node allows them
    pull: str  # docker: when the image is pulled; empty for `missing`
    secrets: List[SecretUse]  # secrets that the task is given
    ulimits: Dict[str, str]  # limits of each process by name; the rest are the node's
    user: str  # account that the processes run as


class TaskDefaults(TypedDict, total=False):
    arguments: str  # options for tasks of jobs that give none
    env: Dict[str, str]  # environment variables for tasks, each where the job does not set it


class TaskPage(TypedDict):
    address: str  # where a browser sees the page; works once, until `expires_at`, and signs in whoever opens it there as the caller
    expires_at: Optional[str]  # until when the address works
    port: int  # number of the port


class TaskPageRequest(TypedDict, total=False):
    port: str  # number of a port of the task, or its name in the job file


class _Template(TypedDict):
    bytes: int  # size of the job file, bytes
    created_at: Optional[str]  # when it was made
    created_by: str  # who made it, and whose it is
    hcl: str  # the job file
    name: str  # name of the template
    own: bool  # whether it is the caller's alone
    project: str  # project that has it, or in which the caller has it
    updated_at: Optional[str]  # when it was saved last
    updated_by: str  # who saved it last
    verbs: Optional[List[str]]  # what the caller may do to it


class Template(_Template, total=False):
    description: str  # words for people


class _TemplateInfo(TypedDict):
    bytes: int  # size of the job file, bytes
    created_at: Optional[str]  # when it was made
    created_by: str  # who made it, and whose it is
    name: str  # name of the template
    own: bool  # whether it is the caller's alone
    project: str  # project that has it, or in which the caller has it
    updated_at: Optional[str]  # when it was saved last
    updated_by: str  # who saved it last
    verbs: Optional[List[str]]  # what the caller may do to it


class TemplateInfo(_TemplateInfo, total=False):
    description: str  # words for people


class TemplateList(TypedDict):
    templates: Optional[List[TemplateInfo]]  # templates of the project by name, then the caller's own


class TemplateRequest(TypedDict, total=False):
    description: str  # words for people
    hcl: str  # the job file; variables may lack values


class Tensorboard(TypedDict, total=False):
    logdir: str  # directory of summaries that it serves


class Throttle(TypedDict, total=False):
    busy: str  # how long it runs each time; 500 ms by default; a span of time, such as 1h30m
    keep: str  # how long it stands still after each `busy`; a span of time, such as 1h30m


class ThrottleRequest(TypedDict, total=False):
    busy: str  # how long it runs each time; 500 ms by default; a span of time, such as 1h30m
    idle: str  # how long it stands still after each `busy`; 0 lifts the throttle; a span of time, such as 1h30m
    reason: str  # words for the history of the job
    subjob: int  # number of the one subjob it is for; absent for all


class TimeLimitRequest(TypedDict, total=False):
    time_limit: str  # new time limit of the job; 0 lifts it; a span of time, such as 1h30m

_Timeline = TypedDict(
    "_Timeline",
    {
        "from": "Optional[str]",  # moment at which the timeline begins
        "rows": "Optional[List[Row]]",  # one row for each node, by node name
        "to": "Optional[str]",  # moment at which the timeline ends
    },
    total=True,
)


class Timeline(_Timeline, total=False):
    more: int  # number of nodes left out; absent for none


class _Token(TypedDict):
    created_at: Optional[str]  # when it was made
    id: str  # id of the token, not its secret
    modify_index: int  # index of the log at which it changed last
    role: str  # role of its holder; `guest` or `board` for a link

_TokenBesides = TypedDict(
    "_TokenBesides",
    {
        "addresses": "List[str]",  # addresses and prefixes that it is good from; absent where from all
        "created_by": "str",  # who made it
        "ends_at": "str",  # up to when the end of a token by signing in is put off while it is used; absent for others
        "expires_at": "str",  # when it ends; absent for never
        "from": "str",  # address that a token by signing in was made for; absent for others
        "hash": "str",  # SHA-256 of the secret; never in an answer
        "job_id": "str",  # id of the one job that a link shows; absent otherwise
        "method": "str",  # how its holder signed in: `password`; absent where somebody made it
        "name": "str",  # note for people, such as whom it is for
        "project": "str",  # name of the project; empty for roles of the whole cluster
        "provider": "str",  # provider that the sign-in went through
        "used_at": "str",  # of a service account's token: when it was used last, to the minute
        "used_from": "str",  # of a service account's token: from where it was used last
        "user": "str",  # user that its holder is; of a link, who made it
        "verbs": "List[str]",  # verbs that it is good for; absent where for all that its role gives
    },
    total=False,
)


class Token(_Token, _TokenBesides):
    pass


class _TokenDeleted(TypedDict):
    index: int  # index of the log from which every read shows the change


class TokenDeleted(_TokenDeleted, total=False):
    address: str  # where its holder, who asked, signs out at the provider, too; empty for nowhere


class _TokenList(TypedDict):
    tokens: Optional[List[Token]]  # tokens of the page, without hashes


class TokenList(_TokenList, total=False):
    next: str  # cursor of the next page; empty on the last


class TokenRequest(TypedDict, total=False):
    addresses: List[str]  # addresses and prefixes that it is good from; none for all
    name: str  # note for people, such as whom it is for
    project: str  # name of the project, for roles bound to one
    role: str  # `viewer`, `user`, `project-admin`, `operator` or `admin`
    ttl: str  # how long it lives; 0 for without end; a span of time, such as 1h30m
    user: str  # user that its holder is
    verbs: List[str]  # verbs that it is good for; none for all that its role gives


class _Trial(TypedDict):
    state: JobState  # state of the subjob
    subjob: int  # number of the subjob, from 0


class Trial(_Trial, total=False):
    attempt: int  # number of its newest attempt
    exit_code: int  # exit code of that
    finished_at: str  # when it ended
    metric: MetricResult  # where the metric stands, by the nodes
    name: str  # its values, the name of its subtask, or its number in the array
    params: List[ParamValue]  # values of its parameters
    started_at: str  # when it ran first
    turn: bool  # whether it waits for its turn


class _TrialList(TypedDict):
    trials: Optional[List[Trial]]  # trials, best first; those without the metric behind, by number


class TrialList(_TrialList, total=False):
    away: List[str]  # nodes that did not answer
    goal: str  # `minimize` or `maximize`
    left_out: int  # trials whose metric was not asked for, because there are too many
    metric: str  # metric that they are ordered by
    waiting: int  # how many of them wait for their turn


class _Usage(TypedDict):
    allocs: int  # number of allocations that hold something on the node
    cpu: float  # cores held by the allocations of the node
    memory: int  # bytes of memory held by the allocations of the node
    modify_index: int  # index of the log at which it changed last
    node_id: str  # id of the node


class Usage(_Usage, total=False):
    claim: str  # job id and subjob number that the node is kept for, with a slash between; absent for none
    devices: Dict[str, str]  # id of the allocation that holds each card, by the card's id
    overcommitted: bool  # whether the node came back smaller than what it holds; nothing is placed there meanwhile
    ports: Dict[str, str]  # id of the allocation that holds each port, by port

_UsageReport = TypedDict(
    "_UsageReport",
    {
        "by": "ReportBy",  # what the report has a line for
        "from": "Optional[str]",  # from when on it counts
        "gaps": "Optional[List[HistoryGap]]",  # stretches of the log whose rows this server lacks and fetches from others
        "index": "int",  # index of the log as of which it is
        "lines": "Optional[List[ReportUse]]",  # the lines
        "per": "ReportPer",  # into which spans of the calendar it is cut; empty: not at all
        "rows": "int",  # rows of the history on this server
        "to": "Optional[str]",  # until when, not included
        "zone": "str",  # time zone of its days and months
    },
    total=True,
)


class UsageReport(_UsageReport, total=False):
    since: str  # start of the oldest row of the history; missing without any

_UseOverTime = TypedDict(
    "_UseOverTime",
    {
        "cpu_hours": "float",  # core hours of all days
        "days": "Optional[List[DayUse]]",  # each day, oldest first; the last is not over
        "device_hours": "float",  # device hours of all days
        "from": "Optional[str]",  # beginning of the first day
        "to": "Optional[str]",  # now
    },
    total=True,
)


class UseOverTime(_UseOverTime, total=False):
    known_since: str  # jobs that ended before may be missing; absent when none are


class User(TypedDict, total=False):
    create_index: int  # log index that made it
    created_at: str  # when it was made
    created_by: str  # who made it
    disabled: bool  # whether the account may do nothing
    disabled_at: str  # when it was disabled
    disabled_by: str  # who disabled it
    display_name: str  # name for people to read
    email: str  # e-mail address
    identities: List[Identity]  # who the account is to providers of sign-ins; set by servers
    language: str  # `en` or `zh`, of messages to the user; empty: by the reader's locale
    modify_index: int  # log index of its last change
    name: str  # name of the account
    project: str  # project that requests act in which name none
    role: str  # `operator` or `admin` of the whole cluster; empty: none
    ssh_keys: List[str]  # public SSH keys, as lines of authorized_keys


class UserDetail(TypedDict):
    live: int  # how many of the user's subjobs have not ended
    memberships: Optional[List[Membership]]  # projects that the user belongs to, by name
    user: User  # the account


class UserList(TypedDict):
    users: Optional[List[UserDetail]]  # accounts, by name


class UserStateRequest(TypedDict, total=False):
    disabled: bool  # true disables the account, false enables it
    jobs: str  # what becomes of its live jobs: `run_on`, `stop` or `hand_over`
    to: str  # user that the jobs are handed over to


class UserUse(TypedDict):
    cpu_hours: float  # core hours of their jobs
    device_hours: float  # device hours of their jobs
    user: str  # name of the user


class VIP(TypedDict, total=False):
    ask: VIPAsk  # how owners are asked, on machines with `ask`; absent without any
    machines: Optional[List[VIPMachine]]  # machines that the person chose

VIPAsk = TypedDict(
    "VIPAsk",
    {
        "for": "str",  # how long the owners may take to answer; a span of time, such as 1h30m
        "message": "str",  # words to the owners; empty for none
        "silence": "str",  # what no answer means by then: `wait`, the default, or `kill`
    },
    total=False,
)


class VIPMachine(TypedDict, total=False):
    busy: str  # what happens to the jobs there: `wait`, the default, `ask` or `kill`
    node: str  # the machine, by name or id

Verdict = Literal['now', 'later', 'never', 'unknown']


class _Victim(TypedDict):
    attempt: int  # number of the attempt, from 1
    grace: str  # how long it may take to stop; a span of time, such as 1h30m
    job_id: str  # id of the job; empty when the caller may not read it
    job_name: str  # name of the job; empty when the caller may not read it
    lost: str  # running time since its newest checkpoint, or else since its start; a span of time, such as 1h30m
    nodes: Optional[List[str]]  # ids of the nodes that it runs on
    priority: Priority  # tier in which the job is served
    project: str  # name of the project; empty when the caller may not read the job
    since: Optional[str]  # when all its ranks ran; null when not yet
    subjob: int  # number of the subjob in its batch, from 0


class Victim(_Victim, total=False):
    checkpoint_at: str  # when its newest checkpoint was saved; absent for none
    preemptible: bool  # whether its job may be preempted
    user: str  # user whose job it is; absent when the caller may not read the job


class _WaitReason(TypedDict):
    id: str  # id of the text in the message catalogue


class WaitReason(_WaitReason, total=False):
    holders: List[str]  # ids of the jobs that hold what it needs, as far as the caller may read them
    never: bool  # whether it cannot start in this cluster as it is built
    params: Dict[str, str]  # values that the text names
    position: int  # place in the queue, from 1; absent when not counted here

_WaitsReport = TypedDict(
    "_WaitsReport",
    {
        "by": "ReportBy",  # what the report has a line for
        "from": "Optional[str]",  # from when on it counts
        "gaps": "Optional[List[HistoryGap]]",  # stretches of the log whose rows this server lacks and fetches from others
        "index": "int",  # index of the log as of which it is
        "lines": "Optional[List[ReportWait]]",  # the lines
        "per": "ReportPer",  # into which spans of the calendar it is cut; empty: not at all
        "rows": "int",  # rows of the history on this server
        "to": "Optional[str]",  # until when, not included
        "zone": "str",  # time zone of its days and months
    },
    total=True,
)


class WaitsReport(_WaitsReport, total=False):
    since: str  # start of the oldest row of the history; missing without any


class Warning(TypedDict):
    seq: int  # number of the warning; another number is another warning
    signal: str  # signal that the running command is sent


class WhatIfRequest(TypedDict, total=False):
    changes: Optional[List[Change]]  # changes to try in their order, at most 16


class _When(TypedDict):
    p50: Optional[str]  # moment before which it starts as likely as after; null with `never` and `unknown`
    p90: Optional[str]  # moment by which it starts with 90 per cent likelihood; null with `never` and `unknown`
    point: Optional[str]  # most likely start; null with `never` and `unknown`
    verdict: Verdict  # short answer to when it starts


class When(_When, total=False):
    beyond: Beyond  # which of these times are only lower bounds; absent for none


class Workdir(TypedDict, total=False):
    bytes: int  # bytes of its files
    files: int  # how many files and links it has
    git: WorkdirGit  # where git stood when it was sent; nothing outside of a work tree
    repo: WorkdirRepo  # what of a git repository it is; nothing of a directory
    source: str  # the directory as it was written, the digest of code that was sent before, or with `repo` the address of a git repository
    tree: str  # digest of the code: `sha256:` and 64 digits


class WorkdirGit(TypedDict, total=False):
    branch: str  # the branch, empty of a detached head
    commit: str  # the commit, empty before the first one
    dirty: bool  # true where something differed from the commit


class WorkdirRepo(TypedDict, total=False):
    ref: str  # branch, tag or commit as it was written; nothing for what the server calls HEAD
    subdir: str  # the directory of the repository; nothing for all of it


class Yield(TypedDict):
    at: Optional[str]  # when the attempt was asked to end
    attempt: int  # number of the attempt, from 1
    subjob: int  # number of the subjob in its batch, from 0
    to: JobRef  # job that it made room for

_StructsKeyRotation = TypedDict(
    "_StructsKeyRotation",
    {
        "from": "str",  # fingerprint of the key that is being replaced
        "stage": "KeyStage",  # stage that it has reached: `install` or `use`
        "stage_at": "Optional[str]",  # when that stage began
        "started_at": "Optional[str]",  # when the rotation began
        "to": "str",  # fingerprint of the key that takes its place
    },
    total=True,
)


class StructsKeyRotation(_StructsKeyRotation, total=False):
    by: str  # who asked for it


class StructsPastCA(TypedDict):
    certificate: CACertificate  # certificate of the CA of before
    cross: str  # certificate of the next CA, signed by this one, in PEM
    until: Optional[str]  # when the cross-certificate ends
