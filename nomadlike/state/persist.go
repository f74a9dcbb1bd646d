package state

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// A stored state is a stream of frames, each a big-endian uint32 length and
// the canonical CBOR of one value:
//
//	header │ for each table: its name and number of rows, then its rows │ events │ past runs │ end
//
// Tables stand in the order of dumps and rows in the order of their keys, so
// equal states are equal bytes; Hash is the SHA-256 of them.

// formatVersion rises with every change of what is stored. Older versions are
// read too:
//
//	1  2026-11-21  the first
//	2  2026-11-21  pools, projects and what they hold, forecasts, past runs; see upgrade.go
//	3  2026-11-26  users
//	4  2026-11-27  passwords
//	5  2026-11-27  secrets and the keys that they are sealed with
//	6  2026-11-27  what people chose to be told, and their messages
//	7  2026-11-27  settings of the whole cluster
//	8  2026-11-27  service accounts
//	9  2026-11-27  code that travels with jobs
//	10  2026-11-27  named data
//	11  2026-11-27  what is declared of images
//	12  2026-11-27  templates of jobs
const formatVersion = 12

// formatLeast is the version in which a state is written that has nothing newer.
const formatLeast = 2

// formatOf is the oldest version in which the state can be written: without rows of a
// table that came later it is the one before, so that servers that know no such table
// can read what they could have written.
func (s *Snapshot) formatOf() int {
	version := formatLeast
	for _, d := range dumps() {
		if d.since <= version {
			continue
		}
		for range each[any](s.db, d.table, d.index, nil) {
			version = d.since
			break
		}
	}
	return version
}

// formatName begins every stored state.
const formatName = "nomadlike-state"

// ErrBadState is matched by every error about a stored state that is not one,
// is truncated, or contradicts itself. The store is as it was before.
var ErrBadState = errors.New("not an intact stored state")

type dumpHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Index   uint64 `json:"index"`
	// Protocol is wire.ProtocolVersion of the server that wrote it; 0 before version 9.
	Protocol int `json:"protocol,omitempty"`
}

type dumpTable struct {
	Table string `json:"table"` // "" at the end
	Rows  int    `json:"rows"`
}

// dump writes and reads one table.
type dump struct {
	table string
	index string // whose order the rows are written in
	since int    // format version that has it first
	until int    // format version that has it last; 0: it still does
	read  func(decode wire.Decoder, data []byte) (any, error)
	row   any // a pointer to an empty one
}

func dumpOf[T any](table string, since int) dump {
	return dump{table: table, index: indexID, since: since, row: new(T), read: func(decode wire.Decoder, data []byte) (any, error) {
		row := new(T)
		if err := decode(data, row); err != nil {
			return nil, err
		}
		return row, nil
	}}
}

// stands reports whether stored states of a version have the table.
func (d dump) stands(version int) bool {
	return d.since <= version && (d.until == 0 || version <= d.until)
}

// dumps lists the tables in the order of a stored state.
func dumps() []dump {
	return []dump{
		dumpOf[metaRow](tableMeta, 1),
		dumpOf[scheduleRow](tableSchedule, 1),
		dumpOf[structs.Cluster](tableCluster, 1),
		dumpOf[jobRow](tableJobs, 1),
		{table: "names", since: 1, until: 1},
		dumpOf[jobStatusRow](tableJobStatuses, 1),
		dumpOf[subjobRow](tableSubjobs, 1),
		dumpOf[attemptRow](tableAttempts, 1),
		dumpOf[structs.Allocation](tableAllocs, 1),
		dumpOf[structs.Node](tableNodes, 1),
		dumpOf[structs.Usage](tableUsage, 1),
		dumpOf[structs.Token](tableTokens, 1),
		dumpOf[structs.JoinToken](tableJoinTokens, 1),
		dumpOf[keyRow](tableIdempotency, 1),
		dumpOf[structs.Pool](tablePools, 2),
		dumpOf[structs.Project](tableProjects, 2),
		dumpOf[structs.ProjectUsage](tableHoldings, 2),
		dumpOf[forecastRow](tableForecasts, 2),
		dumpOf[structs.User](tableUsers, 3),
		dumpOf[structs.Password](tablePasswords, 4),
		dumpOf[structs.Secret](tableSecrets, 5),
		dumpOf[structs.SecretKeyring](tableSecretKeys, 5),
		dumpOf[structs.NotifySettings](tableNotify, 6),
		dumpOf[structs.Notification](tableNotifications, 6),
		dumpOf[structs.NotifyMark](tableNotifyMark, 6),
		dumpOf[structs.Settings](tableSettings, 7),
		dumpOf[structs.ServiceAccount](tableServices, 8),
		dumpOf[structs.CodeTree](tableCode, 9),
		dumpOf[structs.DataObject](tableData, 10),
		dumpOf[structs.ImageRecord](tableImages, 11),
		dumpOf[structs.Template](tableTemplates, 12),
	}
}

