package jobspec

import "nomadlike/nomadlike/structs"

// treeShown is how much of a digest people are shown: "sha256:" and 12 digits.
const treeShown = len("sha256:") + 12

// directoryShown is the code of a job as people compare it: by what it is, wherever it
// came from.
func directoryShown(w *structs.Workdir) string {
	switch {
	case w == nil:
		return ""
	case len(w.Tree) > treeShown:
		return w.Tree[:treeShown]
	}
	return w.Source
}

// directory is the code of a job. A file names the directory, or the digest of a tree
// that was sent before; of a job that has its code the digest is written, so that the
// file runs the same bytes wherever it lies.
func directory(to **structs.Workdir) value {
	return value{
		kind: kindText, to: []any{to},
		read: func(r *reader, name string) {
			if _, said := r.syntax.Body.Attributes[name]; !said {
				return
			}
			read := new(structs.Workdir)
			const unset = "\x00"
			read.Source = unset
			r.text(name, &read.Source)
			if read.Source == unset { // null, or wrong
				return
			}
			if structs.IsTreeDigest(read.Source) {
				read.Tree = read.Source
			}
			*to = read
		},
		write: func(w writer, name string) {
			switch {
			case *to == nil, fromRepository(*to): // the block of its name says it
			case (*to).Tree != "":
				w.text(name, (*to).Tree)
			default:
				w.text(name, (*to).Source)
			}
		},
	}
}

// fromRepository reports whether a job takes its code from a repository, and has not got
// it yet. One that has is written with the digest, as all are.
func fromRepository(w *structs.Workdir) bool { return w != nil && w.Repo != nil && w.Tree == "" }

// walkRepository goes over the block of the argument's name.
func walkRepository(v visitor, job *structs.Job) {
	count := 0
	if fromRepository(job.Workdir) {
		count = 1
	}
	v.block(block{name: "workdir", count: count, walk: func(v visitor, _ int) {
		if job.Workdir == nil {
			job.Workdir = new(structs.Workdir)
		}
		if job.Workdir.Repo == nil {
			job.Workdir.Repo = new(structs.WorkdirRepo)
		}
		v.argument("git", text(&job.Workdir.Source))
		v.argument("ref", text(&job.Workdir.Repo.Ref))
		v.argument("subdir", text(&job.Workdir.Repo.Subdir))
	}})
}
