package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var commit = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

const changes = "# Changelog\n\n## Unreleased\n\n### Features\n- It runs.\n\n## 0.1.0 (2026-01-02)\n\n- It starts.\n"

func TestChangelog(t *testing.T) {
	changed, section, err := releaseChangelog(changes, "0.2.0", commit)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-03-04)\n\n### Features\n- It runs.\n\n## 0.1.0 (2026-01-02)\n\n- It starts.\n"; changed != want {
		t.Errorf("the changelog is\n%s", changed)
	}
	if section != "### Features\n- It runs.\n" {
		t.Errorf("the section is %q", section)
	}
	again, same, err := releaseChangelog(changed, "0.2.0", commit.AddDate(0, 0, 1))
	if err != nil || again != changed || same != section {
		t.Errorf("a second run changes it: %v\n%s", err, again)
	}
	if _, old, err := releaseChangelog(changed, "0.1.0", commit); err != nil || old != "- It starts.\n" {
		t.Errorf("the oldest section is %q: %v", old, err)
	}
	if _, _, err := releaseChangelog(changed, "0.3.0", commit); err == nil {
		t.Error("a version without entries is released")
	}
}

// small is a release in small: the program is a script.
func small(t *testing.T) []entry {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "nomadlike")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho nomadlike 0.2.0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	list := []entry{
		{name: "nomadlike", from: program, mode: 0o755},
		{name: "README.md", text: []byte("read me\n"), mode: 0o644},
		{name: "install.sh", from: "../install.sh", mode: 0o755},
		{name: unitName, from: "../nomadlike.service", mode: 0o644},
	}
	inside, err := sums(list)
	if err != nil {
		t.Fatal(err)
	}
	return append(list, entry{name: "SHA256SUMS", text: inside, mode: 0o644})
}

