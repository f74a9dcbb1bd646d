package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// cards is the job file of a job that takes some cards, in a project.
func cards(name, project string, count int) string {
	hcl := named(name, `command = "sleep 600"`, fmt.Sprintf("project = %q", project))
	return strings.Replace(hcl, `"16MiB"`, fmt.Sprintf("\"16MiB\"\n    device \"nvidia/gpu\" {\n      count = %d\n    }", count), 1)
}

// Everybody who may see the queue sees which cards were held, and of their own jobs by
// whom.
func TestPast(t *testing.T) {
	h := newHarness(t)
	began := h.replica.Now()
	node := structs.Node{
		ID: fmt.Sprintf("%032x", 1), Name: "gpu-1", Pool: structs.PoolDefault, Status: structs.NodeReady, Incarnation: 1, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 8, Memory: 16 << 30, PortMin: 20000, PortMax: 20100},
	}
	for i := range 4 {
		node.Devices = append(node.Devices, structs.Device{ID: fmt.Sprint("card-", i), Index: i, Kind: "nvidia/gpu", Model: "H800", Memory: 80 << 30, Healthy: true})
	}
	h.submit(structs.CommandNodeRegister, &structs.NodeRegister{Node: node})
	short := h.start(h.admin, cards("short", "vision", 2))
	later := func(span time.Duration) { h.replica.SetNow(h.replica.Now().Add(span)) }
	later(time.Hour)
	h.report(short, structs.AllocComplete)
	later(time.Hour)
	h.start(h.admin, cards("long", "vision", 3))
	gone := h.start(h.admin, cards("gone", "speech", 1))
	later(time.Hour)
	h.report(gone, structs.AllocComplete)
	later(time.Minute)
	at := h.replica.Now()

	// told is what is told of a moment: which job held each card.
	told := func(past *outlook.Past, when time.Time) string {
		moment := past.At(structs.At(when))
		if len(moment.Nodes) != 1 {
			return fmt.Sprint(len(moment.Nodes), " nodes")
		}
		line := []string{"-", "-", "-", "-"}
		for _, span := range moment.Nodes[0].Spans {
			for _, place := range span.Cards {
				line[place] = fmt.Sprintf("%s/%s/%s", span.Job, span.Project, span.User)
			}
		}
		slices.Sort(line)
		return strings.Join(line, " ")
	}
	for _, c := range []struct {
		who   *api.Client
		early string
		late  string
	}{
		{h.admin, "- - short/vision/ada short/vision/ada", "gone/speech/ada" + strings.Repeat(" long/vision/ada", 3)},
		{h.as("user", "speech", "eve"), "- - // //", "// // // gone/speech/ada"},
	} {
		past, err := c.who.Past(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if !past.To.Time().Equal(at) || past.To.Sub(past.From) != outlookPast || past.More != 0 {
			t.Errorf("told from %v to %v, %d nodes are left out", past.From.Time(), past.To.Time(), past.More)
		}
		if joined := past.Nodes[0].JoinedAt; !joined.Time().Equal(began) {
			t.Errorf("the node joined at %v", joined.Time())
		}
		if got := told(past, began.Add(30*time.Minute)); got != c.early {
			t.Errorf("at first: %s, not %s", got, c.early)
		}
		if got := told(past, began.Add(90*time.Minute)); got != "- - - -" {
			t.Errorf("between them: %s", got)
		}
		if got := told(past, began.Add(150*time.Minute)); got != c.late {
			t.Errorf("at last: %s, not %s", got, c.late)
		}
		if len(past.Forgotten) != 0 {
			t.Errorf("forgotten: %+v", past.Forgotten)
		}
	}
	if _, err := h.admin.Past(t.Context(), "nowhere"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a pool that is not there: %v", err)
	}
	if one, err := h.admin.Past(t.Context(), structs.PoolDefault); err != nil || len(one.Nodes) != 1 {
		t.Errorf("one pool: %+v %v", one, err)
	}

	// Of a job that is forgotten it is still known that there was one.
	if _, err := h.admin.DeleteJob(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	later(pastFresh)
	past, err := h.admin.Past(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := told(past, began.Add(150*time.Minute)), "-"+strings.Repeat(" long/vision/ada", 3); got != want {
		t.Errorf("without the job that is forgotten: %s, not %s", got, want)
	}
	want := []outlook.PastUse{{Pool: structs.PoolDefault, Cards: 1, Nodes: 1, From: structs.At(began.Add(2 * time.Hour)), To: structs.At(began.Add(3 * time.Hour))}}
	if !slices.Equal(past.Forgotten, want) {
		t.Errorf("forgotten: %+v, not %+v", past.Forgotten, want)
	}
	if other, err := h.admin.Past(t.Context(), structs.PoolDefault); err != nil || !slices.Equal(other.Forgotten, want) {
		t.Errorf("of its pool: %+v %v", other, err)
	}
}
