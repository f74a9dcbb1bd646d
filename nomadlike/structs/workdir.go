package structs

import (
	"path"
	"strings"
)

// Workdir is the code of a job: a directory of whoever submits it, or of a git repository, sent to the cluster
// before the job, in which its tasks start. Source is written by the user, the rest by
// the program that sent the directory.
type Workdir struct {
	Source string      `json:"source"`          // as written: a directory, the digest of a tree that was sent before, or with Repo the address of a repository
	Tree   string      `json:"tree,omitempty"`  // digest of what was sent: "sha256:" and 64 digits
	Files  int         `json:"files,omitempty"` // files and links of it
	Bytes  int64       `json:"bytes,omitempty"`
	Git    *WorkdirGit `json:"git,omitempty"` // nil: in no work tree of git
	// Repo says what of a git repository it is; nil of a directory.
	Repo *WorkdirRepo `json:"repo,omitempty" since:"38"`
}

// WorkdirGit is where git stood when the directory was sent.
type WorkdirGit struct {
	Commit string `json:"commit,omitempty"` // whole; "" before the first one
	Branch string `json:"branch,omitempty"` // "" of a detached head
	Dirty  bool   `json:"dirty,omitempty"`  // something differs from the commit
}

// WorkdirRepo says that the code of a job was taken from a git repository, whose address
// is Workdir.Source. The commit that was taken is Workdir.Git.
type WorkdirRepo struct {
	Ref    string `json:"ref,omitempty"`    // a branch, a tag, or a whole commit; "": what the server calls HEAD
	Subdir string `json:"subdir,omitempty"` // a directory of it; "": all of it
}

// DirOf is the directory of the repository, as git spells it: "" for all of it.
func (r *WorkdirRepo) DirOf() string {
	if clean := path.Clean(r.Subdir); clean != "." {
		return clean
	}
	return ""
}

// Bounds of what a job says of its code.
const (
	WorkdirBranchMax = 255 // bytes
	workdirTreePart  = "sha256:"
	workdirTreeSize  = len(workdirTreePart) + 64
)

// IsTreeDigest reports whether text is spelled as the digest of a tree is.
func IsTreeDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, workdirTreePart)
	return ok && len(text) == workdirTreeSize && strings.Trim(digits, "0123456789abcdef") == ""
}

// Tree is the digest of the code that travels with the job, "" for none.
func (j *Job) Tree() string {
	if j.Workdir == nil {
		return ""
	}
	return j.Workdir.Tree
}
