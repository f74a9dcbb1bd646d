package structs

import "strings"

// Difference is one value in which two jobs, or what two of their ranks found,
// differ.
type Difference struct {
	Path   string `json:"path"`   // in the words of the job file, as in Problem
	Before string `json:"before"` // as it would be written there; "": the job says nothing
	After  string `json:"after"`
}

// Kinship is how near two jobs are, a larger number nearer.
type Kinship int

// The degrees of kinship.
const (
	KinNone     Kinship = iota
	KinNumbered         // one user's jobs in one project, whose names differ in the number at their end
	KinSame             // of one name in one project, or one goes on from a checkpoint of the other
)

// KinshipOf returns how near two jobs are. Pure.
func KinshipOf(a, b *Job) Kinship {
	resumes := func(from, to *Job) bool { return from.Resume != nil && from.Resume.JobID == to.ID }
	switch {
	case a.ID == b.ID || a.Project != b.Project:
		return KinNone
	case a.Name == b.Name || resumes(a, b) || resumes(b, a):
		return KinSame
	case a.User == b.User && NameStem(a.Name) == NameStem(b.Name):
		return KinNumbered
	}
	return KinNone
}

// suffixLength is that of what `job run -name-suffix` puts behind a name.
const suffixLength = 6

// NameStem is a name without the number at its end, or without the suffix that
// makes names differ: resnet-ab-3 and resnet-ab-12 have one stem. Pure.
func NameStem(name string) string {
	at := strings.LastIndexByte(name, '-')
	if last := name[at+1:]; at > 0 && strings.ContainsAny(last, "0123456789") {
		digits := strings.Trim(last, "0123456789") == ""
		suffix := len(last) == suffixLength && strings.Trim(last, "0123456789abcdefghijklmnopqrstuv") == ""
		if digits || suffix {
			return name[:at]
		}
	}
	if stem := strings.TrimRight(name, "0123456789"); stem != "" {
		return stem
	}
	return name
}
