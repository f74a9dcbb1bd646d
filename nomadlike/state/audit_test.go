package state

import (
	"strings"
	"testing"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Whoever moves a job in the queue is named in its history and in the stream of
// events, with what was done and when, in both languages; those who may not are not.
func TestQueueMovesAreAudited(t *testing.T) {
	store, index := New(), uint64(0)
	apply := func(kind structs.CommandKind, at structs.UnixNano, by string, body any) *structs.Error {
		t.Helper()
		command, err := wire.EncodeCommand(kind, at, by, body)
		if err != nil {
			t.Fatal(err)
		}
		index++
		return store.Apply(index, command).Err
	}
	for _, name := range []string{"a", "b"} {
		if err := apply(structs.CommandJobSubmit, 1, "ann", &structs.JobSubmit{Job: testJob(name, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	moves := []struct {
		body structs.QueueMove
		id   string
		text string
	}{
		{structs.QueueMove{JobID: "job-b"}, "event.job.moved_first", "front"},
		{structs.QueueMove{JobID: "job-b", Last: true}, "event.job.moved_last", "end"},
		{structs.QueueMove{JobID: "job-b", Before: "job-a"}, "event.job.moved_before", "before job a"},
	}
	for i, move := range moves {
		if err := apply(structs.CommandQueueMove, structs.UnixNano(100+i), "root", &move.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(structs.CommandQueueMove, 200, "root", &structs.QueueMove{JobID: "job-b", Before: "job-c"}); err == nil {
		t.Error("a job was moved before one that is not there")
	}
	snapshot := store.Snapshot()
	history, dropped := snapshot.JobEvents("job-b")
	stream, _, err := snapshot.EventsAfter(structs.Cursor{})
	if err != nil || dropped != 0 || len(history) != 1+len(moves) {
		t.Fatalf("%d events, %d dropped, %v", len(history), dropped, err)
	}
	for i, move := range moves {
		event := history[1+i]
		if event.ID != move.id || event.By != "root" || event.Time != structs.UnixNano(100+i) || event.JobID != "job-b" || event.Params["by"] != "root" {
			t.Errorf("the history says %+v, want %s", event, move.id)
		}
		if told := stream[len(stream)-len(moves)+i]; told != event {
			t.Errorf("the stream says %+v", told)
		}
		english, chinese := messages.Text(messages.English, event.ID, event.Params), messages.Text(messages.Chinese, event.ID, event.Params)
		if !strings.Contains(english, move.text) || !strings.Contains(english, "root") || !strings.Contains(chinese, "root") || english == chinese {
			t.Errorf("%s reads %q, %q", event.ID, english, chinese)
		}
	}
}
