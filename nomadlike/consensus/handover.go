package consensus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// abstainFor is how long a server without room leaves elections to others after
// it last heard a leader or led itself. Then it stands too: a leader that takes
// no writes still answers reads.
const abstainFor = 5 * time.Second

// errAbstains is returned instead of asking for votes while this server has no
// room for entries.
var errAbstains = errors.New("this server has no room for entries and leaves the election to others")

// checkFull looks at the disk; a leader without room hands over.
func (n *Node) checkFull() {
	n.checkSpace()
	if n.IsLeader() {
		n.lastLed.Store(time.Now().UnixNano())
		if n.diskFull.Load() {
			n.handOver()
		}
	}
}

// handOver makes a follower with room stand for election now. It is what raft's
// own transfer does in the end, without its flag, which would refuse all writes
// if this server led again: this leader takes no proposals already, waits for
// one follower to have everything, and tells it that its time has come. Until
// the follower has won, this server leads; if it does not, the next look tries
// again.
func (n *Node) handOver() {
	heir, found := n.heir(time.Now())
	if !found {
		return
	}
	n.handingOver.Store(true)
	defer n.handingOver.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), 2*n.config.Timings.Election)
	defer cancel()
	id, last := raft.ServerID(heir.ID), n.raft.LastIndex()
	for n.gate.followersAt(n.Term())[id].match < last {
		if !n.pause(ctx, n.config.Timings.Commit/5) || !n.IsLeader() {
			return
		}
	}
	n.config.Log.Warn("no room for entries: leadership is handed over", logkey.PeerID, heir.ID, logkey.Addr, heir.Addr)
	request := &raft.TimeoutNowRequest{RPCHeader: n.header()}
	if err := n.gate.TimeoutNow(id, raft.ServerAddress(heir.Addr), request, &raft.TimeoutNowResponse{}); err != nil {
		n.config.Log.Warn("leadership was not handed over", logkey.PeerID, heir.ID, logkey.Error, err)
		return
	}
	for n.IsLeader() && n.pause(ctx, n.config.Timings.Commit/5) {
	}
}

// heir is the voter in contact that has most of the log and, as far as anybody
// knows, room for more.
func (n *Node) heir(now time.Time) (Peer, bool) {
	known := n.gate.followersAt(n.Term())
	heirs := slices.DeleteFunc(n.Peers(), func(peer Peer) bool {
		f, ok := known[raft.ServerID(peer.ID)]
		return !ok || !peer.Voter || peer.ID == n.config.ID || f.lastError != "" ||
			now.Sub(f.contact) > n.config.Timings.Heartbeat || n.config.Full(peer.ID)
	})
	if len(heirs) == 0 {
		return Peer{}, false
	}
	return slices.MaxFunc(heirs, func(a, b Peer) int {
		return int(known[raft.ServerID(a.ID)].match) - int(known[raft.ServerID(b.ID)].match)
	}), true
}

// pause reports false when ctx or the node ends first.
func (n *Node) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-n.closing:
	}
	return false
}

// header is what raft's own calls carry.
func (n *Node) header() raft.RPCHeader {
	return raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax,
		ID:              []byte(n.config.ID),
		Addr:            n.gate.EncodePeer(raft.ServerID(n.config.ID), n.gate.LocalAddr()),
	}
}

// abstains reports whether this server should not seek leadership now.
func (n *Node) abstains() bool {
	if !n.diskFull.Load() || n.isOnlyVoter() {
		return false
	}
	last := time.Unix(0, n.lastLed.Load())
	if contact := n.raft.LastContact(); contact.After(last) {
		last = contact
	}
	return time.Since(last) < abstainFor
}
