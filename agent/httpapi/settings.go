package httpapi

import (
	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// settingsHandlers answers about what is set for the whole cluster, and changes it.
type settingsHandlers struct{ *core }

func (h *settingsHandlers) read(r *front.Request) (*api.SettingsAnswer, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	pool, named := poolOf(q.Text("pool")), q.Bool("named")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot := h.store.Snapshot()
	settings := snapshot.Settings()
	out := api.SettingsAnswer{Effective: effectiveIn(snapshot, pool, r.Caller.Standing.Project, named)}
	out.Shared = sharedJobs(snapshot, "")
	if settings != nil {
		out.Settings = *settings
	}
	return &out, nil
}

// put changes what the request names. The decision rests on the record that the rest is
// taken from, so that nobody's change is lost.
func (h *settingsHandlers) put(r *front.Request, body *api.SettingsRequest) (*api.Changed, error) {
	if body.NoSharing == nil && body.Ceilings == nil && body.ServiceTokenTTL == nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.settings_empty")
	}
	var next structs.Settings
	if known := h.store.Snapshot().Settings(); known != nil {
		next = *known
	}
	r.RestsOn(structs.RestSettings, structs.SettingsID, next.ModifyIndex)
	if body.NoSharing != nil {
		next.NoSharing = *body.NoSharing
	}
	if body.Ceilings != nil {
		next.Ceilings = *body.Ceilings
	}
	if body.ServiceTokenTTL != nil {
		next.ServiceTokenTTL = *body.ServiceTokenTTL
	}
	if err := invalid("agent.settings_invalid", next.Validate()); err != nil {
		return nil, err
	}
	return h.change(r, structs.CommandSettingsPut, structs.SettingsPut{Settings: next})
}

// sharedJobs counts the jobs of a project, "" for all, that their owners share.
func sharedJobs(snapshot *state.Snapshot, project string) api.Shared {
	var out api.Shared
	for view := range snapshot.Jobs() {
		if view.Job.Access == structs.AccessNone || project != "" && view.Job.Project != project {
			continue
		}
		if view.Job.Access == structs.AccessReadWrite {
			out.ReadWrite++
		} else {
			out.ReadOnly++
		}
		if !view.Status.State.Terminal() {
			out.Live++
		}
	}
	return out
}
