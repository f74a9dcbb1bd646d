package front

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// aloneFront has the one endpoint of a table.
func aloneFront(bind func(*Table)) *Front {
	f := fakeFront(Limits{}, time.Now, nil)
	f.mux = http.NewServeMux()
	table := NewTable()
	bind(table)
	for _, route := range api.Routes() {
		if entry, bound := table.entries[route.Name]; bound {
			f.mux.Handle(route.Method+" "+route.Pattern, f.serve(route, entry))
		}
	}
	return f
}

// A request that is judged anew has its object found again, and keeps its body with
// what was changed in it.
func TestJudgedAnew(t *testing.T) {
	found, handled := 0, 0
	finder := Finder[*structs.Job]{From: api.FromJob, Find: func(r *Request) (*structs.Job, auth.Object, error) {
		found++
		return &structs.Job{ID: r.ID, Nodes: found}, auth.Object{Kind: auth.ObjectJob, ID: r.ID, Owner: "ada"}, nil
	}}
	f := aloneFront(func(table *Table) {
		WriteOf(About(table, finder), api.JobsStop, func(_ *Request, job *structs.Job, body *api.JobStopRequest) (*api.Changed, error) {
			if handled++; job.Nodes != handled || job.ID != "j1" {
				t.Errorf("handled %d times, of found object %+v", handled, job)
			}
			body.Reason += "!"
			if handled == 1 {
				return nil, structs.NewError(structs.CodeConflict, structs.RestChanged)
			}
			return &api.Changed{Index: uint64(len(body.Reason))}, nil
		})
	})
	answer := ask{method: http.MethodPost, path: "/v1/jobs/j1/stop", body: `{"reason":"why"}`}.of(f)
	var changed api.Changed
	if err := json.Unmarshal(answer.Body.Bytes(), &changed); err != nil || answer.Code != 200 || changed.Index != uint64(len("why!!")) || found != 2 {
		t.Errorf("%d %s: found %d times, %v", answer.Code, answer.Body, found, err)
	}
	// Two requests share neither body nor object.
	answer = ask{method: http.MethodPost, path: "/v1/jobs/j1/stop", body: `{}`}.of(f)
	if !strings.Contains(answer.Body.String(), `"index":1`) {
		t.Errorf("the next request: %s", answer.Body)
	}
}

// What was written before goes out as it is; an unhealthy server says so by the status.
func TestAnswersAreWritten(t *testing.T) {
	f := aloneFront(func(table *Table) {
		Read(table, api.QueueTimeline, func(*Request) (*Encoded[outlook.Timeline], error) {
			return &Encoded[outlook.Timeline]{Data: []byte("{ \"rows\": [] }\n")}, nil
		})
	})
	answer := ask{path: "/v1/queue/timeline"}.of(f)
	if answer.Body.String() != "{ \"rows\": [] }\n" || answer.Header().Get("Content-Length") != "15" || answer.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("%v %q", answer.Header(), answer.Body)
	}
	f = aloneFront(func(table *Table) {
		Read(table, api.AgentHealth, func(r *Request) (*api.Health, error) {
			r.SetUnhealthy()
			return &api.Health{}, nil
		})
	})
	if answer = (ask{path: "/v1/agent/health"}).of(f); answer.Code != http.StatusServiceUnavailable || !json.Valid(answer.Body.Bytes()) {
		t.Errorf("unhealthy: %d %q", answer.Code, answer.Body)
	}
}

// An endpoint has one handler, and its object is found as its route says.
func TestTableRefuses(t *testing.T) {
	list := func(*Request) (*api.PoolList, error) { return new(api.PoolList), nil }
	finder := Finder[*structs.Job]{From: api.FromJob}
	for name, bind := range map[string]func(*Table){
		"two handlers":        func(table *Table) { Read(table, api.PoolsList, list); Read(table, api.PoolsList, list) },
		"an object not found": func(table *Table) { Stream(table, api.AllocationsLogs, func(*Request) error { return nil }) },
		"another finder": func(table *Table) {
			ReadOf(About(table, finder), api.PoolsList, func(*Request, *structs.Job) (*api.PoolList, error) { return nil, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing is said", name)
				}
			}()
			bind(NewTable())
		}()
	}
}
