package consensus

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// machine is the FSM as raft sees it. It counts what was applied, which raft's
// own applied index does not (that counts what was handed over), and keeps the
// marks of leaders from the FSM.
type machine struct {
	fsm FSM
	mu  struct {
		sync.Mutex
		applied uint64
		term    uint64 // of the entry applied last
		waiters waitHeap
		mark    leaderMark // the newest applied
		opened  uint64     // term in which this server was opened
		leaders uint64     // marks of later terms that were applied
	}
	onApplied func()      // after each batch; must not block
	onRefused func(error) // a state that the FSM does not take, which raft would only log and ask for again
	refused   error       // the last of these, until raft runs
}

var _ raft.BatchingFSM = (*machine)(nil)

// leaderMark is the first entry that a new leader proposes. Once it is applied,
// the leader's state holds everything that earlier leaders acknowledged, and
// its commit index is of its own term.
type leaderMark struct {
	ServerID string `json:"server_id"`
	Term     uint64 `json:"-"`
	Index    uint64 `json:"-"`
}

// encode returns the bytes that tell a mark from a command, kept in the log
// entry's extensions.
func (m leaderMark) encode() []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic("encode leader mark: " + err.Error()) // two strings always encode
	}
	return data
}

// Apply implements raft.FSM; raft calls ApplyBatch instead.
func (m *machine) Apply(entry *raft.Log) any { return m.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch implements raft.BatchingFSM.
func (m *machine) ApplyBatch(entries []*raft.Log) []any {
	answers := make([]any, len(entries))
	var mark leaderMark
	var places []int // of the commands among entries
	for i, entry := range entries {
		switch {
		case entry.Type != raft.LogCommand:
		case len(entry.Extensions) > 0:
			if err := json.Unmarshal(entry.Extensions, &mark); err != nil {
				panic(fmt.Sprintf("apply log entry %d: unknown extension: %v", entry.Index, err))
			}
			mark.Term, mark.Index = entry.Term, entry.Index
		default:
			places = append(places, i)
		}
	}
	m.applyCommands(entries, places, answers)
	last := entries[len(entries)-1]
	m.publish(last.Index, last.Term, mark)
	m.onApplied()
	return answers
}

// applyCommands passes the FSM the entries at places, at once when it takes
// several, and fills in its answers. Marks beside them mean nothing to it.
func (m *machine) applyCommands(entries []*raft.Log, places []int, answers []any) {
	batch, several := m.fsm.(BatchFSM)
	if !several || len(places) < 2 {
		for _, at := range places {
			answers[at] = m.fsm.Apply(entries[at].Index, entries[at].Data)
		}
		return
	}
	indexes, commands := make([]uint64, len(places)), make([][]byte, len(places))
	for i, at := range places {
		indexes[i], commands[i] = entries[at].Index, entries[at].Data
	}
	for i, answer := range batch.ApplyBatch(indexes, commands) {
		answers[places[i]] = answer
	}
}

// publish makes a new applied index known and wakes what waited for it.
func (m *machine) publish(index, term uint64, mark leaderMark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.applied, m.mu.term = index, term
	if mark.Index != 0 {
		m.mu.mark = mark
		if mark.Term > m.mu.opened {
			m.mu.leaders++
		}
	}
	for len(m.mu.waiters) > 0 && m.mu.waiters[0].index <= index {
		close(heap.Pop(&m.mu.waiters).(*waiter).done)
	}
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	snapshot, err := m.fsm.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("capture state: %w", err)
	}
	return machineSnapshot{snapshot}, nil
}

type machineSnapshot struct{ Snapshot }

// Persist implements raft.FSMSnapshot; raft closes or cancels the sink.
func (s machineSnapshot) Persist(sink raft.SnapshotSink) error { return s.Snapshot.Persist(sink) }

// Restore implements raft.FSM. The index of the restored state comes with the
// reader, which is always one of snapshotStore.
func (m *machine) Restore(source io.ReadCloser) error {
	inner := source
	for {
		wrapped, ok := inner.(raft.ReadCloserWrapper)
		if !ok {
			break
		}
		inner = wrapped.WrappedReadCloser()
	}
	body, ok := inner.(*snapshotBody)
	if !ok {
		return fmt.Errorf("restore state: reader is a %T and tells no index", inner)
	}
	if err := m.fsm.Restore(source); err != nil {
		m.refused = err
		m.onRefused(err)
		return fmt.Errorf("restore state: %w", err)
	}
	m.publish(body.meta.Index, body.meta.Term, leaderMark{})
	return nil
}

// applied is the index of the newest entry that the FSM has seen.
func (m *machine) applied() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.applied
}

// newestApplied is that index with its entry's term.
func (m *machine) newestApplied() (index, term uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.applied, m.mu.term
}

// countLeaders has leaders of later terms counted from now on: those before are of the
// log that this server reads again when it starts.
func (m *machine) countLeaders(opened uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.opened, m.mu.leaders = opened, 0
}

// leaders is how many leaders there were since this server was opened.
func (m *machine) leaders() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.leaders
}

// newestMark is the newest applied mark of a leader.
func (m *machine) newestMark() leaderMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.mark
}

// wait returns when the FSM has applied index, or when ctx or closing ends.
func (m *machine) wait(ctx context.Context, closing <-chan struct{}, index uint64) error {
	m.mu.Lock()
	if m.mu.applied >= index {
		m.mu.Unlock()
		return nil
	}
	w := &waiter{index: index, done: make(chan struct{})}
	heap.Push(&m.mu.waiters, w)
	m.mu.Unlock()
	var err error
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closing:
		err = ErrShutdown
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.at >= 0 {
		heap.Remove(&m.mu.waiters, w.at)
	}
	return fmt.Errorf("wait for index %d: %w", index, err)
}

// waiter is one caller of wait.
type waiter struct {
	index uint64
	done  chan struct{}
	at    int // place in the heap, -1 once taken off
}

// waitHeap orders waiters by index, lowest first.
type waitHeap []*waiter

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].index < h[j].index }
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *waitHeap) Push(x any) {
	w := x.(*waiter)
	w.at = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *waitHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.at = -1
	return w
}
