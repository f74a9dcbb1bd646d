package prepare

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/staging"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	stepData = "data"
	// progressEvery and progressStep bound how often the servers are told how far
	// a copy is: it costs them a log entry.
	progressEvery = 2 * time.Second
	progressStep  = 5 // percent
)

// Datasets brings the data of jobs to the node's fast storage. Any goroutine may use
// it.
type Datasets struct {
	Store    *data.Store
	Exchange *staging.Exchange
	Remotes  map[string]remote.Server // of the storages that are remote
	Events   loop.Events
	Notes    session.Teller
	Node     *machine.Registration
	Now      func() time.Time
	Log      *slog.Logger
}

// copyIn copies a dataset to fast storage of the node, unless it is there,
// and lets the place lead to the copy. A node without room lets the job read
// from the storage: that is slower and right.
func (s *Datasets) copyIn(ctx context.Context, a *structs.Assignment, place *workspace.Place) *alloc.PrepareFailed {
	if place.Version != nil {
		if done, failure := s.bring(ctx, a, place); done {
			return failure
		}
	}
	id, begun := a.Alloc.ID, s.Now()
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return dataMissing(place, err)
	}
	defer root.Close()
	below, err := filepath.Rel(place.Root, place.Path)
	if err != nil {
		return alloc.ByNode("client.data_copy", "name", place.Name, "cause", err)
	}
	source, err := root.OpenRoot(below)
	if err != nil {
		return dataMissing(place, err)
	}
	defer source.Close()
	told := progressTeller{events: s.Events, id: id, now: s.Now}
	made, err := s.Store.Prepare(ctx, source, id, told.tell)
	switch {
	case ctx.Err() != nil:
		return alloc.ByNode("client.prepare_cancelled")
	case errors.Is(err, data.ErrNoRoom):
		s.changed() // others may have made way in vain
		s.Notes.Tell(id, a.Alloc.Attempt, structs.Told{Event: structs.EventDataFailed, Params: map[string]string{"dataset": place.Name, "cause": err.Error()}, Severity: "warn"})
		return nil
	case errors.Is(err, data.ErrChanged):
		return alloc.ByJob(structs.NewError(structs.CodeConflict, "client.data_copy", "name", place.Name, "cause", err))
	case err != nil:
		return alloc.ByNode("client.data_copy", "name", place.Name, "cause", err)
	}
	s.show(a, place, made, staging.Brought{}, begun)
	return nil
}

// bring copies a version of named data to fast storage of the node, from other nodes that
// have it and from the storage. done reports whether that is the way to it: a version whose
// manifest this agent cannot read, since another one's user has written it, is copied as
// any directory is.
func (s *Datasets) bring(ctx context.Context, a *structs.Assignment, place *workspace.Place) (done bool, failure *alloc.PrepareFailed) {
	id, begun := a.Alloc.ID, s.Now()
	wanted := &staging.Wanted{AllocID: id, Place: *place.Version}
	told, listed := progressTeller{events: s.Events, id: id, now: s.Now}, false
	var brought staging.Brought
	made, err := data.Versions{Store: s.Store}.Prepare(ctx, &data.Version{
		Project: place.Version.Project, Digest: tree.Digest(place.Version.Digest),
		Manifest: func(ctx context.Context) ([]byte, error) {
			text, err := s.Exchange.Manifest(ctx, wanted)
			listed = err == nil
			return text, err
		},
		Fill: func(ctx context.Context, f *data.Filling) (err error) {
			brought, err = s.Exchange.Bring(ctx, wanted, f)
			return err
		},
	}, id, told.tell)
	s.Exchange.Leave(wanted)
	conflict := errors.Is(err, data.ErrCorrupt) || structs.CodeOf(err) == structs.CodeConflict
	switch {
	case ctx.Err() != nil:
		return true, alloc.ByNode("client.prepare_cancelled")
	case errors.Is(err, data.ErrNoRoom):
		s.changed() // others may have made way in vain
		s.Notes.Tell(id, a.Alloc.Attempt, structs.Told{Event: structs.EventDataFailed, Params: map[string]string{"dataset": place.Name, "cause": err.Error()}, Severity: "warn"})
		return true, nil
	case conflict:
		return true, alloc.ByJob(structs.NewError(structs.CodeConflict, "client.data_copy", "name", place.Name, "cause", err))
	case err != nil && !listed:
		s.Log.Warn("the manifest of a version cannot be read: its directory is copied by this node alone", logkey.AllocID, id, logkey.Path, place.Path, logkey.Error, err)
		return false, nil
	case err != nil:
		return true, alloc.ByNode("client.data_copy", "name", place.Name, "cause", err)
	}
	s.show(a, place, made, brought, begun)
	return true, nil
}

