package config

import (
	"math"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
)

// ServerBlock is the block of a server.
type ServerBlock struct {
	Enabled         *bool
	BootstrapExpect *int
	Join            []string
	ForgetNodes     *string
	LapseGrace      *string
	KeepJobs        *int
	KeepJobsFor     *string
	JobsSizeMax     *string
	Backup          *BackupBlock
	Audit           *AuditBlock
	History         *HistoryBlock
	Notify          *NotifyBlock
	SignIn          *SignInBlock
}

// Server is the part of a server.
type Server struct {
	Enabled         bool
	BootstrapExpect int           // the founder starts Raft when it sees so many servers
	Join            []string      // host:port of gossip
	LapseGrace      time.Duration // how long after its end a node's certificate is renewed
	Kept            server.Kept   // ended jobs that stay in the state
	JobBytesMax     int64         // of the specifications of all jobs that have not ended; 0: any
	Backup          Backup
	Audit           Audit
	History         History
	Notify          Notify
	SignIn          SignIn
	ForgetNodes     time.Duration // how long a node is down before it is forgotten; 0: never
}

// Defaults and bounds of servers.
const (
	bootstrapExpectMax = 7
	forgetNodesDefault = 30 * 24 * time.Hour

	keepJobsDefault = 10_000
	keepJobsMax     = 1_000_000

	jobBytesDefault = 256 << 20 // of the specifications of all live jobs
	jobBytesLeast   = 16 << 20  // so that a user may have some of the largest
)

func walkServer(v visitor, b *ServerBlock, c *Config) {
	s := &c.Server
	v.setting("enabled", toggle(&b.Enabled, &s.Enabled, false).onFlag("server", "cli.flag.server"))
	v.rule(func(*resolver) { s.Enabled = get(b.Enabled, c.Dev) })
	there := b.Backup != nil
	one(v, "backup", &b.Backup, func(v visitor, b *BackupBlock) { walkBackup(v, b, &s.Backup, there) })
	one(v, "audit", &b.Audit, func(v visitor, b *AuditBlock) { walkAudit(v, b, &s.Audit) })
	one(v, "history", &b.History, func(v visitor, b *HistoryBlock) { walkHistory(v, b, &s.History) })
	one(v, "notify", &b.Notify, func(v visitor, b *NotifyBlock) { walkNotify(v, b, &s.Notify) })
	one(v, "sign_in", &b.SignIn, func(v visitor, b *SignInBlock) { walkSignIn(v, b, &s.SignIn) })
	v.setting("bootstrap_expect", number(&b.BootstrapExpect, &s.BootstrapExpect, 1).from(1, bootstrapExpectMax).refused("agent.config.expect").
		onFlag("bootstrap-expect", "cli.flag.bootstrap_expect"))
	v.setting("renew_grace", span(&b.LapseGrace, &s.LapseGrace, auth.LapseGraceDefault))
	v.setting("forget_nodes", span(&b.ForgetNodes, &s.ForgetNodes, forgetNodesDefault))
	v.setting("keep_jobs", number(&b.KeepJobs, &s.Kept.Jobs, keepJobsDefault).from(0, keepJobsMax).refused("agent.config.keep_jobs"))
	v.setting("keep_jobs_for", span(&b.KeepJobsFor, &s.Kept.For, 0).refused("agent.config.keep_jobs_for").orBlank())
	v.setting("jobs_size_max", size(&b.JobsSizeMax, &s.JobBytesMax, jobBytesDefault).from(jobBytesLeast, math.Inf(1)).orZero().orBlank().
		refused("agent.config.jobs_size_max"))
	v.setting("join", list(&b.Join, &s.Join).onFlag("server-join", "cli.flag.server_join"))
	v.rule(func(r *resolver) {
		for i, address := range s.Join {
			s.Join[i] = r.hostPort("server.join", address, DefaultGossipPort)
		}
	})
}
