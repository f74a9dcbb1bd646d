package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// connections are the ways to nodes; *rpc.Pool has them.
type connections interface {
	// Conn returns the connection to an agent.
	Conn(target rpc.Target) (*rpc.Conn, error)
}

// nodeCalls asks nodes what only they know.
type nodeCalls struct {
	store *state.Store
	log   *slog.Logger
	pool  connections
}

// of is the connection to a node.
func (c *nodeCalls) of(node *structs.Node) (*rpc.Conn, error) {
	return c.pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
}

// gatherPatience is how long all nodes together may take to answer.
const gatherPatience = 5 * time.Second

// errNodeAway is returned when a node cannot be asked because servers do not
// know where it is.
var errNodeAway = errors.New("the node is away")

// gather asks every node of allocations one question about those of them that
// are there, several nodes at a time, within gatherPatience. take gets the
// answers one after the other. It returns the names of the nodes that did not
// answer.
func gather[Request, Reply any](c *nodeCalls, ctx context.Context, allocs []*structs.Allocation, method string, request func(ids []string) *Request, take func(*Reply)) []string {
	byNode := make(map[string][]*structs.Allocation)
	for _, alloc := range allocs {
		byNode[alloc.NodeID] = append(byNode[alloc.NodeID], alloc)
	}
	ctx, cancel := context.WithTimeout(ctx, gatherPatience)
	defer cancel()
	snapshot := c.store.Snapshot()
	var mu sync.Mutex
	var away []string
	var asking sync.WaitGroup
	places := make(chan struct{}, usageAsked)
	for id, here := range byNode {
		ids := make([]string, len(here))
		for i, alloc := range here {
			ids[i] = alloc.ID
		}
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			answer, err := askNode[Request, Reply](ctx, c, snapshot.Node(id), method, request(ids))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.log.Debug("ask node about ranks of a job", logkey.NodeID, id, logkey.Error, err)
				away = append(away, here[0].NodeName)
				return
			}
			take(answer)
		})
	}
	asking.Wait()
	slices.SortFunc(away, strings.Compare)
	return away
}

// askNode asks one node; nil: it is gone.
func askNode[Request, Reply any](ctx context.Context, c *nodeCalls, node *structs.Node, method string, request *Request) (*Reply, error) {
	if node == nil || node.RPCAddr == "" || node.Status == structs.NodeLost || node.Status == structs.NodeLeft {
		return nil, errNodeAway
	}
	conn, err := c.of(node)
	if err != nil {
		return nil, err
	}
	return rpc.Call[Request, Reply](ctx, conn, method, request)
}

// ofAllocation is the connection to the agent that runs an allocation.
func (c *nodeCalls) ofAllocation(alloc *structs.Allocation) (*rpc.Conn, error) {
	node := c.store.Snapshot().Node(alloc.NodeID)
	if node == nil || node.RPCAddr == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", alloc.NodeName)
	}
	return c.of(node)
}
