package httpapi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of the labels of a server's own series.
const (
	seriesPoolsMax  = 256    // what waits for more is told as poolOthers
	seriesAgentsMax = 20_000 // certificates
	poolOthers      = "(others)"
)

// put writes one value of a family.
func (f family) put(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc(), f.kind, value, labels...)
}

// queueCollector tells what waits when it is asked.
type queueCollector struct {
	store *state.Store
	now   func() time.Time
}

// Families of the queue.
var (
	queueLength = family{"nomadlike_queue_subjobs", "Subjobs that wait, by the pool that their jobs name and by tier; those that wait for other jobs are left out.", "pool tier", prometheus.GaugeValue}
	queueOldest = family{"nomadlike_queue_oldest_wait_seconds", "How long the one of them that has waited longest does.", "pool tier", prometheus.GaugeValue}
)

// Describe implements prometheus.Collector.
func (queueCollector) Describe(to chan<- *prometheus.Desc) {
	to <- queueLength.desc()
	to <- queueOldest.desc()
}

// Collect implements prometheus.Collector. Every pool has its series, be it empty, so
// that a queue that has run dry is told as 0.
func (c queueCollector) Collect(to chan<- prometheus.Metric) {
	type line struct{ pool, tier string }
	type row struct {
		count  int
		oldest structs.UnixNano
	}
	snapshot := c.store.Snapshot()
	pools, rows := map[string]bool{}, map[line]row{}
	add := func(pool string) {
		if pools[pool] || len(pools) >= seriesPoolsMax {
			return
		}
		pools[pool] = true
		for _, tier := range []structs.Priority{structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical} {
			rows[line{pool, string(tier)}] = row{}
		}
	}
	add(structs.PoolDefault)
	for pool := range snapshot.Pools() {
		add(pool.Name)
	}
	for job, subjob := range snapshot.Queue() {
		if len(subjob.Pending) > 0 {
			continue
		}
		pool := poolOf(job.Placement.Pool)
		if !pools[pool] {
			pool = poolOthers
		}
		at := line{pool, tierOf(job)}
		one := rows[at]
		one.count++
		if one.oldest == 0 || subjob.QueuedAt < one.oldest {
			one.oldest = subjob.QueuedAt
		}
		rows[at] = one
	}
	now := structs.At(c.now())
	for at, one := range rows {
		waited := 0.0
		if one.oldest != 0 {
			waited = max(0, now.Sub(one.oldest).Seconds())
		}
		queueLength.put(to, float64(one.count), at.pool, at.tier)
		queueOldest.put(to, waited, at.pool, at.tier)
	}
}

// LogStats is how a server's log is.
type LogStats struct {
	Term          uint64
	Leaders       uint64 // that this server has seen since it was started
	CommitIndex   uint64
	AppliedIndex  uint64
	SnapshotIndex uint64
	SnapshotAt    time.Time     // zero: there is none
	LastContact   time.Duration // since the leader was heard; negative: never
	LogBytes      int64
	FreeBytes     uint64 // where it is; 0: nobody knows
}

// serverCollector tells how this server's log, disk and certificates are, and of the
// agents that it knows.
type serverCollector struct {
	raft    func() LogStats
	members func() []api.Member
	self    func() api.AgentSelf
	ends    func() (certificate, authority time.Time)
	leads   func() bool
}

// Families of servers.
var (
	buildInfo     = family{"nomadlike_build_info", "1; the version that this server runs, and the protocol that it speaks.", "version protocol", prometheus.GaugeValue}
	raftTerm      = family{"nomadlike_raft_term", "Term of the log.", "", prometheus.GaugeValue}
	raftLeaders   = family{"nomadlike_raft_leader_changes_total", "Leaders that came to lead since this server was started.", "", prometheus.CounterValue}
	raftContact   = family{"nomadlike_raft_last_contact_seconds", "Time since this server heard the leader; 0 on the leader.", "", prometheus.GaugeValue}
	raftCommitted = family{"nomadlike_raft_commit_index", "Newest log index that this server knows to be committed.", "", prometheus.GaugeValue}
	raftBytes     = family{"nomadlike_raft_log_bytes", "Length of the files of the log.", "", prometheus.GaugeValue}
	raftSnapshot  = family{"nomadlike_raft_snapshot_timestamp_seconds", "When the newest snapshot of the log was made, Unix time; 0: there is none yet.", "", prometheus.GaugeValue}
	raftLag       = family{"nomadlike_raft_snapshot_lag_entries", "Log entries since the newest snapshot: what a start reads again.", "", prometheus.GaugeValue}
	raftDisk      = family{"nomadlike_raft_disk_free_bytes", "Space left where the log is.", "", prometheus.GaugeValue}
	agentsKnown   = family{"nomadlike_agents", "Agents that gossip knows, by role and status.", "role status", prometheus.GaugeValue}
	agentEnd      = family{"nomadlike_agent_certificate_expiry_timestamp_seconds", "When the first of the certificates of a living agent ends, Unix time; an agent renews them when half of their life is over.", "agent role", prometheus.GaugeValue}
	caEnd         = family{"nomadlike_ca_expiry_timestamp_seconds", "When the certificate of the cluster's CA ends, Unix time.", "", prometheus.GaugeValue}
)

