package state

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Store holds the tables. Apply, ApplyBatch and Restore are called by the log
// alone, one at a time; everything else may be called from any goroutine.
type Store struct {
	db      *memdb.MemDB
	blocked map[string]int // of Apply: where nominations lacked room; a hint that changes no outcome
	shares  map[string]int // of Apply: events in the ring by the node that told them; nil: to be counted anew
	live    liveCounts
	nodes   atomic.Int64 // of the newest state
	history History      // nil: nobody keeps it
}

// NodeCount is the number of nodes that the newest state knows, for callers that ask
// too often to take a snapshot each time.
func (s *Store) NodeCount() int { return int(s.nodes.Load()) }

// New returns an empty store.
func New() *Store {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		panic(fmt.Sprintf("build state schema: %v", err)) // the schema is code; every test builds it
	}
	store := &Store{db: db, blocked: make(map[string]int)}
	tx := db.Txn(true)
	mustInsert(tx, tableMeta, &metaRow{})
	mustInsert(tx, tableSchedule, &scheduleRow{})
	tx.Commit()
	return store
}

// UnknownCommandError is what Apply panics with when it meets a kind of
// command, or a field of one, that this version does not know. Skipping it would
// let this replica drift away from those that know it, so the server must stop.
type UnknownCommandError struct {
	Index    uint64
	Kind     structs.CommandKind
	Protocol int      // of the server that proposed it, 0 when unknown
	Fields   []string // that are unknown; nil: the kind is
}

// Error names the kind and the place in the log.
func (e *UnknownCommandError) Error() string {
	what := fmt.Sprintf("command kind %d is", e.Kind)
	if len(e.Fields) > 0 {
		what = fmt.Sprintf("%s of command kind %d is", strings.Join(e.Fields, ", "), e.Kind)
	}
	return fmt.Sprintf("apply log entry %d: %s unknown to this version, which speaks protocol %d; it was written by one that speaks %d: start that version, or a newer one, on this server; nothing is lost",
		e.Index, what, wire.ProtocolVersion, e.Protocol)
}

// Entry is one committed command and its place in the log.
type Entry struct {
	Index   uint64
	Command []byte
}

// Apply changes the state by the command that is committed at index. Indexes
// must rise from call to call; gaps are fine. A refused command changes
// nothing but the index. Apply panics with *UnknownCommandError for an unknown
// kind.
func (s *Store) Apply(index uint64, command []byte) structs.ApplyResult {
	return s.ApplyBatch([]Entry{{Index: index, Command: command}})[0]
}

// ApplyBatch applies entries in order, as Apply would one by one, and shows
// readers all of them at once: a busy log pays for one transaction instead of
// many.
func (s *Store) ApplyBatch(entries []Entry) []structs.ApplyResult {
	results := make([]structs.ApplyResult, len(entries))
	if len(entries) == 0 {
		return results
	}
	tx := s.begin()
	tx.shares, s.shares = s.shares, nil // of no use should this batch break off
	defer tx.db.Abort()                 // does nothing once committed; releases the writer when a command is unknown
	for i, entry := range entries {
		results[i] = tx.apply(entry)
	}
	tx.commit()
	s.shares = tx.shares
	s.live.add(tx.live, false)
	s.nodes.Store(int64(tx.meta.Nodes))
	if s.history != nil {
		s.history.Add(tx.meta.Index, tx.rows)
	}
	return results
}

// Check reports whether a server may propose these bytes: that they are a
// command of a known kind with a body of its form. The leader asks before it
// puts foreign bytes into the log, where an unknown kind would stop every
// server.
func Check(command []byte) *structs.Error {
	decoded, err := wire.DecodeCommand(command)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "state.malformed").Because(err)
	}
	apply, known := judgeOf(decoded.Kind)
	if !known {
		return structs.NewError(structs.CodeInvalid, "state.unknown_command", "kind", decoded.Kind)
	}
	var unknown *wire.UnknownFieldError
	if _, err := apply(wire.DecoderOf(decoded.Protocol), decoded.Body); errors.As(err, &unknown) {
		return structs.NewError(structs.CodeNotAvailable, "state.newer_command", "protocol", decoded.Protocol,
			"own", wire.ProtocolVersion, "fields", strings.Join(unknown.Fields, ", ")).Because(err)
	} else if err != nil {
		return structs.NewError(structs.CodeInvalid, "state.malformed").Because(err)
	}
	return nil
}

