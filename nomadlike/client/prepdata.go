package client

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
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
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

const (
	stepData = "data"
	// progressEvery and progressStep bound how often the servers are told how far
	// a copy is: it costs them a log entry.
	progressEvery = 2 * time.Second
	progressStep  = 5 // percent
)

// prepareData copies a dataset to fast storage of the node, unless it is there,
// and lets the place lead to the copy. A node without room lets the job read
// from the storage: that is slower and right.
func (c *Client) prepareData(ctx context.Context, a *structs.Assignment, place *workspace.Place) *alloc.PrepareFailed {
	id, begun := a.Alloc.ID, c.config.Now()
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return dataMissing(place, err)
	}
	defer root.Close()
	below, err := filepath.Rel(place.Root, place.Path)
	if err != nil {
		return infra("client.data_copy", "name", place.Name, "cause", err)
	}
	source, err := root.OpenRoot(below)
	if err != nil {
		return dataMissing(place, err)
	}
	defer source.Close()
	told := progressTeller{client: c, id: id, now: c.config.Now}
	made, err := c.data.Prepare(ctx, source, id, told.tell)
	switch {
	case ctx.Err() != nil:
		return infra("client.prepare_cancelled")
	case errors.Is(err, data.ErrNoRoom):
		c.dataChanged() // others may have made way in vain
		c.tell(id, a.Alloc.Attempt, structs.Told{Event: structs.EventDataFailed, Params: map[string]string{"dataset": place.Name, "cause": err.Error()}, Severity: "warn"})
		return nil
	case errors.Is(err, data.ErrChanged):
		return users(structs.NewError(structs.CodeConflict, "client.data_copy", "name", place.Name, "cause", err))
	case err != nil:
		return infra("client.data_copy", "name", place.Name, "cause", err)
	}
	c.showCopy(a, place, made, begun)
	return nil
}

// fetchData copies data from a server to fast storage of the node, unless it is
// there. A node without room cannot run the job: there is nothing else to read
// from.
func (c *Client) fetchData(ctx context.Context, a *structs.Assignment, place *workspace.Place) *alloc.PrepareFailed {
	id, begun := a.Alloc.ID, c.config.Now()
	params := []any{"kind", place.Kind, "name", place.Name, "storage", place.Storage}
	sum, err := hex.DecodeString(place.SHA256)
	if err != nil || place.SHA256 == "" {
		sum = nil // validated with the job
	}
	source, err := remote.Open(c.config.Remotes[place.Storage], remote.Dataset{
		Path: strings.TrimPrefix(place.Path, "/"), Single: place.Single, SHA256: sum,
	})
	if err != nil {
		return infra("client.data_fetch", append(params, "cause", err)...)
	}
	defer source.Close()
	told := progressTeller{client: c, id: id, now: c.config.Now}
	made, err := c.data.Fetch(ctx, source, id, told.tell)
	switch {
	case ctx.Err() != nil:
		return infra("client.prepare_cancelled")
	case errors.Is(err, data.ErrNoRoom):
		c.dataChanged() // others may have made way in vain
		return infra("client.data_room", append(params, "cause", err)...)
	case errors.Is(err, fs.ErrNotExist):
		return users(structs.NewError(structs.CodeNotFound, "client.data_fetch", append(params, "cause", err)...))
	case errors.Is(err, data.ErrChanged), errors.Is(err, data.ErrCorrupt):
		return users(structs.NewError(structs.CodeConflict, "client.data_fetch", append(params, "cause", err)...))
	case err != nil:
		return infra("client.data_fetch", append(params, "cause", err)...)
	}
	c.showCopy(a, place, made, begun)
	if info, err := os.Stat(place.Path); place.Part != "" && (err != nil || !info.IsDir()) {
		return users(structs.NewError(structs.CodeNotFound, "client.data_fetch", append(params, "cause", "it has no directory "+place.Part)...))
	}
	return nil
}

// showCopy lets a place lead to a copy, and tells of it.
func (c *Client) showCopy(a *structs.Assignment, place *workspace.Place, made data.Copy, begun time.Time) {
	id := a.Alloc.ID
	took, severity := c.config.Now().Sub(begun).Round(time.Millisecond).String(), ""
	if made.Outside > 0 || made.Left > 0 || made.Damaged {
		severity = "warn"
	}
	c.tell(id, a.Alloc.Attempt, structs.Told{Event: structs.EventDataPrepared, Severity: severity, Params: map[string]string{
		"dataset": place.Name, "files": strconv.Itoa(made.Files), "size": structs.FormatSize(made.Bytes), "copied": structs.FormatSize(made.Copied),
		"took": took + saidOf(messages.English, &made), "took_zh": took + saidOf(messages.Chinese, &made),
	}})
	place.Path, place.Root = filepath.Join(made.Dir, place.Part), made.Dir
	if err := c.data.Name(place.DataName, made.Digest); err != nil {
		c.log.Warn("copy of a dataset is not told of", logkey.AllocID, id, logkey.Error, err)
	}
	c.dataChanged()
}

// saidOf is what is worth to be said of a copy beside its size. It goes at the end
// of the event, which servers of every version know.
func saidOf(language messages.Language, made *data.Copy) string {
	var b strings.Builder
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
	client *Client
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
	p.client.event(p.id, alloc.Progressed{Step: stepData, Percent: percent})
}

// dataLost ends allocations whose data the disk has refused, or was found damaged,
// after they had begun to read it: what they would read may be wrong.
func (c *Client) dataLost(ids []string, cause error) {
	why := "client.data_lost"
	if errors.Is(cause, data.ErrDamaged) {
		why = "client.data_damaged"
	}
	for _, id := range ids {
		c.event(id, alloc.Evicted{Cause: structs.NewReason(why, "cause", cause.Error())})
	}
}

// sweepData removes copies that nobody has used for long.
func (c *Client) sweepData(reading map[string]bool) {
	removed, err := c.data.Sweep(func(user string) bool { return reading[user] })
	if err != nil {
		c.log.Warn("sweep prepared data", logkey.Error, err)
	}
	if removed > 0 {
		c.log.Info("prepared data that nobody used is removed", logkey.Count, removed)
		c.dataChanged()
	}
}

// dataChanged puts the copies that the node holds into the registration, so that
// jobs which want them come here.
func (c *Client) dataChanged() {
	names := c.data.Names(structs.DataNamesMax)
	c.mu.Lock()
	changed := !slices.Equal(c.mu.node.Data, names)
	c.mu.node.Data = names
	c.mu.Unlock()
	if changed {
		c.session.Refresh()
	}
}
