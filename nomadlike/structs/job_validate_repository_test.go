package structs

import (
	"strings"
	"testing"
)

// TestAddressesOfRepositories: what git would take for an option, for a program or for a
// file of the machine is none, and neither is what holds a password.
func TestAddressesOfRepositories(t *testing.T) {
	const wrong = "job.workdir_git"
	for address, want := range map[string]string{
		"https://git.example/team/train.git":                  "",
		"https://ann@git.example/team/train":                  "",
		"http://git.example:8080/train.git":                   "",
		"ssh://git@git.example:2222/train.git":                "",
		"ssh://git@[2001:db8::1]:22/train.git":                "",
		"git://git.example/train.git":                         "",
		"git@git.example:team/train.git":                      "",
		"git.example:train.git":                               "",
		"https://git.例子/训练.git":                               "",
		"https://ann:secret@git.example/a.git":                "job.workdir_git_password",
		"ssh://ann:secret@git.example/a.git":                  "job.workdir_git_password",
		"":                                                    wrong,
		".":                                                   wrong,
		"/srv/train.git":                                      wrong,
		"file:///srv/train.git":                               wrong,
		"ext::sh -c id":                                       wrong,
		"ext::sh":                                             wrong,
		"fd::17/foo":                                          wrong,
		"--upload-pack=id":                                    wrong,
		"-oProxyCommand=id:x":                                 wrong,
		"ssh://-oProxyCommand=id/x":                           wrong,
		"ssh://%2DoProxyCommand=id/x":                         wrong,
		"ssh://-l@git.example/x":                              wrong,
		"-l@git.example:x":                                    wrong,
		"git.example:-x":                                      wrong,
		"git://git.example/--upload-pack=id":                  "wrong path",
		"ftp://git.example/a.git":                             wrong,
		"HTTPS://git.example/a.git":                           wrong,
		"https://git.example":                                 wrong,
		"https:///a.git":                                      wrong,
		"https://git.example/a.git?token=secret":              wrong,
		"https://git.example/a.git#main":                      wrong,
		"https://git.example/a b":                             wrong,
		"https://git.example/a\nb":                            wrong,
		"https://git.example/\x1b[31m":                        wrong,
		"https://git.example/\xff":                            wrong,
		"https://git.example/" + strings.Repeat("a", PathMax): wrong,
	} {
		if want == "wrong path" {
			want = wrong
		}
		if got := repositoryProblem(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestRefsAndDirectoriesOfRepositories(t *testing.T) {
	for _, ref := range []string{"", "main", "team/exp-1", "v1.2", "refs/heads/main", "分支", strings.Repeat("a", 40), "HEAD"} {
		if !isRef(ref) {
			t.Errorf("%q is no ref", ref)
		}
	}
	for _, ref := range []string{"-x", "--upload-pack=id", "+main", "a b", "a..b", "a~1", "a^", "a:b", "a*", "a?", "a[", "a\\b", "@", "a@{1}", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.", "a\nb", "\xff", strings.Repeat("a", 256)} {
		if isRef(ref) {
			t.Errorf("%q is a ref", ref)
		}
	}
	for subdir, want := range map[string]string{"": "", ".": "", "train": "train", "train/": "train", "./train": "train", "a/../b": "b", "a b": "a b"} {
		if got := (&WorkdirRepo{Subdir: subdir}).DirOf(); !isSubdir(subdir) || got != want {
			t.Errorf("%q is the directory %q, want %q", subdir, got, want)
		}
	}
	for _, subdir := range []string{"/train", "..", "../train", "a/../..", "a\x00b", "a\nb", "\xff", strings.Repeat("a", PathMax+1)} {
		if isSubdir(subdir) {
			t.Errorf("%q is a directory of it", subdir)
		}
	}
}
