package httpapi

import (
	"context"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// How a server asks nodes what they measure.
const (
	usagePatience = 2 * time.Second // with all nodes of one request together
	usageAsked    = 64              // nodes asked at one time
	usageFresh    = time.Second     // answers younger than this serve several askers
	lastWordFor   = time.Minute     // how long the last word of a node that does not answer stands in
)

// survey asks nodes for their figures, which are in no log: the answers are as
// old as its clock says, and whoever is away answers nothing.
type survey struct {
	call func(context.Context, *structs.Node) (*structs.NodeUsage, error)
	now  clockFunc
	log  interface{ Debug(string, ...any) }

	mu struct {
		sync.Mutex
		last map[string]surveyed // by node id
	}
}

// surveyed is the last answer of a node.
type surveyed struct {
	usage *structs.NodeUsage
	at    time.Time // when it came
	fresh bool      // the newest question was answered
}

func newSurvey(now clockFunc, log interface{ Debug(string, ...any) }, call func(context.Context, *structs.Node) (*structs.NodeUsage, error)) *survey {
	s := &survey{call: call, now: now, log: log}
	s.mu.last = make(map[string]surveyed)
	return s
}

// ask returns the figures of nodes by node id, within usagePatience. Those of a
// node that did not answer now are its last ones, or missing. The figures are
// shared and must not be changed.
func (s *survey) ask(ctx context.Context, nodes []*structs.Node) map[string]surveyed {
	ctx, cancel := context.WithTimeout(ctx, usagePatience)
	defer cancel()
	var asking sync.WaitGroup
	places := make(chan struct{}, usageAsked)
	for _, node := range nodes {
		if !s.due(node) {
			continue
		}
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			usage, err := s.call(ctx, node)
			if err != nil {
				s.log.Debug("ask node for figures", logkey.NodeID, node.ID, logkey.Error, err)
			}
			s.note(node.ID, usage)
		})
	}
	asking.Wait()
	return s.answers(nodes)
}

// due reports whether a node has to be asked now.
func (s *survey) due(node *structs.Node) bool {
	if node.RPCAddr == "" || node.Status == structs.NodeLost || node.Status == structs.NodeLeft {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.mu.last[node.ID]
	age := s.now().Sub(last.at)
	return !last.fresh || age < 0 || age >= usageFresh
}

func (s *survey) note(nodeID string, usage *structs.NodeUsage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if usage != nil {
		s.mu.last[nodeID] = surveyed{usage: usage, at: s.now(), fresh: true}
		return
	}
	last := s.mu.last[nodeID]
	last.fresh = false
	s.mu.last[nodeID] = last
}

// answers returns what is known of nodes, and forgets what is old.
func (s *survey) answers(nodes []*structs.Node) map[string]surveyed {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for id, last := range s.mu.last {
		if last.usage == nil || now.Sub(last.at) > lastWordFor {
			delete(s.mu.last, id)
		}
	}
	found := make(map[string]surveyed, len(nodes))
	for _, node := range nodes {
		if last, ok := s.mu.last[node.ID]; ok {
			found[node.ID] = last
		}
	}
	return found
}

// usageOver asks nodes over connections of pool.
func usageOver(pool *rpc.Pool) func(context.Context, *structs.Node) (*structs.NodeUsage, error) {
	return func(ctx context.Context, node *structs.Node) (*structs.NodeUsage, error) {
		conn, err := pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
		if err != nil {
			return nil, err
		}
		return rpc.Call[structs.UsageRequest, structs.NodeUsage](ctx, conn, structs.MethodNodeUsage, &structs.UsageRequest{})
	}
}