// Persist writes the whole state to w. It may run beside Apply.
func (s *Snapshot) Persist(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	version := s.formatOf()
	if err := writeFrame(buffered, &dumpHeader{Format: formatName, Version: version, Index: s.Index(), Protocol: wire.ProtocolVersion}); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	for _, d := range dumps() {
		if !d.stands(version) {
			continue
		}
		if err := s.writeTable(buffered, d); err != nil {
			return fmt.Errorf("write state table %s: %w", d.table, err)
		}
	}
	meta := s.meta()
	if err := writeRing(buffered, sectionEvents, meta.ring); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := writeRing(buffered, sectionRuns, meta.runs); err != nil {
		return fmt.Errorf("write past runs: %w", err)
	}
	if err := writeFrame(buffered, &dumpTable{}); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func (s *Snapshot) writeTable(w io.Writer, d dump) error {
	rows := 0
	for range each[any](s.db, d.table, d.index, nil) {
		rows++
	}
	if err := writeFrame(w, &dumpTable{Table: d.table, Rows: rows}); err != nil {
		return err
	}
	for row := range each[any](s.db, d.table, d.index, nil) {
		if err := writeFrame(w, row); err != nil {
			return err
		}
	}
	return nil
}

func writeFrame(w io.Writer, value any) error {
	data, err := wire.Marshal(value)
	if err != nil {
		return err
	}
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(data)))
	if _, err := w.Write(length[:]); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Hash is the SHA-256 of the stored form of the state, in hexadecimal:
// replicas that applied the same log have the same. It costs a walk over all
// rows.
func (s *Snapshot) Hash() string {
	sum := sha256.New()
	if err := s.Persist(sum); err != nil {
		panic(fmt.Sprintf("hash state: %v", err)) // every row was decoded from the same form
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Restore replaces the whole state by one that Persist wrote, in one step that
// watchers see as a change. When it fails the state is as it was.
func (s *Store) Restore(r io.Reader) error {
	replaced := s.Snapshot().meta()
	tx := s.db.Txn(true)
	defer tx.Abort() // does nothing once committed
	for _, d := range dumps() {
		if !d.stands(formatVersion) {
			continue
		}
		if _, err := tx.DeleteAll(d.table, indexID+"_prefix", []byte(nil)); err != nil {
			return fmt.Errorf("clear state table %s: %w", d.table, err)
		}
	}
	if err := readState(tx, r); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if err := countAllWaiting(tx); err != nil {
		return err
	}
	beginLineage(tx, replaced)
	tx.Commit()
	s.shares = nil
	s.live.count(s.Snapshot())
	s.nodes.Store(int64(s.Snapshot().NodeCount()))
	if s.history != nil {
		s.history.Restored(s.Snapshot().Index())
	}
	return nil
}

// CheckState reports whether r holds a state that Restore would take, without
// changing anything.
func CheckState(r io.Reader) error {
	return New().Restore(r)
}

// readState inserts everything that r holds.
func readState(tx *memdb.Txn, r io.Reader) error {
	frames := &frameReader{r: bufio.NewReaderSize(r, 1<<16), unmarshal: wire.Unmarshal}
	var header dumpHeader
	if err := frames.decode(&header); err != nil {
		return err
	}
	switch {
	case header.Format != formatName:
		return fmt.Errorf("%w: it does not begin like one", ErrBadState)
	case header.Version < 1 || header.Version > formatVersion:
		return fmt.Errorf("%w: its format version is %d, this program knows 1 to %d", ErrBadState, header.Version, formatVersion)
	}
	frames.unmarshal = wire.DecoderOf(header.Protocol)
	for _, d := range dumps() {
		if !d.stands(header.Version) {
			continue
		}
		if err := readTable(tx, frames, d); err != nil {
			return fmt.Errorf("table %s: %w", d.table, err)
		}
	}
	events, err := readRing(frames, sectionEvents, earlier)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	var runs []*structs.PastRun
	if header.Version > 1 {
		if runs, err = readRing(frames, sectionRuns, func(a, b *structs.PastRun) bool { return a.Seq < b.Seq }); err != nil {
			return fmt.Errorf("past runs: %w", err)
		}
	}
	var end dumpTable
	if err := frames.decode(&end); err != nil {
		return err
	}
	if end != (dumpTable{}) {
		return fmt.Errorf("%w: it does not end where it should", ErrBadState)
	}
	if _, err := frames.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: bytes follow its end", ErrBadState)
	}
	if err := checkRows(tx, header.Index); err != nil {
		return err
	}
	if header.Version == 1 {
		upgradeFrom1(tx)
	}
	putRings(tx, events, runs)
	return nil
}

// readTable inserts the rows of one table.
func readTable(tx *memdb.Txn, frames *frameReader, d dump) error {
	var head dumpTable
	if err := frames.decode(&head); err != nil {
		return err
	}
	if head.Table != d.table || head.Rows < 0 {
		return fmt.Errorf("%w: found table %q", ErrBadState, head.Table)
	}
	for range head.Rows {
		data, err := frames.next()
		if err != nil {
			return err
		}
		if d.read == nil {
			continue // nobody needs it any more
		}
		row, err := d.read(frames.unmarshal, data)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBadState, err)
		}
		if !complete(row) {
			return fmt.Errorf("%w: a row is incomplete", ErrBadState)
		}
		switch row := row.(type) {
		case *jobRow:
			internJob(row.Job)
		case *structs.Node:
			internNode(row)
		}
		mustInsert(tx, d.table, row)
	}
	return nil
}

