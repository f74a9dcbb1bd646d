package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/filelock"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/parcel"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// packing is one job package under way.
type packing struct {
	env    *Env
	client *api.Client
	detail *api.JobDetail
	flags  *packageFlags
	spool  string // directory of what has to be read before its size is known
	allocs []structs.Allocation

	head  parcel.Head
	items []packed
	dirs  map[string]bool
}

// packed is one entry that is to be written, and where its bytes are: in data, in a file
// of the spool, or in a stream of parts.
type packed struct {
	parcel.Entry
	at    time.Time
	data  []byte
	file  string
	parts iter.Seq[fetchTask] // nil: in data or file
}

// pack packs a run of a job.
func (env *Env) pack(connection connectionFlags, job string, flags *packageFlags, output outputFlags) (err error) {
	client, err := env.connect(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	detail, _, err := client.Job(env.Context, job, nil)
	if err != nil {
		return err
	}
	p := &packing{env: env, client: client, detail: detail, flags: flags, dirs: make(map[string]bool)}
	top := detail.Job.Name + "-" + short(detail.Job.ID)
	target := firstOf(*flags.to, top+".tar.gz")
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		target = filepath.Join(target, top+".tar.gz")
	}
	if _, err := os.Lstat(target); err == nil && !*flags.force {
		return structs.NewError(structs.CodeConflict, "cli.init.exists", "path", target)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make directory %s: %w", filepath.Dir(target), err)
	}
	part, err := beginPart(target + ".part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // what a package cannot be has no use: the next try begins anew
			err = errors.Join(err, part.Close(), os.Remove(part.Name()))
		}
	}()
	p.spool = part.Name() + ".d"
	if err := errors.Join(os.RemoveAll(p.spool), os.Mkdir(p.spool, 0o700)); err != nil { // of a try that was killed
		return fmt.Errorf("make directory %s: %w", p.spool, err)
	}
	defer os.RemoveAll(p.spool)
	if err := p.gather(); err != nil {
		return p.writeFailed(target, err)
	}
	digest, unverified, err := p.write(part, !strings.HasSuffix(target, ".tar"), top)
	if err != nil {
		return p.writeFailed(target, err)
	}
	info, err := part.Stat()
	if err == nil {
		err = errors.Join(part.Sync(), os.Rename(part.Name(), target), part.Close())
	}
	if err != nil {
		return p.writeFailed(target, err)
	}
	shown := struct {
		File       string           `json:"file"`
		Size       int64            `json:"size"` // of the file
		Digest     string           `json:"digest"`
		Entries    int              `json:"entries"`
		Bytes      int64            `json:"bytes"`
		LeftOut    []parcel.LeftOut `json:"left_out"`
		Unverified int              `json:"unverified"` // parts of files for which no agent told a digest
	}{target, info.Size(), digest, p.head.Entries, p.head.Bytes, all(p.head.LeftOut), unverified}
	return env.show(output, shown, func() {
		env.printHead(target, &p.head, digest)
		fmt.Fprintln(env.Stdout, env.text("cli.package.packed", "file", safe(target), "size", size(info.Size())))
		env.printLeftOut(p.head.LeftOut)
		if unverified > 0 {
			fmt.Fprintln(env.Stderr, env.text("cli.files.unverified", "count", unverified))
		}
	})
}

// beginPart opens a file that is empty and this command's alone. What a try that was cut
// off has left there is written over.
func beginPart(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.package.unwritable", "path", name, "problem", rootCause(err))
	}
	if err = filelock.Take(file, 0); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(structs.NewError(structs.CodeConflict, "cli.package.busy", "path", name), file.Close())
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin %s: %w", name, err), file.Close())
	}
	return file, nil
}

func (p *packing) writeFailed(target string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return structs.NewError(structs.CodeUnavailable, "cli.package.disk_full", "path", target, "size", size(p.head.Bytes)).Because(err)
	}
	return err
}

