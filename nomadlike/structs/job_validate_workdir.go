package structs

import "strings"

// workdir checks what a job says of its code. That a tree has been sent is asked for at
// admission: a job file does not name one.
func (v *validator) workdir(w *Workdir) {
	if w == nil {
		return
	}
	if w.Repo != nil {
		v.repository(w.Source, w.Repo)
	} else if w.Source == "" || len(w.Source) > PathMax || strings.ContainsRune(w.Source, 0) {
		v.add("workdir", "job.workdir", "job.workdir.hint", "max", PathMax)
	}
	spoilt := w.Tree != "" && !IsTreeDigest(w.Tree) || IsTreeDigest(w.Source) && w.Tree != "" && w.Tree != w.Source || w.Files < 0 || w.Bytes < 0
	if git := w.Git; git != nil {
		spoilt = spoilt || len(git.Commit) > 64 || strings.Trim(git.Commit, "0123456789abcdef") != "" || len(git.Branch) > WorkdirBranchMax
	}
	if spoilt {
		v.add("workdir", "job.workdir_record", "job.workdir_record.hint")
	}
}
