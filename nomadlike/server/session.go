package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// batchesMax bounds the report batches of one stream that wait for the log; a
// node that sends more without waiting for acknowledgements is cut off.
const batchesMax = 256

// NodeStream is the server's end of a node's stream. One goroutine sends
// while another receives; both calls end when the stream's context does.
type NodeStream interface {
	Send(*structs.SessionDown) error
	Recv() (*structs.SessionUp, error)
}

// sessions are the node streams that end at this server, one for each node, and
// what they share.
type sessions struct {
	config     *Config
	proposals  *proposals
	heartbeats *heartbeats
	contact    *contact
	allowances *allowances
	members    *memberCache
	receivers  sync.WaitGroup // of sessions, which may end after them

	mu struct {
		sync.Mutex
		closed bool
		byNode map[string]*session
	}
}

func newSessions(config *Config, proposals *proposals, heartbeats *heartbeats, contact *contact) *sessions {
	s := &sessions{
		config: config, proposals: proposals, heartbeats: heartbeats, contact: contact,
		allowances: &allowances{now: config.Now}, members: newMemberCache(),
	}
	s.mu.byNode = make(map[string]*session)
	return s
}

// begin makes session the one of its node, which starts to receive, and ends the
// one before.
func (s *sessions) begin(next *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return structs.NewError(structs.CodeUnavailable, "server.stopping")
	}
	if before := s.mu.byNode[next.nodeID]; before != nil {
		before.cancel(structs.NewError(structs.CodeConflict, "server.session_superseded"))
	}
	s.mu.byNode[next.nodeID] = next
	s.receivers.Go(next.receive) // it ends with the stream, after ServeNode
	return nil
}

// end forgets a session, and reports whether it was still its node's.
func (s *sessions) end(ended *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.byNode[ended.nodeID] != ended {
		return false
	}
	delete(s.mu.byNode, ended.nodeID)
	return true
}

// close ends all sessions; none begins after.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for _, open := range s.mu.byNode {
		open.cancel(structs.NewError(structs.CodeUnavailable, "server.stopping"))
	}
}

// wait waits for the receivers of sessions, after close.
func (s *sessions) wait() { s.receivers.Wait() }

// count is the number of open sessions.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.byNode)
}

// has reports whether a node's stream ends at this server.
func (s *sessions) has(nodeID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.byNode[nodeID] != nil
}

// session is one node's stream at this server. Two goroutines serve it: receive
// takes what comes, and push, which owns the sending side, tells the node. While
// there is something for the log, a third one, work, puts it there in its order:
// there are many sessions, and most of them say little.
type session struct {
	sessions *sessions
	nodeID   string
	name     string // random: tells this stream from every other in the state
	stream   NodeStream
	ctx      context.Context
	cancel   context.CancelCauseFunc

	replies chan *structs.SessionDown // from receive and work to push
	greeted chan struct{}             // closed when the node has said its first word
	every   atomic.Int64              // nanoseconds between heartbeats, as the node was told

	working sync.WaitGroup
	mu      struct {
		sync.Mutex
		inbox       []*structs.SessionUp // registrations, reports and farewell, in order
		works       bool                 // work is under way and will look at the inbox again
		over        bool                 // no work begins any more
		incarnation uint64
	}
}

// ServeNode serves the stream of the node whose certificate says nodeID, until
// the stream ends, a newer one of the node takes its place, or the server
// closes. The node speaks first. The stream is over when ServeNode returns;
// its error is for the node.
func (s *sessions) ServeNode(ctx context.Context, nodeID string, stream NodeStream) error {
	name, err := s.config.randomID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := &session{
		sessions: s, nodeID: nodeID, name: name, stream: stream, ctx: ctx, cancel: cancel,
		replies: make(chan *structs.SessionDown, 16), greeted: make(chan struct{}),
	}
	if err := s.begin(n); err != nil {
		return err
	}
	log := s.config.Logger.With(logkey.NodeID, nodeID)
	log.Debug("node stream begins")
	err = n.push()
	cancel(err)
	n.endWork()
	if s.end(n) {
		s.heartbeats.end(nodeID)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if errors.Is(err, errFarewell) {
		err = nil
	}
	log.Debug("node stream ended", logkey.Error, err)
	return err
}

// errFarewell ends a session whose node said goodbye.
var errFarewell = errors.New("node left in order")

// receive takes what the node says. Heartbeats are answered even while the log
// is slow.
func (n *session) receive() {
	greet := sync.OnceFunc(func() { close(n.greeted) })
	for {
		up, err := n.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("receive from node: %w", err)
			}
			n.cancel(err)
			return
		}
		if incarnation := n.registered(); incarnation != 0 {
			n.sessions.heartbeats.hear(n.nodeID, incarnation)
		}
		switch {
		case up.Heartbeat != nil:
			n.reply(&structs.SessionDown{HeartbeatAck: n.acknowledge(up.Heartbeat)})
		case up.Hello != nil, up.Reports != nil, up.Bye:
			greet()
			if !n.enqueue(up) {
				n.cancel(structs.NewError(structs.CodeTooLarge, "server.session_flooded", "max", batchesMax))
				return
			}
		}
		if n.ctx.Err() != nil {
			return
		}
	}
}

