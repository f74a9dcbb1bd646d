package importer

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

func takeName(s *slurm, given directive) {
	if s.opts.Name == "" {
		s.name(given.value, given.origin)
	}
}

func takeAccount(s *slurm, given directive) {
	s.project(given.value, given.origin)
}

func takePartition(s *slurm, given directive) {
	if _, named := s.given["nodelist"]; named {
		s.say(lost, given.origin, "import.slurm.partition_nodes")
		return
	}
	first, others, several := strings.Cut(given.value, ",")
	pool := nameOf(first)
	s.job.inner("placement", "").set("pool", literal(pool), given.origin)
	s.say(check, given.origin, "import.pool", "name", pool)
	if several {
		s.say(lost, given.origin, "import.slurm.partitions", "others", others)
	}
}

func takeNodelist(s *slurm, given directive) {
	hosts, ok := hostlist(given.value)
	nodes := s.ask.nodes
	switch {
	case !ok:
		s.bad(given)
	case len(hosts) < nodes:
		s.say(lost, given.origin, "import.slurm.nodelist_few", "named", len(hosts), "nodes", nodes)
	default:
		slices.Sort(hosts)
		s.job.inner("placement", "").set("nodes", literals(slices.Compact(hosts)), given.origin)
		s.say(check, given.origin, "import.slurm.nodelist")
	}
}

// bad says that a value cannot be read.
func (s *slurm) bad(given directive) {
	s.say(lost, given.origin, "import.slurm.bad_value", "value", given.value)
}

// cardModels are what constraints name that mean a model of cards.
var cardModels = []string{"a100", "h100", "h200", "b200", "v100", "a800", "h800", "a40", "l40", "l40s", "a10", "t4", "p100", "a6000", "a30", "mi250", "mi300", "mi210"}

func takeConstraint(s *slurm, given directive) {
	if model := strings.ToLower(given.value); slices.Contains(cardModels, model) && s.ask.cards.count > 0 && s.ask.cards.model == "" {
		s.device().set("model", literal(strings.ToUpper(model)), given.origin)
		s.say(changed, given.origin, "import.slurm.constraint_model")
		return
	}
	s.say(lost, given.origin, "import.slurm.constraint")
}

func takeTmp(s *slurm, given directive) {
	bytes, ok := slurmSize(given.value)
	if !ok || bytes < structs.DiskMin {
		s.bad(given)
		return
	}
	s.job.inner("resources", "").set("disk", size(bytes), given.origin)
	s.say(changed, given.origin, "import.slurm.tmp")
}

func takeSignal(s *slurm, given directive) {
	name, before, shell, ok := slurmSignal(given.value)
	if !ok {
		s.say(lost, given.origin, "import.slurm.signal_unknown")
		return
	}
	if s.ask.limit == 0 {
		s.say(lost, given.origin, "import.slurm.signal_unlimited")
		return
	}
	limit := s.job.inner("time_limit", "")
	limit.set("limit", s.ask.limitText(), s.ask.limitFrom)
	limit.set("warn", literal(structs.FormatDuration(structs.Duration(before))), given.origin)
	limit.set("signal", literal(name), given.origin)
	if shell {
		s.say(check, given.origin, "import.slurm.signal_shell")
	} else {
		s.say(changed, given.origin, "import.slurm.signal")
	}
}

func takeBegin(s *slurm, given directive)    { s.instant(given, "begin") }
func takeDeadline(s *slurm, given directive) { s.instant(given, "deadline") }

// instant takes a time, where it has a form that job files know.
func (s *slurm) instant(given directive, name string) {
	text := given.value
	words := map[string]string{"midnight": "00:00", "noon": "12:00", "elevenses": "11:00", "fika": "15:00", "teatime": "16:00"}
	if clock, ok := words[strings.ToLower(text)]; ok {
		text = clock
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(text), "now+"); ok {
		text = "+" + rest + "s"
		for _, unit := range [][2]string{{"seconds", "s"}, {"second", "s"}, {"minutes", "m"}, {"minute", "m"}, {"hours", "h"}, {"hour", "h"}, {"days", "d"}, {"day", "d"}, {"weeks", "w"}, {"week", "w"}} {
			if count, found := strings.CutSuffix(rest, unit[0]); found {
				text = "+" + count + unit[1]
				break
			}
		}
	}
	if _, err := structs.ParseInstant(text); err != nil {
		s.say(lost, given.origin, "import.slurm.instant", "name", name)
		return
	}
	s.job.set(name, literal(text), given.origin)
}

func takeArray(s *slurm, given directive) {
	array, err := structs.ParseArray(given.value)
	if err != nil {
		s.bad(given)
		return
	}
	s.ask.array = &array
	s.job.set("type", literal("batch"), given.origin)
	s.job.inner("batch", "").set("array", literal(given.value), given.origin)
}

// dependencies are the kinds that have a word here.
var dependencies = map[string]string{"afterok": "", "afterany": "ended", "afternotok": "failed", "after": "started"}

