package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// TestCopiesFromNodes: nodes of a gang hand each other the version that all of them read,
// and a later job on another node gets it of them, after the storage has lost it.
func TestCopiesFromNodes(t *testing.T) {
	nas, free := t.TempDir(), 0.001 // whatever else fills the disk
	founder := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), testOptions(t))
	join := readJoin(t, founder, joinClient)
	for _, name := range []string{"n0", "n1", "n2"} {
		settings := clientSettings(t.TempDir(), name, &join)
		settings.Client.Data = &config.DataBlock{FreeMin: &free}
		settings.Client.Storages = []config.StorageBlock{{Name: "nas", Path: nas + "/{kind}/{project}", Serves: []string{structs.StorageDataset}}}
		startAgent(t, settings, testOptions(t))
	}
	anonymous := clientFor(t, "https://"+founder.Addr(), string(founder.CA()), "")
	var client *api.Client
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		token, err := anonymous.BootstrapToken(t.Context(), readJoin(t, founder, setupFile))
		if err == nil {
			client = anonymous.WithToken(token.Secret)
		}
		return err == nil
	})
	eventually.Within(t, time.Minute, "see every node ready", func() bool {
		nodes, _, err := client.Nodes(t.Context(), nil)
		return err == nil && len(nodes.Nodes) == 3 && nodes.Nodes[0].Schedulable() && nodes.Nodes[1].Schedulable() && nodes.Nodes[2].Schedulable()
	})

	content := make([]byte, 6<<20)
	chance := rand.New(rand.NewPCG(5, 5))
	for i := range content {
		content[i] = byte(chance.Uint32())
	}
	m, source := directoryOf(t, map[string]string{"large": string(content), "small": "one"})
	of := api.DataName{Name: "faces"}
	begun, err := client.BeginDataUpload(t.Context(), of, api.DataUploadRequest{Digest: string(m.Digest()), Files: m.Files(), Bytes: m.Bytes(), Storage: "nas"})
	if err != nil {
		t.Fatal(err)
	}
	sender := client.DataSender(of, begun.Upload, m.Digest())
	if err := sender.Manifest(t.Context(), m.Encode()); err != nil {
		t.Fatal(err)
	}
	for _, chunk := range m.Chunks() {
		if err := sender.Chunks(t.Context(), piecesOf(t, source, chunk)); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Within(t, time.Minute, "have the version made", func() bool {
		told, err := sender.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return told.Done
	})

	file := func(nodes, where string) string {
		return `
job "reads" {
  nodes = ` + nodes + `
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  placement { ` + where + ` }
  dataset "faces" {
    read_only = true
    prepare   = true
  }
  task {
    driver  = "exec"
    command = "sha256sum $NOMADLIKE_WORKSPACE/dataset/private/faces/large"
  }
}
`
	}
	sum := sha256.Sum256(content)
	reads := func(nodes, where string) (took []string) {
		t.Helper()
		job := runJob(t, client, file(nodes, where), structs.JobSucceeded)
		list, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, alloc := range list.Allocations {
			if got := logsOf(t, client, alloc.ID, api.LogOptions{}); !strings.HasPrefix(got, hex.EncodeToString(sum[:])) {
				t.Errorf("an allocation reads %q", got)
			}
		}
		told, _, err := client.JobEvents(t.Context(), job.Job.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range told.Events {
			if event.ID == structs.EventDataPrepared {
				took = append(took, event.Params["took"])
			}
		}
		return took
	}
	if took := reads("2", `nodes = ["n0", "n1"]`); len(took) != 2 {
		t.Errorf("the first job: %q", took)
	}
	// The bytes are gone from the storage; its directories are as they were.
	for _, name := range []string{"large", "small"} {
		matches, err := filepath.Glob(filepath.Join(nas, "dataset", "*", "faces", "1", name))
		if err != nil || len(matches) != 1 {
			t.Fatalf("%s on the storage: %q, %v", name, matches, err)
		}
		if err := os.Chmod(filepath.Dir(matches[0]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(matches[0]); err != nil {
			t.Fatal(err)
		}
	}
	took := reads("1", `nodes = ["n2"]`)
	if len(took) != 1 || !strings.Contains(took[0], "6MiB from ") || !strings.Contains(took[0], ", 0B from the storage") {
		t.Errorf("the later job: %q", took)
	}
}
