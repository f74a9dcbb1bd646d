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
			case *to == nil:
			case (*to).Tree != "":
				w.text(name, (*to).Tree)
			default:
				w.text(name, (*to).Source)
			}
		},
	}
}
