package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const unitName = "nomadlike.service"

// platform is what a program is built for.
type platform struct {
	system, arch string
	alone        bool   // the command line alone
	compiler     string // of C, for plugins of another processor than this machine's
}

func (p platform) String() string { return p.system + "-" + p.arch }

// platforms are all that a release has, this machine's own last: what is left in
// the repository runs here.
func platforms() []platform {
	all := []platform{
		{system: "darwin", arch: "amd64", alone: true},
		{system: "darwin", arch: "arm64", alone: true},
		{system: "linux", arch: "arm64", compiler: "aarch64-linux-gnu-gcc"},
		{system: "linux", arch: "amd64", compiler: "x86_64-linux-gnu-gcc"},
	}
	slices.SortStableFunc(all, func(a, b platform) int { return cmp.Compare(a.native(), b.native()) })
	return all
}

func (p platform) native() int {
	if p.system == runtime.GOOS && p.arch == runtime.GOARCH {
		return 1
	}
	return 0
}

// release is one run of this program.
type release struct {
	root    string // of the repository
	out     string
	scratch string
	version string
	at      time.Time // of the commit
	section string    // of the changelog
	pages   []part
	dirOf   map[string]string // where the source of a module lies
	written []entry
}

func main() {
	version := flag.String("version", "", "x.y.z")
	root := flag.String("root", ".", "the repository")
	out := flag.String("out", "", "where the release goes; dist in the repository unless told")
	flag.Parse()
	if err := run(*version, *root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, root, out string) error {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return fmt.Errorf("version %q is not x.y.z: make release VERSION=1.2.3", version)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	r := &release{root: root, out: out, version: version}
	if r.scratch, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	for _, step := range []func() error{r.readTime, r.writeChangelog, r.readParts, r.cleanOut} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, p := range platforms() {
		if err := r.build(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	text, err := sums(r.written)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"SHA256SUMS": text, "CHANGES.md": []byte(r.section)} {
		if err := os.WriteFile(filepath.Join(r.out, name), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%s holds nomadlike %s; sign SHA256SUMS, commit CHANGELOG.md, and tag the commit\n", r.out, version)
	return nil
}

// readTime takes the time of the commit for everything that has one.
func (r *release) readTime() error {
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		r.at = time.Unix(seconds, 0).UTC()
		return nil
	}
	text, err := r.output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	r.at = time.Unix(seconds, 0).UTC()
	return err
}

func (r *release) writeChangelog() error {
	path := filepath.Join(r.root, "CHANGELOG.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, section, err := releaseChangelog(string(text), r.version, r.at)
	if err != nil {
		return err
	}
	r.section = section
	return os.WriteFile(path, []byte(changed), 0o644)
}

// readParts finds the sources of what programs and pages are made of.
func (r *release) readParts() error {
	if _, err := os.Stat(filepath.Join(r.root, "ui", "dist", "app", "index.html")); err != nil {
		return errors.New("the pages are not built: make ui")
	}
	lock, err := os.ReadFile(filepath.Join(r.root, "ui", "package-lock.json"))
	if err != nil {
		return err
	}
	if r.pages, err = pageParts(lock, filepath.Join(r.root, "ui", "node_modules")); err != nil {
		return err
	}
	listed, err := r.output("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return err
	}
	r.dirOf = make(map[string]string)
	for line := range strings.Lines(listed) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		r.dirOf[path] = dir
	}
	return nil
}

func (r *release) cleanOut() error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// build makes the program of a platform and everything that it is handed out in.
func (r *release) build(p platform) error {
	fmt.Printf("== %s\n", p)
	program, err := r.compile(p)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	parts, err := goParts(info, r.dirOf)
	if err != nil {
		return err
	}
	licence, err := licencesIn(runtime.GOROOT())
	if err != nil {
		return err
	}
	parts = append(parts, part{url: "pkg:golang/std@" + info.GoVersion, name: "the Go standard library", version: info.GoVersion, licences: licence})
	if !p.alone {
		carried, err := r.carried(p)
		if err != nil {
			return err
		}
		parts = append(append(parts, carried...), r.pages...)
	}
	parts = byURL(parts)
	bill, err := billOfMaterials(r.version, p.String(), r.at, parts)
	if err != nil {
		return err
	}
	files := []entry{
		{name: "nomadlike", from: program, mode: 0o755},
		{name: "CHANGELOG.md", from: filepath.Join(r.root, "CHANGELOG.md"), mode: 0o644},
		{name: "LICENSE", from: filepath.Join(r.root, "LICENSE"), mode: 0o644},
		{name: "LICENSES-OF-LIBRARIES", text: licenceText(parts), mode: 0o644},
		{name: "README.md", from: filepath.Join(r.root, "README.md"), mode: 0o644},
		{name: "install.sh", from: filepath.Join(r.root, "scripts", "install.sh"), mode: 0o755},
		{name: "sbom.cdx.json", text: bill, mode: 0o644},
	}
	if !p.alone {
		files = append(files, entry{name: unitName, from: filepath.Join(r.root, "scripts", unitName), mode: 0o644})
	}
	inside, err := sums(files)
	if err != nil {
		return err
	}
	files = append(files, entry{name: "SHA256SUMS", text: inside, mode: 0o644})

	name := fmt.Sprintf("nomadlike-%s-%s", r.version, p)
	err = r.write(name+".tar.gz", func(to io.Writer) error { return writeArchive(to, name, r.at, files) })
	if err != nil || p.alone {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		err := r.write(fmt.Sprintf("nomadlike_%s_%s.%s", r.version, p.arch, kind), func(to io.Writer) error {
			return writePackage(to, kind, r.version, p.arch, r.at, files, r.scratch)
		})
		if err != nil {
			return err
		}
	}
	return r.write(name+".sbom.cdx.json", func(to io.Writer) error {
		_, err := to.Write(bill)
		return err
	})
}

// carried are the parts of the device plugins that a program carries.
func (r *release) carried(p platform) ([]part, error) {
	plugins, err := filepath.Glob(filepath.Join(r.root, "plugins", "host", "embedded", "*-"+p.String()+".gz"))
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, path := range plugins {
		pressed, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(pressed))
		if err != nil {
			return nil, err
		}
		program, err := io.ReadAll(unpacked)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		more, err := goParts(info, r.dirOf)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

func (r *release) write(name string, write func(io.Writer) error) error {
	path := filepath.Join(r.out, name)
	if err := create(path, write); err != nil {
		return err
	}
	fmt.Println(name)
	r.written = append(r.written, entry{name: name, from: path})
	return nil
}

// compile builds by the project's own makefile, and keeps what came of it.
func (r *release) compile(p platform) (string, error) {
	program := filepath.Join(r.scratch, "nomadlike-"+p.String())
	environment := append(os.Environ(), "GOOS="+p.system, "GOARCH="+p.arch, "GOFLAGS=-buildvcs=false")
	if p.alone {
		return program, r.call(append(environment, "CGO_ENABLED=0"), "go", "build", "-tags", "cli", "-trimpath",
			"-ldflags", "-s -w -X nomadlike/command.Version="+r.version, "-o", program, ".")
	}
	compiler := p.compiler
	if p.native() == 1 {
		compiler = "cc"
	}
	// The program carries all small programs that lie there.
	others, err := filepath.Glob(filepath.Join(r.root, "plugins", "*", "embedded", "*-linux-*"))
	if err != nil {
		return "", err
	}
	for _, path := range others {
		if err := os.Remove(path); err != nil {
			return "", err
		}
	}
	if err := r.call(environment, "make", "--no-print-directory", "build", "VERSION="+r.version, "CC="+compiler); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(r.root, "bin", "nomadlike"))
	if err != nil {
		return "", err
	}
	return program, os.WriteFile(program, text, 0o755)
}

func (r *release) call(environment []string, name string, args ...string) error {
	command := exec.Command(name, args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = r.root, environment, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

func (r *release) output(name string, args ...string) (string, error) {
	var out bytes.Buffer
	command := exec.Command(name, args...)
	command.Dir, command.Stdout, command.Stderr = r.root, &out, os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out.String(), nil
}
