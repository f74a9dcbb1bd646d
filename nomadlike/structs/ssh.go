package structs

import (
	"slices"
	"strconv"
	"strings"
)

// SSHDomain ends the names by which ssh knows tasks.
const SSHDomain = ".nomadlike"

// SSHTarget is what a host name of ssh says: train7.nomadlike is rank 0 of the job,
// rank2.train7.nomadlike another rank, and sub1 and attempt3 stand before the job
// likewise.
type SSHTarget struct {
	Job     string // name or id
	Subjob  int
	Rank    int
	Attempt uint64 // 0: the newest
}

// Host spells the target as a host name.
func (t SSHTarget) Host() string {
	return sshHost(t.Job, t.Rank, t.Rank != 0, t.Subjob, t.Subjob != 0, t.Attempt, t.Attempt != 0)
}

// sshHost spells a host name with the labels that are wanted.
func sshHost(job string, rank int, withRank bool, subjob int, withSubjob bool, attempt uint64, withAttempt bool) string {
	var labels []string
	if withRank {
		labels = append(labels, sshLabels[0]+strconv.Itoa(rank))
	}
	if withSubjob {
		labels = append(labels, sshLabels[1]+strconv.Itoa(subjob))
	}
	if withAttempt {
		labels = append(labels, sshLabels[2]+strconv.FormatUint(attempt, 10))
	}
	return strings.Join(append(labels, job), ".") + SSHDomain
}

// sshLabels are the words before numbers, in their order.
var sshLabels = [...]string{"rank", "sub", "attempt"}

// ParseSSHHost reads a host name of ssh. The error says what a name looks like.
func ParseSSHHost(host string) (SSHTarget, error) {
	var t SSHTarget
	bad := NewError(CodeInvalid, "ssh.host", "host", strconv.QuoteToASCII(host[:min(len(host), 80)]))
	name, ok := strings.CutSuffix(strings.ToLower(host), SSHDomain)
	if !ok || len(host) > 253 {
		return t, bad
	}
	labels := strings.Split(name, ".")
	t.Job = labels[len(labels)-1]
	if !plainLabel(t.Job) {
		return SSHTarget{}, bad
	}
	var numbers [len(sshLabels)]uint64
	next := 0 // label that may come
	for _, label := range labels[:len(labels)-1] {
		i := strings.IndexFunc(label, func(r rune) bool { return r >= '0' && r <= '9' })
		if i < 0 {
			return SSHTarget{}, bad
		}
		which := slices.Index(sshLabels[next:], label[:i])
		number, err := strconv.ParseUint(label[i:], 10, 31)
		if which < 0 || err != nil || strconv.FormatUint(number, 10) != label[i:] || number == 0 && next+which == 2 {
			return SSHTarget{}, bad
		}
		next += which
		numbers[next] = number
		next++
	}
	t.Rank, t.Subjob, t.Attempt = int(numbers[0]), int(numbers[1]), numbers[2]
	return t, nil
}

// plainLabel reports whether a word can be a job's name or id.
func plainLabel(word string) bool {
	for _, c := range word {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return word != "" && len(word) <= 63
}

// SSHHosts lists the names by which an allocation may be called, all of which its
// host certificate is good for.
func (a *Allocation) SSHHosts() []string {
	var hosts []string
	for _, job := range []string{a.JobName, a.JobID} {
		for which := range 8 { // with and without each label; without is 0, or the newest
			rank, subjob := which&1 != 0, which&2 != 0
			if job != "" && (rank || a.Rank == 0) && (subjob || a.Subjob == 0) {
				hosts = append(hosts, sshHost(job, a.Rank, rank, a.Subjob, subjob, a.Attempt, which&4 != 0))
			}
		}
	}
	return hosts
}
