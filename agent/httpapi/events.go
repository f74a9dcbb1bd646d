package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// eventHandlers reports what happens.
type eventHandlers struct{ *core }

// Times of streams.
const (
	eventsBeat   = 3 * time.Second  // an empty line says that the stream lives
	writeTimeout = 30 * time.Second // for a reader that does not take what it asked for
	execPing     = 20 * time.Second
)

// stream writes what happens, one JSON value a line, filtered to what
// the caller may see.
func (h *eventHandlers) stream(r *front.Request) error {
	if err := h.refresh(r); err != nil {
		return err
	}
	q := front.Query{R: r}
	after, job, project := place(&q), q.Text("job"), q.Text("project")
	topics := splitList(q.Text("topic"))
	for _, topic := range topics {
		if !slices.Contains([]string{"job", "attempt", "alloc", "node", "pool", "project", "token", "cluster", "data", "template"}, topic) {
			q.Refuse("topic", topic)
		}
	}
	if q.Err != nil {
		return q.Err
	}
	store := h.store
	snapshot := store.Snapshot()
	if after.IsZero() {
		after = structs.CursorAfter(snapshot.Index())
	}
	if _, _, err := snapshot.EventsAfter(after); errors.Is(err, state.ErrEventsDropped) {
		return structs.NewError(structs.CodeConflict, "agent.events_dropped", "cursor", after.String())
	}
	wanted := func(now *state.Snapshot, e *structs.Event) bool {
		return (len(topics) == 0 || slices.Contains(topics, e.Topic)) && (job == "" || e.JobID == job) &&
			(project == "" || e.Project == project) && mayHear(r, now, e)
	}
	ctx, end := h.whileValid(r)
	defer end()
	r.Writer.Header().Set("Content-Type", "application/x-ndjson")
	r.SetIndex(max(after.Index-1, 1))
	lines := newLineWriter(r.Writer)
	// Without an event: up to where all is known, after the last line.
	known := func() error { return lines.write(api.EventLine{Index: after.Index - 1, Cursor: after.String()}) }
	if known() != nil {
		return nil
	}
	follower := store.Follow(after)
	for {
		beat, cancel := context.WithTimeout(ctx, eventsBeat)
		events, now, err := follower.Next(beat)
		cancel()
		switch {
		case ctx.Err() != nil:
			lines.fail(r, context.Cause(ctx))
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			if known() != nil {
				return nil
			}
			continue
		case err != nil:
			lines.fail(r, structs.NewError(structs.CodeConflict, "agent.events_dropped", "cursor", after.String()))
			return nil
		}
		after = structs.CursorAfter(now)
		current := store.Snapshot()
		for _, event := range events {
			if wanted(current, event) && lines.write(api.EventLine{Event: shownIn(r, current, event), Index: event.Index, Cursor: event.Cursor().String()}) != nil {
				return nil
			}
		}
	}
}

// shownIn is an event as the caller may see it now.
func shownIn(r *front.Request, now *state.Snapshot, event *structs.Event) *structs.Event {
	view, _ := now.Job(event.JobID)
	return shownEvent(r, now, view.Job, event)
}

// place is where a stream of events begins; zero: at what is new. Whoever has
// only an index may have seen some of its events: they come again.
func place(q *front.Query) structs.Cursor {
	if text := q.Text("cursor"); text != "" {
		cursor, ok := structs.ParseCursor(text)
		if !ok {
			q.Refuse("cursor", text)
		}
		return cursor
	}
	return structs.Cursor{Index: q.Uint("index")}
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// mayHear reports whether the caller may see what an event is about. Events of
// deleted jobs are left to those who may read everything in the project.
func mayHear(r *front.Request, now *state.Snapshot, e *structs.Event) bool {
	object, verb := auth.Object{Kind: auth.ObjectCluster}, auth.VerbOperatorRead
	switch {
	case e.JobID != "":
		object, verb = auth.Object{Kind: auth.ObjectJob, ID: e.JobID, Project: e.Project}, auth.VerbRead
		if view, ok := now.Job(e.JobID); ok {
			object = jobObject(view.Job)
		}
	case e.Topic == "node":
		object, verb = auth.Object{Kind: auth.ObjectNode, ID: e.NodeID}, auth.VerbRead
	case e.Topic == "pool":
		object, verb = auth.Object{Kind: auth.ObjectPool}, auth.VerbRead
	case e.Topic == "data":
		object, verb = heardData(now, e), auth.VerbRead
	case e.Topic == "template":
		object, verb = templateObject(e.Project, e.Params["template"], e.Params["owner"]), auth.VerbRead
	case e.Topic == "project":
		object, verb = auth.Object{Kind: auth.ObjectProject, ID: e.Project, Project: e.Project}, auth.VerbRead
	}
	return auth.Allowed(r.Caller.Principal, verb, object).Allow
}

// heardData is the named data that an event is about, as it is now, or as it was when it
// was removed.
func heardData(now *state.Snapshot, e *structs.Event) auth.Object {
	id := structs.DataID{Project: e.Params["project"], Kind: e.Params["kind"], Name: e.Params["name"]}
	if known := now.Data(id); known != nil {
		return dataObject(now, known)
	}
	return dataObject(now, &structs.DataObject{
		Project: id.Project, Kind: id.Kind, Name: id.Name, Owner: e.Params["owner"], Access: e.Params["access"], Published: e.Params["published"] != "",
	})
}