// fetch copies data from a server to fast storage of the node, unless it is
// there. A node without room cannot run the job: there is nothing else to read
// from.
func (s *Datasets) fetch(ctx context.Context, a *structs.Assignment, place *workspace.Place) *alloc.PrepareFailed {
	id, begun := a.Alloc.ID, s.Now()
	params := []any{"kind", place.Kind, "name", place.Name, "storage", place.Storage}
	sum, err := hex.DecodeString(place.SHA256)
	if err != nil || place.SHA256 == "" {
		sum = nil // validated with the job
	}
	source, err := remote.Open(s.Remotes[place.Storage], remote.Dataset{
		Path: strings.TrimPrefix(place.Path, "/"), Single: place.Single, SHA256: sum,
	})
	if err != nil {
		return alloc.ByNode("client.data_fetch", append(params, "cause", err)...)
	}
	defer source.Close()
	told := progressTeller{events: s.Events, id: id, now: s.Now}
	made, err := s.Store.Fetch(ctx, source, id, told.tell)
	switch {
	case ctx.Err() != nil:
		return alloc.ByNode("client.prepare_cancelled")
	case errors.Is(err, data.ErrNoRoom):
		s.changed() // others may have made way in vain
		return alloc.ByNode("client.data_room", append(params, "cause", err)...)
	case errors.Is(err, fs.ErrNotExist):
		return alloc.ByJob(structs.NewError(structs.CodeNotFound, "client.data_fetch", append(params, "cause", err)...))
	case errors.Is(err, data.ErrChanged), errors.Is(err, data.ErrCorrupt):
		return alloc.ByJob(structs.NewError(structs.CodeConflict, "client.data_fetch", append(params, "cause", err)...))
	case err != nil:
		return alloc.ByNode("client.data_fetch", append(params, "cause", err)...)
	}
	s.show(a, place, made, staging.Brought{}, begun)
	if info, err := os.Stat(place.Path); place.Part != "" && (err != nil || !info.IsDir()) {
		return alloc.ByJob(structs.NewError(structs.CodeNotFound, "client.data_fetch", append(params, "cause", "it has no directory "+place.Part)...))
	}
	return nil
}

// show lets a place lead to a copy, and says of it.
func (s *Datasets) show(a *structs.Assignment, place *workspace.Place, made data.Copy, brought staging.Brought, begun time.Time) {
	id := a.Alloc.ID
	took, severity := s.Now().Sub(begun).Round(time.Millisecond).String(), ""
	if made.Outside > 0 || made.Left > 0 || made.Damaged || len(brought.Liars) > 0 {
		severity = "warn"
	}
	s.Notes.Tell(id, a.Alloc.Attempt, structs.Told{Event: structs.EventDataPrepared, Severity: severity, Params: map[string]string{
		"dataset": place.Name, "files": strconv.Itoa(made.Files), "size": structs.FormatSize(made.Bytes), "copied": structs.FormatSize(made.Copied),
		"took": took + saidOf(messages.English, &made, &brought), "took_zh": took + saidOf(messages.Chinese, &made, &brought),
	}})
	place.Path, place.Root = filepath.Join(made.Dir, place.Part), made.Dir
	if err := s.Store.Name(place.DataName, made.Digest); err != nil {
		s.Log.Warn("copy of a dataset is not told of", logkey.AllocID, id, logkey.Error, err)
	}
	s.changed()
}

// saidOf is what is worth to be said of a copy beside its size. It goes at the end
// of the event, which servers of every version know.
func saidOf(language messages.Language, made *data.Copy, brought *staging.Brought) string {
	var b strings.Builder
	if brought.Nodes > 0 {
		b.WriteString(messages.Textf(language, "client.data_from", "nodes", words.Roughly(brought.FromNodes), "count", brought.Nodes, "storage", words.Roughly(brought.FromStorage)))
	}
	if len(brought.Liars) > 0 {
		b.WriteString(messages.Textf(language, "client.data_liars", "names", strings.Join(brought.Liars, ", "), "count", len(brought.Liars)))
	}
	for _, left := range []struct {
		id    string
		count int
	}{{"client.data_outside", made.Outside}, {"client.data_special", made.Left}} {
		if left.count > 0 {
			b.WriteString(messages.Textf(language, left.id, "count", left.count))
		}
	}
	if made.Damaged {
		b.WriteString(messages.Textf(language, "client.data_again"))
	}
	switch made.Verified {
	case data.VerifiedMade, data.VerifiedSample:
	case data.VerifiedWhole:
		b.WriteString(messages.Textf(language, "client.data_verified"))
	case data.VerifiedSoon:
		b.WriteString(messages.Textf(language, "client.data_verifying"))
	}
	return b.String()
}

// progressTeller tells the servers how far a copy is, now and then. Workers
// call it.
type progressTeller struct {
	events loop.Events
	id     string
	now    func() time.Time
	mu     struct {
		sync.Mutex
		at      time.Time
		percent int
	}
}

func (p *progressTeller) tell(done, total int64) {
	percent := 100
	if total > 0 {
		percent = int(min(done*100/total, 100))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.mu.at.IsZero() {
		p.mu.at = now // a quick copy is not told of
	}
	if percent < p.mu.percent+progressStep || now.Sub(p.mu.at) < progressEvery {
		return
	}
	p.mu.at, p.mu.percent = now, percent
	p.events.Event(p.id, alloc.Progressed{Step: stepData, Percent: percent})
}

// Sweep removes copies that nobody has used for long. reading reports which
// allocations may read.
func (s *Datasets) Sweep(reading map[string]bool) {
	removed, err := s.Store.Sweep(func(user string) bool { return reading[user] })
	if err != nil {
		s.Log.Warn("sweep prepared data", logkey.Error, err)
	}
	if removed > 0 {
		s.Log.Info("prepared data that nobody used is removed", logkey.Count, removed)
		s.changed()
	}
}

// Release says that an allocation reads its data no more.
func (s *Datasets) Release(id string) {
	if err := s.Store.Release(id); err != nil {
		s.Log.Warn("release prepared data", logkey.AllocID, id, logkey.Error, err)
	}
}

// changed puts the copies that the node holds into the registration, so that
// jobs which want them come here.
func (s *Datasets) changed() {
	names := s.Store.Names(structs.DataNamesMax)
	if s.Node.Change(func(node *structs.Node) bool {
		changed := !slices.Equal(node.Data, names)
		node.Data = names
		return changed
	}) {
		s.Node.Refresh()
	}
}