// acknowledge answers a heartbeat, and tells the node when it is to send them
// more seldom, or more often, than it was told before. A server that has lost
// the leader hears the node and says so, but does not renew its lease.
func (n *session) acknowledge(beat *structs.Heartbeat) *structs.HeartbeatAck {
	ack := &structs.HeartbeatAck{Seq: beat.Seq}
	if n.sessions.contact.recent() {
		ack.SentAt = beat.SentAt
	}
	every := heartbeatEvery(n.sessions.config.Timings.HeartbeatEvery, n.sessions.config.Store.NodeCount())
	if told := n.every.Load(); told != 0 && told != int64(every) {
		n.every.Store(int64(every))
		ack.Every = structs.Duration(every)
	}
	return ack
}

// enqueue hands something to work, and reports whether there was room.
func (n *session) enqueue(up *structs.SessionUp) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.inbox) >= batchesMax {
		return false
	}
	n.mu.inbox = append(n.mu.inbox, up)
	if !n.mu.works && !n.mu.over {
		n.mu.works = true
		n.working.Go(n.work)
	}
	return true
}

// drain takes everything that waits for work; nothing: work ends.
func (n *session) drain() []*structs.SessionUp {
	n.mu.Lock()
	defer n.mu.Unlock()
	inbox := n.mu.inbox
	n.mu.inbox = nil
	n.mu.works = len(inbox) > 0
	return inbox
}

// endWork waits for work, and lets none begin after.
func (n *session) endWork() {
	n.mu.Lock()
	n.mu.over = true
	n.mu.Unlock()
	n.working.Wait()
}

// reply hands a message to push.
func (n *session) reply(down *structs.SessionDown) {
	select {
	case n.replies <- down:
	case <-n.ctx.Done():
	}
}

// work puts into the log what the node says, in its order, until there is
// nothing more. Reports that gather while an entry is being committed go into
// the next one together.
func (n *session) work() {
	for {
		inbox := n.drain()
		if len(inbox) == 0 {
			return
		}
		if err := n.record(inbox); err != nil {
			n.cancel(err)
			return // with works set: nothing follows
		}
	}
}

// record puts what a node said into the log.
func (n *session) record(inbox []*structs.SessionUp) error {
	var batches []*structs.ReportBatch
	for _, up := range newest(inbox) {
		if up.Reports != nil {
			bytes, err := checkReports(n.nodeID, up.Reports)
			if err == nil {
				err = n.allow(n.ctx, bytes)
			}
			if err != nil {
				return err
			}
			plainBatch(up.Reports)
			knownBatch(up.Reports, n.sessions.config.Protocol())
			batches = append(batches, up.Reports)
			continue
		}
		if err := n.report(batches); err != nil {
			return err
		}
		batches = nil
		var err error
		if up.Hello != nil {
			err = n.register(up.Hello)
		} else {
			err = n.farewell()
		}
		if err != nil {
			return err
		}
	}
	return n.report(batches)
}

// register makes the node known, and welcomes it the first time.
func (n *session) register(hello *structs.NodeRegister) error {
	if hello.Node.ID != n.nodeID {
		return structs.NewError(structs.CodeForbidden, "server.session_foreign", "node", hello.Node.ID)
	}
	bytes, err := checkHello(hello)
	if err == nil {
		err = n.allow(n.ctx, bytes)
	}
	if err != nil {
		return err
	}
	body := *hello
	plainNode(&body.Node)
	body.Node.Session = n.name
	n.sayProtocol(&body.Node)
	if body.Unique = n.sessions.config.Protocol() >= wire.ProtocolNodeRemovals; !body.Unique {
		body.Node.Machine = "" // a server of before does not know it
	}
	if _, _, err := n.sessions.proposals.Submit(n.ctx, structs.CommandNodeRegister, n.nodeID, &body); err != nil {
		return err
	}
	n.mu.Lock()
	first := n.mu.incarnation == 0
	n.mu.incarnation = hello.Node.Incarnation
	n.mu.Unlock()
	n.sessions.heartbeats.hear(n.nodeID, hello.Node.Incarnation)
	if first {
		timings := n.sessions.config.Timings
		every := heartbeatEvery(timings.HeartbeatEvery, n.sessions.config.Store.NodeCount())
		n.every.Store(int64(every))
		n.reply(&structs.SessionDown{Welcome: &structs.Welcome{
			ServerID: n.sessions.config.ID, HeartbeatEvery: structs.Duration(every),
			LeaseTTL: structs.Duration(timings.LeaseTTL), Servers: n.sessions.config.Addresses(),
		}})
	}
	return nil
}

// sayProtocol notes which protocol the node's agent speaks, where the agent, one of
// before structs.AttrProtocol, does not say it itself and gossip has told.
func (n *session) sayProtocol(node *structs.Node) {
	if node.Attributes[structs.AttrProtocol] != "" {
		return
	}
	if told := n.sessions.config.Speaks(node.ID); told > 0 {
		all := maps.Clone(node.Attributes)
		if all == nil {
			all = make(map[string]string, 1)
		}
		all[structs.AttrProtocol] = strconv.Itoa(told)
		node.Attributes = all
	}
}