func archived(t *testing.T) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := writeArchive(&to, "nomadlike-0.2.0", commit, small(t)); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func packaged(t *testing.T, kind string) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := writePackage(&to, kind, "0.2.0", "amd64", commit, small(t), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// What is handed out hangs on nothing but its contents and the time of the commit.
func TestSameBytes(t *testing.T) {
	if !bytes.Equal(archived(t), archived(t)) {
		t.Error("two archives differ")
	}
	for _, kind := range []string{"deb", "rpm"} {
		if !bytes.Equal(packaged(t, kind), packaged(t, kind)) {
			t.Errorf("two packages of kind %s differ", kind)
		}
	}
}

// unpack returns the directory that an archive holds.
func unpack(t *testing.T) string {
	t.Helper()
	pressed, err := gzip.NewReader(bytes.NewReader(archived(t)))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for archive := tar.NewReader(pressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(root, "nomadlike-0.2.0")
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(commit) || header.Uname != "root" {
			t.Errorf("%s is of %s, %s", header.Name, header.Uname, header.ModTime)
		}
		path := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, text, os.FileMode(header.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func install(t *testing.T, dir, root string, args ...string) (string, error) {
	t.Helper()
	script := exec.Command(filepath.Join(dir, "install.sh"), args...)
	script.Dir, script.Env = "/", append(os.Environ(), "DESTDIR="+root)
	out, err := script.CombinedOutput()
	return string(out), err
}

func TestInstall(t *testing.T) {
	dir, root := unpack(t), t.TempDir()
	for range 2 { // an update does the same
		if out, err := install(t, dir, root, "--prefix", "/opt/nl"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if out, err := exec.Command(filepath.Join(root, "opt/nl/bin/nomadlike")).Output(); err != nil || string(out) != "nomadlike 0.2.0\n" {
		t.Errorf("what is installed says %q: %v", out, err)
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system", unitName))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/opt/nl/bin/nomadlike agent -config /etc/nomadlike.d\n") {
		t.Errorf("the unit is %v\n%s", err, unit)
	}
	if info, err := os.Stat(filepath.Join(root, "etc/nomadlike.d")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory of the configuration: %v, %v", info, err)
	}
	left, err := filepath.Glob(filepath.Join(root, "*/*/*/.*new"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}

	if err := os.WriteFile(filepath.Join(dir, "nomadlike"), []byte("#!/bin/sh\necho something else\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := install(t, dir, t.TempDir()); err == nil || !strings.Contains(out, "unpack the archive again") {
		t.Errorf("another program is installed: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"--prefix"}, {"--prefix", "here"}, {"now"}} {
		if out, err := install(t, dir, t.TempDir(), args...); err == nil {
			t.Errorf("%v is taken:\n%s", args, out)
		}
	}
}

// TestPackages asks the tools of the distributions what they would install.
func TestPackages(t *testing.T) {
	dir := t.TempDir()
	for _, each := range []struct {
		kind  string
		list  []string
		lines []string
	}{
		{"deb", []string{"dpkg-deb", "-c"}, []string{
			`drwxr-x--- root/root .* \./etc/nomadlike\.d/`, `-rwxr-xr-x root/root .* 2026-03-04 .* \./usr/bin/nomadlike`, `-rw-r--r-- root/root .* \./usr/lib/systemd/system/nomadlike\.service`,
			`-rw-r--r-- root/root .* \./usr/share/doc/nomadlike/README\.md`,
		}},
		{"deb", []string{"dpkg-deb", "-f"}, []string{`Package: nomadlike`, `Version: 0\.2\.0-1`, `Architecture: amd64`, `Description: AI training cluster in one binary`}},
		{"rpm", []string{"rpm", "-qplv"}, []string{
			`drwxr-x--- .* root +root .* /etc/nomadlike\.d`, `-rwxr-xr-x .* root +root .* /usr/bin/nomadlike`, `-rw-r--r-- .* root +root .* /usr/lib/systemd/system/nomadlike\.service`,
		}},
		{"rpm", []string{"rpm", "-qpi"}, []string{`Name +: nomadlike`, `Version +: 0\.2\.0`, `Release +: 1`, `Architecture: x86_64`, `License +: MPL-2\.0`}},
		{"rpm", []string{"rpm", "-qp", "--scripts"}, []string{`postinstall scriptlet`, `preuninstall scriptlet`}},
	} {
		path := filepath.Join(dir, "nomadlike."+each.kind)
		if err := os.WriteFile(path, packaged(t, each.kind), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath(each.list[0]); err != nil {
			t.Errorf("%v: install the Debian package %s", err, each.list[0])
			continue
		}
		command := exec.Command(each.list[0], append(each.list[1:], path)...)
		command.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", "HOME="+dir)
		out, err := command.Output()
		if err != nil {
			t.Errorf("%v: %v", each.list, err)
		}
		for _, line := range each.lines {
			if !regexp.MustCompile(`(?m)^` + line).Match(out) {
				t.Errorf("%v does not say %q:\n%s", each.list, line, out)
			}
		}
	}
	unpacked := filepath.Join(dir, "unpacked")
	if out, err := exec.Command("dpkg-deb", "-x", filepath.Join(dir, "nomadlike.deb"), unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	unit, err := os.ReadFile(filepath.Join(unpacked, "usr/lib/systemd/system", unitName))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/nomadlike ") {
		t.Errorf("the unit is %v\n%s", err, unit)
	}
}

func TestParts(t *testing.T) {
	source := t.TempDir()
	for path, text := range map[string]string{
		"one/LICENSE": "licence one", "one/NOTICE.txt": "notice one", "two/COPYING": "licence two", "none/README": "",
		"pages/a/package.json": `{"license": "MIT", "author": "somebody"}`, "pages/a/node_modules/@b/c/LICENSE.md": "licence c", "pages/tool/LICENSE": "of a tool",
	} {
		if err := os.MkdirAll(filepath.Join(source, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dirs := map[string]string{"example.com/one": filepath.Join(source, "one"), "example.com/two": filepath.Join(source, "two"), "example.com/none": filepath.Join(source, "none")}
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/two", Version: "v2.0.0"},
		{Path: "example.com/gone", Version: "v9.0.0", Replace: &debug.Module{Path: "example.com/one", Version: "v1.0.0"}},
	}}
	parts, err := goParts(info, dirs)
	if err != nil {
		t.Fatal(err)
	}
	lock := `{"packages": {"": {"version": "0"}, "node_modules/a": {"version": "1.0.0"}, "node_modules/a/node_modules/@b/c": {"version": "3.0.0"},
		"node_modules/tool": {"version": "5.0.0", "dev": true}}}`
	pages, err := pageParts([]byte(lock), filepath.Join(source, "pages"))
	if err != nil {
		t.Fatal(err)
	}
	parts = byURL(append(append(parts, pages...), parts...))
	var urls []string
	for _, p := range parts {
		urls = append(urls, p.url)
	}
	want := "pkg:golang/example.com/one@v1.0.0 pkg:golang/example.com/two@v2.0.0 pkg:npm/%40b/c@3.0.0 pkg:npm/a@1.0.0"
	if got := strings.Join(urls, " "); got != want {
		t.Errorf("the parts are %s, want %s", got, want)
	}
	text := string(licenceText(parts))
	for _, each := range []string{"licence one", "notice one", "licence two", "licence c", "Licence: MIT"} {
		if !strings.Contains(text, each) {
			t.Errorf("the licences do not hold %q:\n%s", each, text)
		}
	}
	bill, err := billOfMaterials("0.2.0", "linux-amd64", commit, parts)
	if err != nil || !strings.Contains(string(bill), `"purl": "pkg:npm/%40b/c@3.0.0"`) || !strings.Contains(string(bill), `"timestamp": "2026-03-04T10:00:00Z"`) {
		t.Errorf("the bill is %v\n%s", err, bill)
	}
	if _, err := goParts(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/none", Version: "v1.0.0"}}}, dirs); !errors.Is(err, errNoLicence) {
		t.Errorf("a library without a licence is handed out: %v", err)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	for _, version := range []string{"", "1", "v1.2.3", "1.2.3 ", "1.2.3;rm"} {
		if err := run(version, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "is not x.y.z") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