// complete reports whether a row holds what its keys are made of.
func complete(row any) bool {
	switch r := row.(type) {
	case *jobRow:
		return r.Job != nil
	case *subjobRow:
		return r.Subjob != nil
	case *attemptRow:
		return r.Attempt != nil
	case *jobStatusRow:
		return !slices.Contains(r.History, nil)
	case *forecastRow:
		return len(r.Given) > 0
	}
	return true
}

// checkRows makes sure that what every reader relies on is there, and lets
// subjobs point at their jobs.
func checkRows(tx *memdb.Txn, index uint64) error {
	meta, ok := first[*metaRow](tx, tableMeta, indexID, metaKey())
	if !ok || meta.Index != index {
		return fmt.Errorf("%w: its index is missing or another", ErrBadState)
	}
	if _, ok := first[*scheduleRow](tx, tableSchedule, indexID, metaKey()); !ok {
		return fmt.Errorf("%w: its schedule index is missing", ErrBadState)
	}
	jobs := make(map[string]*jobRow)
	for row := range each[*jobRow](tx, tableJobs, indexID, nil) {
		jobs[row.Job.ID] = row
	}
	for row := range each[*subjobRow](tx, tableSubjobs, indexID, nil) {
		job, ok := jobs[row.Subjob.JobID]
		if !ok {
			return fmt.Errorf("%w: job %s is missing", ErrBadState, row.Subjob.JobID)
		}
		row.job = job // the row was decoded just now: nobody else has it
	}
	for row := range each[*jobStatusRow](tx, tableJobStatuses, indexID, nil) {
		if job, ok := jobs[row.JobID]; !ok || job.CreateIndex != row.Status.CreateIndex {
			return fmt.Errorf("%w: a status is of job %s, which is missing", ErrBadState, row.JobID)
		}
	}
	for row := range each[*jobRow](tx, tableJobs, indexID, nil) {
		if _, ok := first[*subjobRow](tx, tableSubjobs, indexID, subjobKey(row.Job.ID, 0)); !ok {
			return fmt.Errorf("%w: job %s has no subjobs", ErrBadState, row.Job.ID)
		}
		if _, ok := first[*jobStatusRow](tx, tableJobStatuses, indexID, indexKey(row.CreateIndex)); !ok {
			return fmt.Errorf("%w: the status of job %s is missing", ErrBadState, row.Job.ID)
		}
	}
	return nil
}

// frameReader cuts a stream into frames of bounded length.
type frameReader struct {
	r         *bufio.Reader
	buf       []byte
	unmarshal wire.Decoder
}

// next returns the bytes of the next frame, valid until the call after.
func (f *frameReader) next() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return nil, readProblem(err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > wire.MessageSizeMax {
		return nil, fmt.Errorf("%w: a frame of %d bytes is over the limit of %d", ErrBadState, length, wire.MessageSizeMax)
	}
	// The buffer grows with what was really read, so that a false length costs
	// no memory.
	f.buf = f.buf[:0]
	for want := int(length); want > 0; {
		part := min(want, 1<<16)
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, part)...)
		if _, err := io.ReadFull(f.r, f.buf[at:]); err != nil {
			return nil, readProblem(err)
		}
		want -= part
	}
	return f.buf, nil
}

// readProblem tells a stream that ends too early from one that fails.
func readProblem(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is truncated", ErrBadState)
	}
	return err
}

func (f *frameReader) decode(value any) error {
	data, err := f.next()
	if err != nil {
		return err
	}
	if err := f.unmarshal(data, value); err != nil {
		return fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return nil
}
