package agent

import (
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// manyAtOnce makes one log index with many events: a batch that is stopped.
func manyAtOnce(t *testing.T, client *api.Client) {
	t.Helper()
	submitted, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: `
job "many" {
  batch { count = 6 }
  placement { pool = "default" }
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task { command = "true" }
}
`}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.StopJob(t.Context(), submitted.JobID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
}

// readEvents returns the events of a stream, until count of them were read.
func readEvents(t *testing.T, client *api.Client, filter api.EventFilter, count int) ([]structs.Event, structs.Cursor) {
	t.Helper()
	stream, err := client.Events(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var events []structs.Event
	for range count {
		event, err := stream.Next()
		if err != nil {
			t.Fatalf("%v after %d of %d events", err, len(events), count)
		}
		events = append(events, *event)
	}
	return events, stream.Cursor()
}

// A stream that is cut after any of its events goes on at another agent with
// the next one: none is left out, none comes twice, also where many events
// share an index. A reader that has only an index gets some again and misses none.
func TestEventsGoOnAfterEveryCut(t *testing.T) {
	c := startCluster(t, 3, 0)
	admin, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	first, second := c.at(t, c.servers[1], admin.Secret), c.at(t, c.servers[2], admin.Secret)
	manyAtOnce(t, first)
	topics := []string{"job"}
	all, _ := readEvents(t, first, api.EventFilter{Index: 1, Topics: topics}, 7)
	shared := 0
	for i := 1; i < len(all); i++ {
		if all[i].Index == all[i-1].Index {
			shared++
		}
	}
	if shared < 5 {
		t.Fatalf("only %d events share an index with the one before: %+v", shared, all)
	}
	for cut := 1; cut < len(all); cut++ {
		head, cursor := readEvents(t, first, api.EventFilter{Index: 1, Topics: topics}, cut)
		rest, _ := readEvents(t, second, api.EventFilter{After: cursor, Topics: topics}, len(all)-cut)
		for i, event := range append(head, rest...) {
			if event.Cursor() != all[i].Cursor() || event.ID != all[i].ID {
				t.Errorf("cut after %d: event %d is %s %s, want %s %s", cut, i, event.Cursor(), event.ID, all[i].Cursor(), all[i].ID)
			}
		}
		index := head[cut-1].Index
		again, _ := readEvents(t, second, api.EventFilter{Index: index, Topics: topics}, 1)
		if again[0].Index != index || again[0].Cursor().Compare(all[cut-1].Cursor()) > 0 {
			t.Errorf("cut after %d: index %d goes on with %s", cut, index, again[0].Cursor())
		}
	}
}