// judge changes the tables by one decoded command, or refuses it before it
// changed anything.
type judge func(*txn) (structs.ApplyResult, *structs.Error)

// reader decodes the body of a command and returns its judge.
type reader func(decode wire.Decoder, body []byte) (judge, error)

// read makes the reader of a command whose body is a T.
func read[T any](apply func(*txn, *T) (structs.ApplyResult, *structs.Error)) reader {
	return func(decode wire.Decoder, body []byte) (judge, error) {
		value := new(T)
		if err := decode(body, value); err != nil {
			return nil, err
		}
		return func(tx *txn) (structs.ApplyResult, *structs.Error) { return apply(tx, value) }, nil
	}
}

// judgeOf returns the reader of a kind, false for an unknown one.
func judgeOf(kind structs.CommandKind) (reader, bool) {
	switch kind {
	case structs.CommandClusterInit:
		return read(applyClusterInit), true
	case structs.CommandJobSubmit:
		return read(applyJobSubmit), true
	case structs.CommandJobStop:
		return read(applyJobStop), true
	case structs.CommandJobDelete:
		return read(applyJobDelete), true
	case structs.CommandJobPriority:
		return read(applyJobPriority), true
	case structs.CommandJobConsent:
		return read(applyJobConsent), true
	case structs.CommandJobAnnotate:
		return read(applyJobAnnotate), true
	case structs.CommandJobTimeLimit:
		return read(applyJobTimeLimit), true
	case structs.CommandQueueMove:
		return read(applyQueueMove), true
	case structs.CommandPoolPut:
		return read(applyPoolPut), true
	case structs.CommandPoolDelete:
		return read(applyPoolDelete), true
	case structs.CommandProjectPut:
		return read(applyProjectPut), true
	case structs.CommandProjectDelete:
		return read(applyProjectDelete), true
	case structs.CommandProjectMember:
		return read(applyProjectMember), true
	case structs.CommandProjectArchive:
		return read(applyProjectArchive), true
	case structs.CommandUserPut:
		return read(applyUserPut), true
	case structs.CommandUserState:
		return read(applyUserState), true
	case structs.CommandUserDelete:
		return read(applyUserDelete), true
	case structs.CommandPasswordSet:
		return read(applyPasswordSet), true
	case structs.CommandSignIn:
		return read(applySignIn), true
	case structs.CommandUserIdentity:
		return read(applyUserIdentity), true
	case structs.CommandTokenExtend:
		return read(applyTokenExtend), true
	case structs.CommandSecretSet:
		return read(applySecretSet), true
	case structs.CommandSecretDelete:
		return read(applySecretDelete), true
	case structs.CommandSecretKeyAdd:
		return read(applySecretKeyAdd), true
	case structs.CommandSecretsReseal:
		return read(applySecretsReseal), true
	case structs.CommandNotifySet:
		return read(applyNotifySet), true
	case structs.CommandNotifyStep:
		return read(applyNotifyStep), true
	case structs.CommandSettingsPut:
		return read(applySettingsPut), true
	case structs.CommandServiceAccountPut:
		return read(applyServiceAccountPut), true
	case structs.CommandServiceAccountState:
		return read(applyServiceAccountState), true
	case structs.CommandServiceAccountDelete:
		return read(applyServiceAccountDelete), true
	case structs.CommandServiceAccountRevoke:
		return read(applyServiceAccountRevoke), true
	case structs.CommandTokensUsed:
		return read(applyTokensUsed), true
	case structs.CommandCodePut:
		return read(applyCodePut), true
	case structs.CommandCodeForget:
		return read(applyCodeForget), true
	case structs.CommandDataPut:
		return read(applyDataPut), true
	case structs.CommandDataBegin:
		return read(applyDataBegin), true
	case structs.CommandDataCommit:
		return read(applyDataCommit), true
	case structs.CommandDataDrop:
		return read(applyDataDrop), true
	case structs.CommandDataExpire:
		return read(applyDataExpire), true
	case structs.CommandDataTag:
		return read(applyDataTag), true
	case structs.CommandDataMark:
		return read(applyDataMark), true
	case structs.CommandImagePut:
		return read(applyImagePut), true
	case structs.CommandImageTold:
		return read(applyImageTold), true
	case structs.CommandTemplatePut:
		return read(applyTemplatePut), true
	case structs.CommandJobParallel:
		return read(applyJobParallel), true
	case structs.CommandTemplateDelete:
		return read(applyTemplateDelete), true
	case structs.CommandJobControl:
		return read(applyJobControl), true
	case structs.CommandJobFinish:
		return read(applyJobFinish), true
	case structs.CommandForecasts:
		return read(applyForecasts), true
	case structs.CommandJobLimits:
		return read(applyJobLimits), true
	case structs.CommandPlan:
		return read(applyPlan), true
	case structs.CommandWaitReasons:
		return read(applyWaitReasons), true
	case structs.CommandAllocReports:
		return read(applyAllocReports), true
	case structs.CommandNodeRegister:
		return read(applyNodeRegister), true
	case structs.CommandNodeStatus:
		return read(applyNodeStatus), true
	case structs.CommandNodeEligibility:
		return read(applyNodeEligibility), true
	case structs.CommandLeaseOver:
		return read(applyLeaseOver), true
	case structs.CommandNodeRemove:
		return read(applyNodeRemove), true
	case structs.CommandDeviceTreated:
		return read(applyDeviceTreated), true
	case structs.CommandServerRemoval:
		return read(applyServerRemoval), true
	case structs.CommandServerReport:
		return read(applyServerReport), true
	case structs.CommandKeyRotate:
		return read(applyKeyRotate), true
	case structs.CommandCARotate:
		return read(applyCARotate), true
	case structs.CommandMaintenancePut:
		return read(applyMaintenancePut), true
	case structs.CommandMaintenanceStep:
		return read(applyMaintenanceStep), true
	case structs.CommandTokenPut:
		return read(applyTokenPut), true
	case structs.CommandTokenDelete:
		return read(applyTokenDelete), true
	case structs.CommandTokenBootstrap:
		return read(applyTokenBootstrap), true
	case structs.CommandJoinTokenPut:
		return read(applyJoinTokenPut), true
	case structs.CommandJoinTokenConsume:
		return read(applyJoinTokenConsume), true
	case structs.CommandJoinTokenDelete:
		return read(applyJoinTokenDelete), true
	case structs.CommandJobsForget:
		return read(applyJobsForget), true
	case structs.CommandGuarded:
		return readGuarded, true
	}
	return nil, false
}