func serverFamilies() []family {
	return []family{
		buildInfo, raftTerm, raftLeaders, raftContact, raftCommitted, raftBytes, raftSnapshot, raftLag, raftDisk, agentsKnown, agentEnd, caEnd,
	}
}

// Describe implements prometheus.Collector.
func (serverCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range serverFamilies() {
		to <- f.desc()
	}
}

// Collect implements prometheus.Collector. Certificates of other agents are told by the
// leader alone, so that each is told once.
func (c serverCollector) Collect(to chan<- prometheus.Metric) {
	stats, self := c.raft(), c.self()
	buildInfo.put(to, 1, self.Version, strconv.Itoa(self.Protocol))
	raftTerm.put(to, float64(stats.Term))
	raftLeaders.put(to, float64(stats.Leaders))
	if stats.LastContact >= 0 {
		raftContact.put(to, stats.LastContact.Seconds())
	}
	raftCommitted.put(to, float64(stats.CommitIndex))
	raftBytes.put(to, float64(stats.LogBytes))
	made := 0.0
	if !stats.SnapshotAt.IsZero() {
		made = float64(stats.SnapshotAt.Unix())
	}
	raftSnapshot.put(to, made)
	raftLag.put(to, float64(stats.AppliedIndex-min(stats.AppliedIndex, stats.SnapshotIndex)))
	if stats.FreeBytes > 0 {
		raftDisk.put(to, float64(stats.FreeBytes))
	}
	own, authority := c.ends()
	caEnd.put(to, float64(authority.Unix()))
	c.agents(to, &self, own)
}

// agents tells of the agents that gossip knows. What they say of themselves becomes a
// label only as one of a few words, or as a name that is told once.
func (c serverCollector) agents(to chan<- prometheus.Metric, self *api.AgentSelf, own time.Time) {
	members := c.members()
	slices.SortFunc(members, func(a, b api.Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	counts := map[[2]string]int{}
	for _, role := range []string{"server", "client"} {
		counts[[2]string{role, "alive"}] = 0
	}
	leads, mine := c.leads(), [2]string{safeLabel(self.Name), "server"}
	if len(self.Roles) > 1 {
		mine[1] = "both"
	}
	named := map[[2]string]bool{mine: true}
	agentEnd.put(to, float64(own.Unix()), mine[0], mine[1])
	for i := range members {
		m := &members[i]
		counts[[2]string{roleLabel(m.Role), statusLabel(m.Status)}]++
		name := [2]string{safeLabel(cmp.Or(m.Name, m.ID)), roleLabel(m.Role)}
		if leads && m.ID != self.ID && statusLabel(m.Status) == "alive" && m.CertificateEndsAt != 0 && !named[name] && len(named) < seriesAgentsMax {
			named[name] = true
			agentEnd.put(to, float64(m.CertificateEndsAt.Time().Unix()), name[0], name[1])
		}
	}
	for at, count := range counts {
		agentsKnown.put(to, float64(count), at[0], at[1])
	}
}

func safeLabel(text string) string { return strings.ToValidUTF8(text, "?") }

// roleLabel and statusLabel are what an agent says of itself as one of a few words.
func roleLabel(said string) string {
	switch said {
	case "server", "client", "both":
		return said
	}
	return "other"
}

func statusLabel(said string) string {
	switch said {
	case "alive", "suspect", "dead", "left":
		return said
	}
	return "other"
}