// gather finds out everything that is to be packed. What cannot be had is left out, and
// said.
func (p *packing) gather() error {
	job := p.detail.Job
	p.head.Program = Version
	p.head.Job = parcel.Job{
		ID: job.ID, Name: job.Name, Project: job.Project, User: job.User, State: p.detail.State, SubmittedAt: job.SubmittedAt, FinishedAt: p.detail.FinishedAt,
	}
	list, _, err := p.client.Allocations(p.env.Context, job.ID, api.AllocationFilter{}, nil)
	if err != nil {
		return err
	}
	p.allocs = list.Allocations
	p.gatherFiles()
	steps := []func() error{p.gatherRecord, p.gatherCode}
	if !*p.flags.noLogs {
		steps = append(steps, p.gatherLogs)
	}
	if !*p.flags.noOutputs {
		steps = append(steps, p.gatherOutputs)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	p.head.Entries = len(p.items)
	for i := range p.items {
		p.head.Bytes += p.items[i].Size
	}
	return nil
}

// gatherFiles takes the job file: with every value written out, so that it needs nothing
// else, and as a person wrote it.
func (p *packing) gatherFiles() {
	job := p.detail.Job.Copy()
	job.Note = "" // it is of the job that there was
	source := jobspec.Write(job)
	p.env.sayHidden(job, source)
	p.add(packed{Entry: parcel.Entry{Path: parcel.JobName}, data: source})
	if job.Source != "" {
		p.add(packed{Entry: parcel.Entry{Path: parcel.SubmittedName}, data: []byte(job.Source)})
	}
}

// add takes a file, and the directories that it lies in.
func (p *packing) add(one packed) {
	p.dir(path.Dir(one.Path))
	if one.data != nil || one.file == "" && one.parts == nil {
		one.Size = int64(len(one.data))
	}
	one.Kind = parcel.KindFile
	if one.Mode == 0 {
		one.Mode = 0o644
	}
	p.items = append(p.items, p.timed(one))
}

func (p *packing) timed(one packed) packed {
	if one.at.IsZero() {
		one.at = p.detail.Job.SubmittedAt.Time()
	}
	return one
}

// dir takes a directory and those above it, unless they are there.
func (p *packing) dir(name string) {
	if name == "." || p.dirs[name] {
		return
	}
	p.dir(path.Dir(name))
	p.dirs[name] = true
	p.items = append(p.items, p.timed(packed{Entry: parcel.Entry{Path: name, Kind: parcel.KindDir, Mode: 0o755}}))
}

// left says that something is not packed, and why.
func (p *packing) left(name string, err error) error {
	if p.env.Context.Err() != nil {
		return p.env.Context.Err()
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) { // here, and not there
		return err
	}
	reason := err.Error()
	var told *structs.Error
	if errors.As(err, &told) {
		reason = p.env.errorText(*told)
	}
	p.head.LeftOut = append(p.head.LeftOut, parcel.LeftOut{Path: name, Reason: reason})
	return nil
}

func (p *packing) leftText(name, id string, params ...any) {
	p.head.LeftOut = append(p.head.LeftOut, parcel.LeftOut{Path: name, Reason: p.env.text(id, params...)})
}

// gatherCode takes the code, byte by byte as it was submitted.
func (p *packing) gatherCode() error {
	job := p.detail.Job
	if job.Workdir == nil {
		return nil
	}
	if *p.flags.noCode {
		p.leftText(parcel.CodeDir, "cli.package.reason.asked", "flag", "-no-code")
		return nil
	}
	if job.Tree() == "" {
		p.leftText(parcel.CodeDir, "cli.package.reason.no_tree")
		return nil
	}
	digest, client := tree.Digest(job.Tree()), p.client.In(job.Project)
	m, err := p.env.treeOf(client, digest)
	if err != nil {
		return p.left(parcel.CodeDir, err)
	}
	p.head.Code = &parcel.Code{Tree: string(digest), Files: m.Files(), Bytes: m.Bytes(), Git: job.Workdir.Git}
	p.add(packed{Entry: parcel.Entry{Path: parcel.TreeName}, data: m.Encode()})
	p.dir(parcel.CodeDir)
	for i := range m.Entries {
		e := &m.Entries[i]
		one := packed{Entry: parcel.Entry{Path: parcel.CodeDir + "/" + e.Path, Mode: e.Mode, Size: e.Size(), Target: e.Target, Kind: parcel.KindFile}}
		switch e.Kind {
		case tree.KindDir:
			one.Kind, p.dirs[one.Path] = parcel.KindDir, true
		case tree.KindLink:
			one.Kind = parcel.KindLink
		default:
			one.parts = codeParts(client, digest, e)
		}
		p.items = append(p.items, p.timed(one))
	}
	return nil
}

// codeParts are the tasks that get a file of a tree.
func codeParts(client *api.Client, digest tree.Digest, e *tree.Entry) iter.Seq[fetchTask] {
	return func(yield func(fetchTask) bool) {
		for _, chunk := range e.Chunks {
			if !yield(func(ctx context.Context) fetched {
				data, err := client.CodeChunk(ctx, digest, chunk)
				if err == nil && tree.DigestOf(data) != chunk.Digest {
					err = structs.NewError(structs.CodeUnavailable, "tree.wrong_bytes", "path", e.Path, "chunk", chunk.Digest.Short())
				}
				return fetched{data: data, verified: true, err: err}
			}) {
				return
			}
		}
	}
}

// rankDir is where something of one rank lies below a directory of the package.
func (p *packing) rankDir(top string, subjob int) string {
	if p.detail.Job.SubjobCount() > 1 {
		return path.Join(top, "subjob-"+strconv.Itoa(subjob))
	}
	return top
}

// gatherLogs reads the logs of all ranks of all attempts: how long they are is known when
// they have been read.
func (p *packing) gatherLogs() error {
	for i := range p.allocs {
		alloc := &p.allocs[i]
		if alloc.StartedAt == 0 && alloc.Status != structs.AllocRunning {
			continue // what never ran printed nothing
		}
		dir := path.Join(p.rankDir(parcel.LogsDir, alloc.Subjob), fmt.Sprintf("attempt-%d", alloc.Attempt), fmt.Sprintf("rank-%d", alloc.Rank))
		for _, stream := range []string{"stdout", "stderr", structs.StreamHooks} {
			name := path.Join(dir, stream+".log")
			file := filepath.Join(p.spool, alloc.ID+"-"+stream)
			length, err := p.spoolLog(alloc.ID, stream, file)
			if err != nil {
				if structs.CodeOf(err) == structs.CodeNotFound && stream == structs.StreamHooks {
					continue // it has none
				}
				if err := p.left(name, err); err != nil {
					return err
				}
				continue
			}
			if length > 0 || stream == "stdout" {
				p.add(packed{Entry: parcel.Entry{Path: name, Size: length}, file: file})
			}
		}
	}
	return nil
}

// spoolLog reads a log into a file, and goes on where it was when that breaks off.
func (p *packing) spoolLog(alloc, stream, name string) (length int64, err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for tries := 1; ; tries++ {
		var n int64
		var body io.ReadCloser
		body, err = p.client.Logs(p.env.Context, alloc, api.LogOptions{Stream: stream, Offset: length})
		if err == nil {
			n, err = io.Copy(file, body)
			err = errors.Join(err, body.Close())
		}
		if length += n; err == nil {
			return length, nil
		}
		if n > 0 {
			tries = 1
		}
		code := structs.CodeOf(err)
		if tries == fetchTries || code != structs.CodeUnavailable && code != structs.CodeInternal || !pause(p.env.Context, logRetry) {
			return length, err
		}
	}
}

// gatherOutputs lists what the newest attempts wrote into the output of the job.
func (p *packing) gatherOutputs() error {
	newest := make(map[int]*structs.Allocation)
	for i := range p.allocs {
		alloc := &p.allocs[i]
		if before := newest[alloc.Subjob]; alloc.Rank == *p.flags.filter.rank && (before == nil || alloc.Attempt > before.Attempt) {
			newest[alloc.Subjob] = alloc
		}
	}
	for subjob := range p.detail.Job.SubjobCount() {
		alloc := newest[subjob]
		if alloc == nil || p.detail.Job.Output == "" {
			continue
		}
		files := writtenFiles{env: p.env, client: p.client, job: p.detail.Job.ID, filter: api.FileFilter{Attempt: alloc.Attempt, Subjob: subjob, Rank: alloc.Rank}}
		top := p.rankDir(parcel.OutputsDir, subjob)
		list, err := p.client.Files(p.env.Context, files.job, structs.FilesOutputs, files.filter)
		if err == nil {
			take := func(found foundFile) {
				name := path.Join(top, found.below)
				if found.entry.Dir {
					p.dir(name)
					return
				}
				remote := files.remote(found)
				p.add(packed{Entry: parcel.Entry{Path: name, Size: remote.size}, at: remote.at.Time(), parts: remote.parts(0, nil)})
			}
			err = files.walk(list, "", 0, take, func(name, reason string) { p.leftText(path.Join(top, name), reason) })
		}
		if err != nil {
			if err := p.left(top, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatherRecord takes what the cluster knows of the run.
func (p *packing) gatherRecord() error {
	id, ctx := p.detail.Job.ID, p.env.Context
	detail := *p.detail
	detail.May = []string{} // what whoever packed it may do is no part of the run
	record := []struct {
		name string
		read func() (any, error)
	}{
		{"job", func() (any, error) { return &detail, nil }},
		{"subjobs", func() (any, error) {
			list, err := everyPage(&api.Query{}, func(query *api.Query) ([]structs.Subjob, string, error) {
				page, _, err := p.client.Subjobs(ctx, id, query)
				if err != nil {
					return nil, "", err
				}
				return page.Subjobs, page.Next, nil
			})
			return api.SubjobList{Subjobs: list}, err
		}},
		{"attempts", func() (any, error) { list, _, err := p.client.Attempts(ctx, id, nil); return list, err }},
		{"allocations", func() (any, error) { return api.AllocationList{Allocations: p.allocs}, nil }},
		{"events", func() (any, error) { list, _, err := p.client.JobEvents(ctx, id, nil); return list, err }},
		{"metrics", func() (any, error) { return p.metrics() }},
		{"usage", func() (any, error) { return p.usage() }},
	}
	for _, one := range record {
		name := path.Join(parcel.RecordDir, one.name+".json")
		value, err := one.read()
		if err == nil {
			var data bytes.Buffer
			encoder := json.NewEncoder(&data)
			encoder.SetIndent("", " ")
			if err = encoder.Encode(value); err == nil {
				p.add(packed{Entry: parcel.Entry{Path: name}, data: data.Bytes()})
				continue
			}
		}
		if err := p.left(name, err); err != nil {
			return err
		}
	}
	return nil
}

// metrics are the curves of all ranks, those beyond the bound of one answer too.
func (p *packing) metrics() (*api.JobMetrics, error) {
	found, err := p.client.JobMetrics(p.env.Context, p.detail.Job.ID, api.MetricsFilter{Points: api.MetricPointsMax})
	if err != nil {
		return nil, err
	}
	if found.LeftOut > 0 {
		have := make(map[string]bool)
		for i := range found.Ranks {
			have[found.Ranks[i].AllocID] = true
		}
		for i := range p.allocs {
			alloc := &p.allocs[i]
			if have[alloc.ID] || alloc.StartedAt == 0 {
				continue
			}
			more, err := p.client.JobMetrics(p.env.Context, p.detail.Job.ID, api.MetricsFilter{
				Attempt: alloc.Attempt, Subjob: &alloc.Subjob, Rank: &alloc.Rank, Points: api.MetricPointsMax,
			})
			if err != nil {
				return nil, err
			}
			found.Ranks = append(found.Ranks, more.Ranks...)
		}
		found.LeftOut = 0
	}
	for _, node := range found.Away {
		p.leftText(path.Join(parcel.RecordDir, "metrics.json"), "cli.package.reason.away", "node", node)
	}
	return found, nil
}

// usagesMax bounds the attempts whose use is asked for.
const usagesMax = 200

// usage is what the ranks of each attempt used while they ran.
func (p *packing) usage() ([]api.JobHistory, error) {
	type attempt struct {
		subjob int
		number uint64
	}
	seen, list := make(map[attempt]bool), []api.JobHistory{}
	name := path.Join(parcel.RecordDir, "usage.json")
	for i := range p.allocs {
		one := attempt{p.allocs[i].Subjob, p.allocs[i].Attempt}
		if seen[one] {
			continue
		}
		if seen[one] = true; len(list) == usagesMax {
			p.leftText(name, "cli.package.reason.many", "max", usagesMax)
			break
		}
		found, err := p.client.JobHistory(p.env.Context, p.detail.Job.ID, api.JobHistoryFilter{Subjob: one.subjob, Attempt: one.number})
		if err != nil {
			return nil, err
		}
		for _, node := range found.Away {
			p.leftText(name, "cli.package.reason.away", "node", node)
		}
		list = append(list, *found)
	}
	return list, nil
}

// write writes the package.
func (p *packing) write(to io.Writer, compress bool, top string) (digest string, unverified int, err error) {
	at := p.detail.Job.SubmittedAt.Time()
	w, err := parcel.NewWriter(to, compress, top, p.head, at)
	if err != nil {
		return "", 0, err
	}
	show := p.env.transfer("cli.package.packing", p.head.Bytes)
	defer show.wipe()
	stream := fetchAll(p.env.Context, func(yield func(fetchTask) bool) {
		for i := range p.items {
			if p.items[i].parts == nil {
				continue
			}
			for task := range p.items[i].parts {
				if !yield(task) {
					return
				}
			}
		}
	})
	defer stream.close()
	for i := range p.items {
		one := &p.items[i]
		var from io.Reader = bytes.NewReader(one.data)
		switch {
		case one.parts != nil:
			from = &partsReader{stream: stream, left: one.Size, unverified: &unverified}
		case one.file != "":
			file, err := os.Open(one.file)
			if err != nil {
				return "", 0, err
			}
			from = file
		}
		err := p.env.Context.Err()
		if err == nil {
			err = w.Add(one.Entry, one.at, io.TeeReader(from, counting{show}))
		}
		if file, ok := from.(*os.File); ok {
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return "", 0, err
		}
	}
	digest, err = w.Close(at)
	return digest, unverified, err
}
