package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

const (
	syncAfter   = 200 * time.Millisecond // what is written within it reaches the disk together
	expireEvery = time.Hour
	chainsMax   = 64 // servers whose records are kept, those included that are gone
	setAsideMax = 4  // copies that were departed from, of one server
)

// Config is what a journal is made from.
type Config struct {
	Dir    string // made with mode 0700 when missing
	Server string // id of this server
	Bounds audit.Bounds
	Now    func() time.Time
	Log    *slog.Logger
	Fail   func(error) // called when the disk did not take what was written; it ends the process
}

// Journal is the audit record as one server has it. Its methods may be called
// from any goroutine.
type Journal struct {
	config Config
	own    *chain
	wake   chan struct{} // something waits for the disk

	mu struct {
		sync.Mutex
		copies  map[string]*chain
		changed chan struct{} // closed when a chain has more on the disk
		lost    int           // records that could not be written
		behind  bool          // it was recorded that others have more of the own chain
	}
}

// Open opens a journal and records that it begins.
func Open(config Config) (*Journal, error) {
	j := &Journal{config: config, wake: make(chan struct{}, 1)}
	j.mu.copies, j.mu.changed = make(map[string]*chain), make(chan struct{})
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open audit record: %w", err)
	}
	own, taken, err := openChain(filepath.Join(config.Dir, config.Server), config.Server, config.Bounds)
	if err != nil {
		return nil, err
	}
	j.own = own
	entries, err := os.ReadDir(config.Dir)
	if err != nil {
		return nil, errors.Join(err, own.close())
	}
	for _, entry := range entries {
		if !entry.IsDir() || !plausible(entry.Name()) || entry.Name() == config.Server || len(j.mu.copies) >= chainsMax {
			continue
		}
		copied, cut, err := openChain(filepath.Join(config.Dir, entry.Name()), entry.Name(), config.Bounds)
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}
		if cut.bytes > 0 {
			config.Log.Info("the copy of an audit record was not whole at its end: it is fetched again", logkey.ServerID, entry.Name(), "bytes", cut.bytes)
		}
		j.mu.copies[entry.Name()] = copied
	}
	if taken.bytes > 0 {
		config.Log.Warn("the audit record was not whole at its end: that was cut off", "bytes", taken.bytes)
		_ = j.note(audit.Record{Action: audit.ActionRecovered, Sent: taken.bytes, Reason: "sha256:" + taken.hash})
	}
	_ = j.note(audit.Record{Action: audit.ActionBegin}) // a server starts also where there is no room; what is lost is logged and counted
	return j, nil
}

// plausible reports whether a text may be the id of a server.
func plausible(id string) bool {
	return len(id) > 0 && len(id) <= 64 && strings.Trim(id, "0123456789abcdef-") == ""
}

// note records something of the journal's own.
func (j *Journal) note(r audit.Record) error {
	r.Actor, r.Object, r.Outcome = audit.Actor{Kind: "server", User: j.config.Server}, audit.Object{Kind: "audit", ID: r.Object.ID}, audit.Allowed
	return j.Append(r)
}

// Append writes a record at the end of the server's own chain. It does not wait
// for the disk; a record without a time gets the present one. A record that
// cannot be written is logged and counted, and the next one that can be is
// preceded by the count.
func (j *Journal) Append(r audit.Record) error {
	if r.Time == 0 {
		r.Time = structs.At(j.config.Now())
	}
	j.mu.Lock()
	lost := j.mu.lost
	j.mu.Unlock()
	err := error(nil)
	if lost > 0 {
		told := audit.Record{
			Time: r.Time, Action: audit.ActionLost, Outcome: audit.Failed, Count: lost,
			Actor: audit.Actor{Kind: "server", User: j.config.Server}, Object: audit.Object{Kind: "audit"},
		}
		if err = j.own.add(told); err == nil {
			j.mu.Lock()
			j.mu.lost -= lost
			j.mu.Unlock()
		}
	}
	if err == nil {
		err = j.own.add(r.Bounded())
	}
	if err != nil {
		j.mu.Lock()
		j.mu.lost++
		j.mu.Unlock()
		j.config.Log.Error("an audit record is lost", logkey.Method, r.Action, logkey.User, r.Actor.User, logkey.Error, err)
		j.failed(err)
		return err
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return nil
}

// failed ends the process after an error of which nobody can say what it left on
// the disk.
func (j *Journal) failed(err error) {
	var sync *SyncError
	if errors.As(err, &sync) && j.config.Fail != nil {
		j.config.Fail(err)
	}
}

// Run has what is written reach the disk, and removes what is too old, until ctx
// ends.
func (j *Journal) Run(ctx context.Context) {
	expire := time.NewTicker(expireEvery)
	defer expire.Stop()
	j.expire()
	for {
		select {
		case <-ctx.Done():
			return
		case <-expire.C:
			j.expire()
		case <-j.wake:
			timer := time.NewTimer(syncAfter)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
			j.Sync()
		}
	}
}

// Sync has what is written reach the disk now.
func (j *Journal) Sync() {
	more, err := j.own.sync()
	if err != nil {
		j.config.Log.Error("the audit record does not reach the disk", logkey.Error, err)
		j.failed(err)
	}
	if more {
		j.tell()
	}
}

// tell wakes those who wait for more.
func (j *Journal) tell() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.mu.changed)
	j.mu.changed = make(chan struct{})
}

// Changed returns a channel that is closed when a chain has more on the disk
// than now.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.changed
}