func takeDependency(s *slurm, given directive) {
	if strings.Contains(given.value, "?") {
		s.say(lost, given.origin, "import.slurm.depend_any")
		return
	}
	for _, one := range strings.Split(given.value, ",") {
		sort, jobs, named := strings.Cut(one, ":")
		if !named {
			sort, jobs = "afterany", one
		}
		when, known := dependencies[sort]
		switch {
		case one == "singleton":
			s.say(lost, given.origin, "import.slurm.depend_singleton")
			continue
		case !known:
			s.say(lost, given.origin, "import.slurm.depend_kind", "kind", sort)
			continue
		}
		for _, job := range strings.Split(jobs, ":") {
			job, delay, delayed := strings.Cut(job, "+")
			if delayed {
				s.say(lost, given.origin, "import.slurm.depend_delay", "minutes", delay)
			}
			s.depend(given, job, when)
		}
	}
}

// depend waits for one job: a number of Slurm is that of another cluster, unless
// whoever imports says what it is called here.
func (s *slurm) depend(given directive, job, when string) {
	name, known := s.opts.Jobs[job]
	if !known {
		name = job
		if _, err := strconv.Atoi(strings.SplitN(job, "_", 2)[0]); err == nil || strings.Trim(job, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || job == "" {
			word := when
			if word == "" {
				word = structs.UntilSucceeded
			}
			s.say(lost, given.origin, "import.slurm.depend_number", "job", job, "after", fmt.Sprintf("after \"NAME\" { when = %q }", word))
			return
		}
	}
	after := &block{name: "after", label: name, from: given.origin}
	if when != "" {
		after.set("when", literal(when))
	}
	s.job.blocks = append(s.job.blocks, after)
}

// takeOutput says where the log is, and how the file could be had too.
func takeOutput(s *slurm, given directive) {
	file, unknown := slurmPattern(given.value, s.ask.array != nil || s.given["array"].name != "")
	s.say(changed, given.origin, "import.slurm.output", "name", s.job.label, "file", file)
	if unknown != "" {
		s.say(lost, given.origin, "import.slurm.pattern", "pattern", unknown)
	}
}

// slurmPattern is the name of an output file as a shell of a task would say it;
// unknown is what has no word here.
func slurmPattern(pattern string, array bool) (file, unknown string) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern)-1 && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		switch letter := pattern[end]; letter {
		case '%':
			b.WriteByte('%')
		case 'j', 'A':
			b.WriteString("${NOMADLIKE_JOB_NUMBER}")
		case 'a':
			if array {
				b.WriteString("${SLURM_ARRAY_TASK_ID}")
			} else {
				b.WriteByte('0')
			}
		case 'x':
			b.WriteString("${NOMADLIKE_JOB_NAME}")
		case 'n', 't':
			b.WriteString("${NOMADLIKE_RANK}")
		case 'N':
			b.WriteString("${NOMADLIKE_NODE_NAME}")
		case 'r':
			b.WriteString("${NOMADLIKE_RESTARTS}")
		case 'u':
			b.WriteString("${USER}")
		default:
			unknown += pattern[i : end+1]
			b.WriteString(pattern[i : end+1])
		}
		i = end
	}
	return b.String(), unknown
}

// mails are the kinds of mail, as kinds of what people are told here.
var mails = map[string][]string{
	"BEGIN": {structs.NotifyStarted}, "END": {structs.NotifySucceeded, structs.NotifyFailed, structs.NotifyExpired}, "FAIL": {structs.NotifyFailed, structs.NotifyExpired},
	"REQUEUE": {structs.NotifyResumed, structs.NotifyPreempted}, "TIME_LIMIT": {structs.NotifyExpired},
	"TIME_LIMIT_90": {structs.NotifyExpiring}, "TIME_LIMIT_80": {structs.NotifyExpiring}, "TIME_LIMIT_50": {structs.NotifyExpiring},
	"ALL": {structs.NotifyStarted, structs.NotifySucceeded, structs.NotifyFailed, structs.NotifyExpired, structs.NotifyResumed, structs.NotifyPreempted},
}

func takeMail(s *slurm, given directive) {
	var on []string
	for _, word := range strings.Split(strings.ToUpper(given.value), ",") {
		switch told, known := mails[word]; {
		case known:
			on = append(on, told...)
		case word == "NONE":
		default:
			s.say(lost, given.origin, "import.slurm.mail_kind", "kind", word)
		}
	}
	if len(on) == 0 {
		s.say(needless, given.origin, "import.slurm.mail_none")
		return
	}
	slices.Sort(on)
	notify := s.job.inner("notify", "")
	notify.set("on", literals(slices.Compact(on)), given.origin)
	notify.set("to", literal(structs.ChannelBell))
	s.say(changed, given.origin, "import.slurm.mail")
}

func takeChdir(s *slurm, given directive) {
	if !path.IsAbs(given.value) || strings.ContainsAny(given.value, "%$") {
		s.say(lost, given.origin, "import.slurm.chdir")
		return
	}
	s.job.inner("task", "").set("dir", literal(path.Clean(given.value)), given.origin)
	s.ask.dir = path.Clean(given.value)
	s.say(check, given.origin, "import.slurm.dir")
}

func takeComment(s *slurm, given directive) {
	s.job.set("description", literal(given.value), given.origin)
}

func takeSpread(s *slurm, given directive) {
	s.job.inner("placement", "").set("spread_or_pack", literal(structs.Spread), given.origin)
}

// span is a time in HCL.
func span(d time.Duration) string { return literal(structs.FormatDuration(structs.Duration(d))) }