// apply judges one entry within the transaction.
func (tx *txn) apply(entry Entry) structs.ApplyResult {
	if entry.Index <= tx.meta.Index {
		panic(fmt.Sprintf("apply log entry %d after %d: the log went backward", entry.Index, tx.meta.Index))
	}
	tx.meta.Index, tx.seq = entry.Index, 0
	command, err := wire.DecodeCommand(entry.Command)
	if err != nil {
		return refused(structs.NewError(structs.CodeInvalid, "state.malformed"))
	}
	read, known := judgeOf(command.Kind)
	if !known {
		panic(&UnknownCommandError{Index: entry.Index, Kind: command.Kind, Protocol: command.Protocol})
	}
	judge, err := read(wire.DecoderOf(command.Protocol), command.Body)
	var unknown *UnknownCommandError
	var fields *wire.UnknownFieldError
	switch {
	case errors.As(err, &unknown): // inside of another
		panic(&UnknownCommandError{Index: entry.Index, Kind: unknown.Kind, Protocol: command.Protocol})
	case errors.As(err, &fields):
		panic(&UnknownCommandError{Index: entry.Index, Kind: command.Kind, Protocol: command.Protocol, Fields: fields.Fields})
	case err != nil:
		return refused(structs.NewError(structs.CodeInvalid, "state.malformed"))
	}
	tx.now, tx.by = command.Now, command.By
	result, refusal := judge(tx)
	if refusal != nil {
		return refused(refusal)
	}
	tx.followJobs()
	tx.passTurns()
	tx.reviewNominations()
	return result
}

func refused(err *structs.Error) structs.ApplyResult { return structs.ApplyResult{Err: err} }
