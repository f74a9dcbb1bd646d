package structs

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// repository checks where the code of a job is to be taken from. Git is started with
// these words, on the machine of whoever submits, who may have the file from others.
func (v *validator) repository(source string, repo *WorkdirRepo) {
	if id := repositoryProblem(source); id != "" {
		v.add("workdir.git", id, id+".hint")
	}
	if !isRef(repo.Ref) {
		v.add("workdir.ref", "job.workdir_ref", "job.workdir_ref.hint")
	}
	if !isSubdir(repo.Subdir) {
		v.add("workdir.subdir", "job.workdir_subdir", "job.workdir_subdir.hint")
	}
}

var (
	repositoryHost = regexp.MustCompile(`^[\pL\pN\[][\pL\pN.:_\]-]*$`)
	repositoryUser = regexp.MustCompile(`^[\pL\pN_][^@:/]*$`)
)

// repositoryProblem is the id of what is wrong with the address of a repository, ""
// where nothing is: git's helpers ("ext::") and files of the machine are none, and
// nothing of it can be taken for an option of git's, or of ssh's.
func repositoryProblem(address string) string {
	const wrong = "job.workdir_git"
	if address == "" || len(address) > PathMax || !utf8.ValidString(address) || strings.ContainsFunc(address, func(r rune) bool { return !unicode.IsGraphic(r) || r == ' ' }) {
		return wrong
	}
	scheme, _, whole := strings.Cut(address, "://")
	if !whole { // [USER@]HOST:PATH, as ssh is written for short
		server, where, found := strings.Cut(address, ":")
		user, host, named := strings.Cut(server, "@")
		if !named {
			user, host = "git", server
		}
		if !found || where == "" || strings.ContainsAny(where[:1], ":-") || !repositoryUser.MatchString(user) || !repositoryHost.MatchString(host) {
			return wrong
		}
		return ""
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return wrong
	}
	if _, secret := parsed.User.Password(); secret {
		return "job.workdir_git_password"
	}
	switch scheme {
	case "http", "https", "ssh", "git":
	default:
		return wrong
	}
	if !repositoryHost.MatchString(parsed.Host) || strings.Trim(parsed.Path, "/") == "" || strings.HasPrefix(parsed.Path, "/-") ||
		parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil && !repositoryUser.MatchString(parsed.User.Username()) {
		return wrong
	}
	return ""
}

// isRef reports whether git takes a text as the name of a branch, of a tag, or as a
// commit; "" is none.
func isRef(ref string) bool {
	if ref == "" {
		return true
	}
	if len(ref) > WorkdirBranchMax || strings.ContainsAny(ref, " ~^:?*[\\\x7f") || strings.ContainsFunc(ref, unicode.IsControl) || !utf8.ValidString(ref) ||
		strings.Contains(ref, "..") || strings.Contains(ref, "@{") || ref == "@" || strings.ContainsAny(ref[:1], "-+") || strings.HasSuffix(ref, ".") {
		return false
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// isSubdir reports whether a text names a directory of a repository.
func isSubdir(subdir string) bool {
	if len(subdir) > PathMax || !utf8.ValidString(subdir) || strings.ContainsFunc(subdir, unicode.IsControl) || path.IsAbs(subdir) {
		return false
	}
	clean := path.Clean(subdir)
	return clean != ".." && !strings.HasPrefix(clean, "../")
}
