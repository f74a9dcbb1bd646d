package consensus

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

func TestHclogBridge(t *testing.T) {
	var out strings.Builder
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	log := newHclog(slog.New(handler), "raft").With("peer", "s2")
	log.Trace("trace")
	log.Info("entering follower state", "follower", "x")
	log.Info("election won", "term", 3)
	log.Warn("rejecting vote request since we have a leader")
	log.Warn("failed to contact quorum of nodes, stepping down")
	log.Error("failed to heartbeat to", "error", "refused")
	log.Error("failed to commit logs", "error", hclog.Fmt("%d%%", 5))
	want := `level=DEBUG msg=trace part=raft peer=s2
level=DEBUG msg="entering follower state" part=raft peer=s2 follower=x
level=INFO msg="election won" part=raft peer=s2 term=3
level=DEBUG msg="rejecting vote request since we have a leader" part=raft peer=s2
level=WARN msg="failed to contact quorum of nodes, stepping down" part=raft peer=s2
level=DEBUG msg="failed to heartbeat to" part=raft peer=s2 error=refused
level=ERROR msg="failed to commit logs" part=raft peer=s2 error=5%
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := log.Named("net").Name(); got != "raft.net" {
		t.Errorf("name %q", got)
	}
	if log.GetLevel() != hclog.Debug || !log.IsWarn() {
		t.Errorf("level %s", log.GetLevel())
	}
}
