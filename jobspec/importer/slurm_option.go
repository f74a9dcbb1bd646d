package importer

import "sync"

// slurmOption is one option of sbatch, and what becomes of it. Without take it is
// used in the counting of nodes, tasks, cards and memory, or for what runs, or it
// is told by its text.
type slurmOption struct {
	name  string
	short byte
	also  []string // other names
	value valueNeed
	take  func(s *slurm, given directive)
	kind  kind
	text  string // id of what is said of it
}

// valueNeed reports whether an option takes a value.
type valueNeed uint8

const (
	valueNeeded   valueNeed = iota
	valueNone               // never
	valueOptional           // only behind an equals sign
)

// slurmTable lists the options of sbatch, and of the container plugin that most
// clusters with cards have. The guide's table names each that is counted in
// scripts.
var slurmTable = sync.OnceValue(func() []slurmOption {
	const (
		none     = "import.slurm.needless"
		unlike   = "import.slurm.unlike"
		planning = "import.slurm.planning"
	)
	return []slurmOption{
		{name: "job-name", short: 'J', take: takeName},
		{name: "account", short: 'A', take: takeAccount},
		{name: "partition", short: 'p', take: takePartition},
		{name: "nodes", short: 'N'},
		{name: "ntasks", short: 'n', also: []string{"tasks"}},
		{name: "ntasks-per-node", also: []string{"tasks-per-node"}},
		{name: "cpus-per-task", short: 'c'},
		{name: "cpus-per-gpu"},
		{name: "mincpus"},
		{name: "mem"},
		{name: "mem-per-cpu"},
		{name: "mem-per-gpu"},
		{name: "gres"},
		{name: "gpus", short: 'G'},
		{name: "gpus-per-node"},
		{name: "gpus-per-task"},
		{name: "gpus-per-socket", kind: lost, text: "import.slurm.sockets"},
		{name: "ntasks-per-gpu"},
		{name: "exclusive", value: valueOptional},
		{name: "tmp", take: takeTmp},
		{name: "time", short: 't'},
		{name: "time-min", kind: lost, text: "import.slurm.time_min"},
		{name: "signal", take: takeSignal},
		{name: "begin", short: 'b', take: takeBegin},
		{name: "deadline", take: takeDeadline},
		{name: "array", short: 'a', take: takeArray},
		{name: "dependency", short: 'd', take: takeDependency},
		{name: "kill-on-invalid-dep", kind: needless, text: "import.slurm.invalid_dep"},
		{name: "nodelist", short: 'w', take: takeNodelist},
		{name: "nodefile", short: 'F', kind: lost, text: "import.slurm.nodefile"},
		{name: "exclude", short: 'x', kind: lost, text: "import.slurm.exclude"},
		{name: "constraint", short: 'C', take: takeConstraint},
		{name: "prefer", kind: lost, text: "import.slurm.prefer"},
		{name: "cluster-constraint", kind: lost, text: "import.slurm.clusters"},
		{name: "clusters", short: 'M', also: []string{"cluster"}, kind: lost, text: "import.slurm.clusters"},
		{name: "qos", short: 'q', kind: lost, text: "import.slurm.qos"},
		{name: "priority", kind: lost, text: "import.slurm.priority"},
		{name: "nice", value: valueOptional, kind: lost, text: "import.slurm.priority"},
		{name: "hold", short: 'H', value: valueNone, kind: lost, text: "import.slurm.hold"},
		{name: "reservation", kind: lost, text: "import.slurm.reservation"},
		{name: "licenses", short: 'L', kind: lost, text: "import.slurm.licenses"},
		{name: "requeue", value: valueOptional, kind: needless, text: "import.slurm.requeue"},
		{name: "no-requeue", value: valueNone, kind: lost, text: "import.slurm.no_requeue"},
		{name: "no-kill", short: 'k', value: valueOptional, kind: lost, text: "import.slurm.no_kill"},
		{name: "reboot", value: valueNone, kind: lost, text: "import.slurm.reboot"},
		{name: "output", short: 'o', take: takeOutput},
		{name: "error", short: 'e', take: takeOutput},
		{name: "input", short: 'i'},
		{name: "open-mode", kind: needless, text: "import.slurm.open_mode"},
		{name: "mail-type", take: takeMail},
		{name: "mail-user", kind: lost, text: "import.slurm.mail_user"},
		{name: "export"},
		{name: "export-file", kind: lost, text: "import.slurm.export_file"},
		{name: "get-user-env", value: valueOptional},
		{name: "chdir", short: 'D', also: []string{"workdir"}, take: takeChdir},
		{name: "comment", take: takeComment},
		{name: "container-image"},
		{name: "container-mounts"},
		{name: "container-workdir"},
		{name: "container-name", kind: lost, text: "import.slurm.container_other"},
		{name: "container-save", kind: lost, text: "import.slurm.container_other"},
		{name: "container-mount-home", value: valueNone, kind: lost, text: "import.slurm.container_home"},
		{name: "no-container-mount-home", value: valueNone, kind: needless, text: none},
		{name: "container-remap-root", value: valueNone, kind: lost, text: "import.slurm.container_other"},
		{name: "no-container-remap-root", value: valueNone, kind: needless, text: none},
		{name: "container-entrypoint", value: valueNone, kind: lost, text: "import.slurm.container_other"},
		{name: "no-container-entrypoint", value: valueNone, kind: needless, text: none},
		{name: "container-writable", value: valueNone, kind: needless, text: none},
		{name: "container-readonly", value: valueNone, kind: lost, text: "import.slurm.container_other"},
		{name: "container-env", kind: lost, text: "import.slurm.container_other"},
		{name: "container", kind: lost, text: "import.slurm.container_other"},
		{name: "container-id", kind: lost, text: "import.slurm.container_other"},
		{name: "acctg-freq", kind: needless, text: none},
		{name: "bb", kind: lost, text: "import.slurm.burst"},
		{name: "bbf", kind: lost, text: "import.slurm.burst"},
		{name: "contiguous", value: valueNone, kind: needless, text: "import.slurm.topology"},
		{name: "switches", kind: needless, text: "import.slurm.topology"},
		{name: "segment", kind: needless, text: "import.slurm.topology"},
		{name: "core-spec", short: 'S', kind: needless, text: unlike},
		{name: "thread-spec", kind: needless, text: unlike},
		{name: "cores-per-socket", kind: needless, text: unlike},
		{name: "sockets-per-node", kind: needless, text: unlike},
		{name: "threads-per-core", kind: needless, text: unlike},
		{name: "ntasks-per-core", kind: needless, text: unlike},
		{name: "ntasks-per-socket", kind: needless, text: unlike},
		{name: "extra-node-info", short: 'B', kind: needless, text: unlike},
		{name: "hint", kind: needless, text: unlike},
		{name: "distribution", short: 'm', kind: needless, text: unlike},
		{name: "mem-bind", kind: needless, text: unlike},
		{name: "cpu-bind", kind: needless, text: unlike},
		{name: "gpu-bind", kind: needless, text: unlike},
		{name: "tres-bind", kind: needless, text: unlike},
		{name: "gres-flags", kind: needless, text: unlike},
		{name: "cpu-freq", kind: lost, text: "import.slurm.frequency"},
		{name: "gpu-freq", kind: lost, text: "import.slurm.frequency"},
		{name: "power", kind: lost, text: "import.slurm.frequency"},
		{name: "tres-per-task", kind: lost, text: "import.slurm.tres"},
		{name: "overcommit", short: 'O', value: valueNone, kind: lost, text: "import.slurm.overcommit"},
		{name: "oversubscribe", short: 's', value: valueOptional, also: []string{"share"}, kind: needless, text: "import.slurm.oversubscribe"},
		{name: "spread-job", value: valueNone, take: takeSpread},
		{name: "use-min-nodes", value: valueNone, kind: needless, text: planning},
		{name: "delay-boot", kind: needless, text: planning},
		{name: "wait-all-nodes", kind: needless, text: "import.slurm.gang"},
		{name: "resv-ports", value: valueOptional, kind: needless, text: none},
		{name: "network", kind: lost, text: "import.slurm.network"},
		{name: "profile", kind: needless, text: "import.slurm.profile"},
		{name: "propagate", value: valueOptional, kind: lost, text: "import.slurm.propagate"},
		{name: "mcs-label", kind: lost, text: "import.slurm.site"},
		{name: "extra", kind: lost, text: "import.slurm.site"},
		{name: "wckey", kind: lost, text: "import.slurm.wckey"},
		{name: "uid", kind: lost, text: "import.slurm.uid"},
		{name: "gid", kind: lost, text: "import.slurm.uid"},
		{name: "wait", short: 'W', value: valueNone, kind: lost, text: "import.slurm.wait"},
		{name: "parsable", value: valueOptional, kind: needless, text: "import.slurm.parsable"},
		{name: "test-only", value: valueNone, kind: lost, text: "import.slurm.test_only"},
		{name: "wrap", kind: lost, text: "import.slurm.wrap"},
		{name: "batch", kind: lost, text: "import.slurm.site"},
		{name: "ignore-pbs", value: valueNone, kind: needless, text: none},
		{name: "quiet", short: 'Q', value: valueNone, kind: needless, text: none},
		{name: "verbose", short: 'v', value: valueNone, kind: needless, text: none},
		{name: "help", short: 'h', value: valueNone, kind: needless, text: none},
		{name: "usage", value: valueNone, kind: needless, text: none},
		{name: "version", short: 'V', value: valueNone, kind: needless, text: none},
	}
})