func (j *Journal) expire() {
	now := structs.At(j.config.Now())
	for id, c := range j.chains() {
		first, err := c.expire(now)
		switch {
		case err != nil:
			j.config.Log.Warn("old audit records are not removed", logkey.ServerID, id, logkey.Error, err)
		case first > 0 && c == j.own:
			_ = j.note(audit.Record{Action: audit.ActionForget, Object: audit.Object{ID: lineID(first)}}) // logged there
		}
	}
	aside, _ := filepath.Glob(filepath.Join(j.config.Dir, "*~*")) // the pattern is a good one
	for _, dir := range aside {
		if stat, err := os.Stat(dir); err == nil && now.Sub(structs.At(stat.ModTime())) > j.config.Bounds.Keep {
			if err := os.RemoveAll(dir); err != nil {
				j.config.Log.Warn("old audit records are not removed", logkey.Path, dir, logkey.Error, err)
			}
		}
	}
}

// lineID names a line of a chain.
func lineID(seq uint64) string { return strconv.FormatUint(seq, 10) }

// chains returns the chains by their servers, the own one too.
func (j *Journal) chains() map[string]*chain {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := maps.Clone(j.mu.copies)
	all[j.config.Server] = j.own
	return all
}

// Servers lists the servers of whose chains there is something here, in order.
func (j *Journal) Servers() []string { return slices.Sorted(maps.Keys(j.chains())) }

// Server is the id of the server whose journal it is.
func (j *Journal) Server() string { return j.config.Server }

// Heads returns the last line of each chain that is on the disk here.
func (j *Journal) Heads() map[string]uint64 {
	heads := make(map[string]uint64)
	for id, c := range j.chains() {
		_, synced := c.span()
		heads[id] = synced.Seq
	}
	return heads
}

// Part is lines of one chain, one after the other.
type Part struct {
	Server string
	Lines  []byte
}

// After returns lines of the own chain from behind a number on, about so many
// bytes.
func (j *Journal) After(seq uint64, most int) ([]byte, error) { return j.own.after(seq, most) }

// Offer returns what is on the disk here and not behind the heads of another
// server, whose id is asker: about so many bytes, none of its own chain.
func (j *Journal) Offer(asker string, heads map[string]uint64, most int) ([]Part, error) {
	j.compare(heads[j.config.Server])
	var parts []Part
	chains := j.chains()
	for _, id := range slices.Sorted(maps.Keys(chains)) {
		if id == asker || most <= 0 {
			continue
		}
		lines, err := chains[id].after(heads[id], most)
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 {
			parts = append(parts, Part{id, lines})
			most -= len(lines)
		}
	}
	return parts, nil
}

// compare notices when another server has more of the own chain than there is:
// the disk was put back to what it was before.
func (j *Journal) compare(known uint64) {
	_, head := j.own.written()
	j.mu.Lock()
	behind := known > head.Seq && !j.mu.behind
	j.mu.behind = j.mu.behind || behind
	j.mu.Unlock()
	if behind {
		j.config.Log.Error("other servers have records of this one that it lacks: its disk was put back", "has", head.Seq, "known", known)
		_ = j.note(audit.Record{Action: audit.ActionBehind, Object: audit.Object{ID: lineID(known)}}) // logged there
	}
}

// Take puts lines of another server's chain into its copy, once they follow it,
// and returns how many did. A copy that the chain has departed from is set aside
// and begun anew, and a record says so.
func (j *Journal) Take(part Part) (int, error) {
	if part.Server == j.config.Server || !plausible(part.Server) {
		return 0, fmt.Errorf("take audit record: not of another server: %q", part.Server)
	}
	c, err := j.copyOf(part.Server)
	if err != nil {
		return 0, err
	}
	n, err := c.addLines(part.Lines)
	if n > 0 {
		more, syncErr := c.sync()
		if err = errors.Join(err, syncErr); more {
			j.tell()
		}
	}
	var broken *audit.BrokenError
	if errors.As(err, &broken) && (broken.How == audit.BreakHash || broken.How == audit.BreakMissing && broken.Seq > 1) {
		err = errors.Join(err, j.setAside(part.Server, c, broken))
	}
	j.failed(err)
	return n, err
}

func (j *Journal) copyOf(server string) (*chain, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.mu.copies[server]; c != nil {
		return c, nil
	}
	if len(j.mu.copies) >= chainsMax {
		return nil, fmt.Errorf("take audit record: there are %d copies already", chainsMax)
	}
	c, _, err := openChain(filepath.Join(j.config.Dir, server), server, j.config.Bounds)
	if err == nil {
		j.mu.copies[server] = c
	}
	return c, err
}

// setAside keeps a copy under another name, and has the next one begin anew.
func (j *Journal) setAside(server string, c *chain, why *audit.BrokenError) error {
	aside, err := filepath.Glob(filepath.Join(j.config.Dir, server+"~*"))
	if err != nil || len(aside) >= setAsideMax {
		return errors.Join(err, fmt.Errorf("keep the copy that was departed from: there are %d already", len(aside)))
	}
	_, head := c.written()
	j.mu.Lock()
	delete(j.mu.copies, server)
	j.mu.Unlock()
	err = c.close()
	if renamed := os.Rename(c.dir, fmt.Sprintf("%s~%d", c.dir, head.Seq)); renamed != nil {
		return errors.Join(err, renamed)
	}
	j.config.Log.Error("the audit record of a server is not what it was: the copy of before is kept", logkey.ServerID, server, "line", why.Seq, logkey.Reason, string(why.How))
	return errors.Join(err, j.note(audit.Record{Action: audit.ActionDiverged, Reason: string(why.How), Object: audit.Object{ID: server + "/" + lineID(why.Seq)}}))
}

// Close has everything reach the disk and closes the files.
func (j *Journal) Close() error {
	var err error
	for _, c := range j.chains() {
		err = errors.Join(err, c.close())
	}
	return err
}
