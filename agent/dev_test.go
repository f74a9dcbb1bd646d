package agent

import (
	"context"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The thin real path: file, HTTP, Raft, process, logs and back.
func TestDevelopmentAgentRunsAJob(t *testing.T) {
	begin := time.Now()
	_, client := devAgent(t)
	t.Logf("ready after %s", time.Since(begin))
	begin = time.Now()
	job := runJob(t, client, hello(`echo hello from $NOMADLIKE_JOB_NAME`), structs.JobSucceeded)
	t.Logf("job done after %s", time.Since(begin))
	alloc := allocOf(t, client, job.Job.ID)
	if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != "hello from hello\n" {
		t.Errorf("log %q", got)
	}
	events, _, err := client.JobEvents(t.Context(), job.Job.ID, nil)
	if err != nil || len(events.Events) < 3 {
		t.Errorf("history %+v %v", events, err)
	}
}

// A blocking query on a node wakes when its last allocation leaves.
func TestNodeThatEmptiesWakesReaders(t *testing.T) {
	_, client := devAgent(t)
	job := runJob(t, client, hello("sleep 1000"), structs.JobRunning)
	nodes, _, err := client.Nodes(t.Context(), nil)
	if err != nil || len(nodes.Nodes) != 1 {
		t.Fatalf("nodes %+v %v", nodes, err)
	}
	id := nodes.Nodes[0].ID
	node, meta, err := client.Node(t.Context(), id, nil)
	if err != nil || node.Used.Allocs != 1 {
		t.Fatalf("a node with one allocation: %+v %v", node, err)
	}
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for node.Used.Allocs > 0 {
		if node, meta, err = client.Node(ctx, id, &api.Query{Index: meta.Index, Wait: 5 * time.Minute}); err != nil {
			t.Fatalf("wait for an empty node: %v", err)
		}
	}
}

// What is asked for by a word that does not exist is refused, not silent.
func TestUnknownTopicIsRefused(t *testing.T) {
	_, client := devAgent(t)
	if _, err := client.Events(t.Context(), api.EventFilter{Topics: []string{"jobs"}}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("events of topic jobs: %v", err)
	}
	members, err := client.Members(t.Context())
	if err != nil || len(members.Members) != 1 || members.Members[0].Role != "both" || members.Members[0].Name == "" {
		t.Errorf("the one member, server and client: %+v %v", members, err)
	}
}