// registered returns the incarnation of this stream's newest registration, 0
// before the first.
func (n *session) registered() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.incarnation
}

// report puts batches into as few log entries as their size allows, and
// acknowledges them.
func (n *session) report(batches []*structs.ReportBatch) error {
	if len(batches) > 0 {
		if n.registered() == 0 {
			return structs.NewError(structs.CodeInvalid, "server.session_no_hello")
		}
	}
	for len(batches) > 0 {
		body := structs.AllocReports{NodeID: n.nodeID}
		taken := 0
		for _, batch := range batches {
			if taken > 0 && (len(body.Reports)+len(batch.Reports) > state.ReportsMax || len(body.Notes)+len(batch.Notes) > state.NotesMax ||
				len(batch.Notes) > 0 && len(body.Reports) > 0) { // notes are taken first: they may not pass earlier reports
				break
			}
			body.Reports = append(body.Reports, batch.Reports...)
			body.Notes = append(body.Notes, batch.Notes...)
			taken++
		}
		result, _, err := n.sessions.proposals.Submit(n.ctx, structs.CommandAllocReports, n.nodeID, &body)
		if err != nil {
			return err
		}
		refused := result.Refused
		for _, batch := range batches[:taken] {
			ack := &structs.ReportAck{Seq: batch.Seq}
			ack.Refused, refused = refusedOf(batch, refused)
			n.reply(&structs.SessionDown{ReportAck: ack})
		}
		batches = batches[taken:]
	}
	return nil
}

// refusedOf takes those refusals off the list that belong to batch: refusals
// stand in the order of the reports.
func refusedOf(batch *structs.ReportBatch, refused []string) (own, rest []string) {
	for _, report := range batch.Reports {
		if len(refused) > 0 && refused[0] == report.AllocID {
			own, refused = append(own, refused[0]), refused[1:]
		}
	}
	return own, refused
}

// farewell notes that the node's agent stopped in order.
func (n *session) farewell() error {
	change := &structs.NodeStatusChange{NodeID: n.nodeID, Incarnation: n.registered(), Status: structs.NodeLeft}
	if _, _, err := n.sessions.proposals.Submit(n.ctx, structs.CommandNodeStatus, n.nodeID, change); err != nil {
		return err
	}
	return errFarewell
}

// push tells the node what is answered and what changes, until the session
// ends. It is the only sender.
func (n *session) push() error {
	timeout := time.NewTimer(n.sessions.config.Timings.HelloTimeout)
	defer timeout.Stop()
	var (
		greeted   = n.greeted
		assigned  *assigned // nil before the welcome
		assign    <-chan struct{}
		nodeMoved <-chan struct{}
	)
	for {
		select {
		case <-n.ctx.Done():
			return context.Cause(n.ctx)
		case <-timeout.C:
			return structs.NewError(structs.CodeTimeout, "server.session_no_hello")
		case <-greeted: // how long its registration takes is the log's matter
			timeout.Stop()
			greeted = nil
		case down := <-n.replies:
			if err := n.stream.Send(down); err != nil {
				return fmt.Errorf("send to node: %w", err)
			}
			if down.Welcome == nil {
				continue
			}
			assigned = newAssigned(n.nodeID)
		case <-assign:
		case <-nodeMoved:
		}
		if assigned == nil {
			continue
		}
		snapshot := n.sessions.config.Store.Snapshot()
		if err := n.stillOurs(snapshot); err != nil {
			if structs.CodeOf(err) == structs.CodeForbidden { // it kills what it runs; another stream it does not get
				_ = n.stream.Send(&structs.SessionDown{Assignments: &structs.Assignments{Index: snapshot.Index(), Full: true}})
			}
			return err
		}
		if news := assigned.news(snapshot, n.sessions.members); news != nil {
			if err := n.stream.Send(&structs.SessionDown{Assignments: news}); err != nil {
				return fmt.Errorf("send to node: %w", err)
			}
		}
		assign, nodeMoved = assigned.changes(snapshot), snapshot.WatchNode(n.nodeID)
	}
}

// stillOurs reports why the stream must end: the node registered elsewhere
// since, or it was declared lost, and must say what it still runs.
func (n *session) stillOurs(snapshot *state.Snapshot) error {
	node := snapshot.Node(n.nodeID)
	switch {
	case snapshot.Cluster().IsNodeRemoved(n.nodeID):
		return structs.NewError(structs.CodeForbidden, "server.node_removed")
	case node == nil:
		return structs.NewError(structs.CodeNotFound, "state.node_unknown", "node", n.nodeID)
	case node.Session != n.name:
		return structs.NewError(structs.CodeConflict, "server.session_superseded")
	case node.Status == structs.NodeLost:
		return structs.NewError(structs.CodeConflict, "server.session_lost")
	}
	return nil
}
