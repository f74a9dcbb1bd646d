package server

import (
	"errors"
	"testing"
	"testing/synctest"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// stopOfTomorrow is a command with a field of a later version.
type stopOfTomorrow struct {
	structs.JobStop
	Gently bool `json:"gently,omitempty" since:"99"`
}

// Nothing enters the log that the lowest server does not know; the refusal names
// it. What every server knows goes on.
func TestNothingNewWhileAServerIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.leader()
		for _, server := range c.servers {
			server.config.Lowest = func() (int, string) { return wire.OldestProtocol, "server-2" }
			server.config.Protocol = func() int { return wire.OldestProtocol }
		}
		for name, try := range map[string]struct {
			kind structs.CommandKind
			body any
		}{
			"a kind":  {structs.CommandGuarded, &structs.Guarded{}},
			"a field": {structs.CommandJobStop, &stopOfTomorrow{JobStop: structs.JobStop{JobID: "j"}, Gently: true}},
		} {
			for i, server := range c.servers {
				_, _, err := server.Submit(t.Context(), try.kind, "li", try.body)
				var refused *structs.Error
				if !errors.As(err, &refused) || refused.ID != "server.older_server" || refused.Params["server"] != "server-2" {
					t.Errorf("%s through server %d: %v", name, i, err)
				}
			}
		}
		if _, _, err := c.servers[c.leader()].decide(t.Context(), structs.CommandGuarded, &structs.Guarded{}); err == nil {
			t.Error("the leader's own duties propose it")
		}
		c.submit(1, testJob("known", 1))
	})
}
