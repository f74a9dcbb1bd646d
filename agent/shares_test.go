package agent

import (
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A share link shows its one thing until it is deleted, and has no way to
// anything else; its secret is nowhere but in the first answer.
func TestShares(t *testing.T) {
	w := newWorld(t)
	ann := w.admin.WithToken(w.tokens["user"])
	made, err := ann.ShareJob(t.Context(), w.own, api.ShareRequest{Name: "for the meeting", TTL: structs.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if made.Path != "/jobs/"+w.own+"#share="+made.Secret || len(made.Token.Hash) > 0 {
		t.Errorf("link %+v", made)
	}
	if left := time.Until(made.Token.ExpiresAt.Time()); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it works for %v more", left)
	}
	guest := w.admin.WithToken(made.Secret)
	detail, _, err := guest.Job(t.Context(), w.own, nil)
	if err != nil {
		t.Fatal(err)
	}
	if value := detail.Job.Task.Env["SECRET"]; strings.Contains(value, "canary") || detail.Job.Source != "" {
		t.Errorf("a guest sees the environment: %q", value)
	}
	for name, try := range map[string]func() error{
		"another job":     func() error { _, _, err := guest.Job(t.Context(), w.mate, nil); return err },
		"a shared job":    func() error { _, _, err := guest.Job(t.Context(), w.other, nil); return err },
		"the list":        func() error { _, _, err := guest.Jobs(t.Context(), api.JobFilter{}, nil); return err },
		"the nodes":       func() error { _, _, err := guest.Nodes(t.Context(), nil); return err },
		"a further share": func() error { _, err := guest.ShareJob(t.Context(), w.own, api.ShareRequest{}); return err },
		"its deletion":    func() error { _, err := guest.DeleteToken(t.Context(), made.Token.ID); return err },
	} {
		if code := structs.CodeOf(try()); code != structs.CodeForbidden && code != structs.CodeNotFound {
			t.Errorf("a guest and %s: %v", name, code)
		}
	}
	for name, try := range map[string]func() error{
		"a mate's job": func() error { _, err := ann.ShareJob(t.Context(), w.mate, api.ShareRequest{}); return err },
		"the wall":     func() error { _, err := ann.ShareWall(t.Context(), api.ShareRequest{}); return err },
		"for ever": func() error {
			_, err := ann.ShareJob(t.Context(), w.own, api.ShareRequest{TTL: structs.Duration(api.ShareTTLMax + time.Hour)})
			return err
		},
		"a token as a guest": func() error {
			_, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "guest", Project: "one"})
			return err
		},
	} {
		if try() == nil {
			t.Errorf("may share %s", name)
		}
	}
	list, err := ann.JobShares(t.Context(), w.own)
	if err != nil || len(list.Shares) != 2 || list.Shares[0].ID != made.Token.ID && list.Shares[1].ID != made.Token.ID {
		t.Fatalf("links %+v, %v", list, err)
	}

	// Whoever has it may stand and watch; deleting the link ends that.
	watching := make(chan error, 1)
	go func() {
		_, _, err := guest.Job(t.Context(), w.own, &api.Query{Index: detail.Subjobs[0].ModifyIndex + 1_000_000, Wait: time.Minute})
		watching <- err
	}()
	if _, err := ann.DeleteToken(t.Context(), made.Token.ID); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the link is over", func() bool {
		_, _, err := guest.Job(t.Context(), w.own, nil)
		return structs.CodeOf(err) == structs.CodeUnauthorized
	})
	if err := <-watching; structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("the watch ended with %v", err)
	}
}

// The wall shows nodes and cards, and neither addresses nor anybody's work.
func TestWallShare(t *testing.T) {
	w := newWorld(t)
	board := w.admin.WithToken(w.tokens["board"])
	nodes, _, err := board.Nodes(t.Context(), nil)
	if err != nil || len(nodes.Nodes) != 1 {
		t.Fatalf("nodes %v, %v", nodes, err)
	}
	if node := nodes.Nodes[0]; node.Addr != "" || node.RPCAddr != "" || node.Version != "" || len(node.Attributes) > 0 || node.Name == "" {
		t.Errorf("node %+v", node)
	}
	for name, try := range map[string]func() error{
		"jobs":   func() error { _, _, err := board.Jobs(t.Context(), api.JobFilter{}, nil); return err },
		"a job":  func() error { _, _, err := board.Job(t.Context(), w.own, nil); return err },
		"a node": func() error { _, _, err := board.Node(t.Context(), w.agent.ID(), nil); return err },
		"events": func() error { _, err := board.NodeEvents(t.Context(), w.agent.ID()); return err },
		"tokens": func() error { _, _, err := board.Tokens(t.Context(), nil); return err },
	} {
		if code := structs.CodeOf(try()); code != structs.CodeForbidden && code != structs.CodeNotFound {
			t.Errorf("the wall and %s: %v", name, code)
		}
	}
}
