package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// MaintenanceRequest asks for a window of maintenance, or changes one. Which nodes
// it closes is said by one of Nodes, Pool and All. A change keeps what it leaves
// out, and the nodes as a whole.
type MaintenanceRequest struct {
	Nodes       []string         `json:"nodes,omitempty"` // names or ids
	Pool        string           `json:"pool,omitempty"`
	All         bool             `json:"all,omitempty"`
	Start       structs.UnixNano `json:"start,omitempty"` // 0: now
	End         structs.UnixNano `json:"end,omitempty"`
	For         structs.Duration `json:"for,omitempty"` // instead of End
	Reason      *string          `json:"reason,omitempty"`
	KeepRunning *bool            `json:"keep_running,omitempty"` // what runs at the start goes on; else it is stopped as a drain stops it
}

// MaintenanceDetail is a window with what it closes now.
type MaintenanceDetail struct {
	structs.Maintenance
	Names   []string         `json:"names"`            // of the nodes that it covers now
	Running []MaintenanceJob `json:"running"`          // jobs on them that may run still at the start; once it has begun, that run
	Others  int              `json:"others,omitempty"` // more of them, which the caller may not read
}

// MaintenanceJob is a gang that runs into a window.
type MaintenanceJob struct {
	JobID      string           `json:"job_id"`
	JobName    string           `json:"job_name"`
	Project    string           `json:"project"`
	User       string           `json:"user,omitempty"`
	Subjob     int              `json:"subjob"`
	Nodes      []string         `json:"nodes"`      // names, of those that the window covers
	Expected   structs.UnixNano `json:"expected"`   // when it ends, as likely before as after; null: nobody knows
	Limit      structs.UnixNano `json:"limit"`      // when its time limit ends it; null: it has none
	Checkpoint bool             `json:"checkpoint"` // it keeps checkpoints: it is asked for one, and goes on from there
}

// MaintenanceList answers maintenance.list: the windows that have not ended, by
// start.
type MaintenanceList struct {
	Windows []MaintenanceDetail `json:"windows"`
}

// MaintenanceChanged answers what made or changed a window.
type MaintenanceChanged struct {
	Changed
	Window MaintenanceDetail `json:"window"`
}

// The endpoints of maintenance routes.
var (
	MaintenanceWindows = endpoint[None, MaintenanceList](Route{
		Name: "maintenance.list", Method: http.MethodGet, Pattern: "/v1/maintenance", Verb: VerbList, Kind: ObjectNode, From: FromKind, Blocking: true,
		Query: blockingParams(), Summary: "List the windows of maintenance that have not ended, and what runs into them",
	})
	MaintenanceAdd = endpoint[MaintenanceRequest, MaintenanceChanged](Route{
		Name: "maintenance.add", Method: http.MethodPost, Pattern: "/v1/maintenance", Verb: VerbDrain, Kind: ObjectNode, From: FromKind,
		Summary: "Close nodes for a window of time; the scheduler plans around it",
	})
	MaintenanceChange = endpoint[MaintenanceRequest, MaintenanceChanged](Route{
		Name: "maintenance.change", Method: http.MethodPut, Pattern: "/v1/maintenance/{id}", Verb: VerbDrain, Kind: ObjectNode, From: FromKind,
		Summary: "Move, shorten or extend a window of maintenance; one that has begun keeps its start",
	})
	MaintenanceEnd = endpoint[None, Changed](Route{
		Name: "maintenance.end", Method: http.MethodDelete, Pattern: "/v1/maintenance/{id}", Verb: VerbDrain, Kind: ObjectNode, From: FromKind,
		Summary: "End a window of maintenance now, or remove one that has not begun",
	})
)

func maintenanceRoutes() []Route {
	return []Route{
		MaintenanceWindows.route,
		MaintenanceAdd.route,
		MaintenanceChange.route,
		MaintenanceEnd.route,
	}
}

// Maintenance lists the windows of maintenance that have not ended.
func (c *Client) Maintenance(ctx context.Context, query *Query) (*MaintenanceList, *Meta, error) {
	return read(ctx, c, MaintenanceWindows, "", query.values())
}

// AddMaintenance makes a window of maintenance.
func (c *Client) AddMaintenance(ctx context.Context, request MaintenanceRequest) (*MaintenanceChanged, error) {
	return change(ctx, c, MaintenanceAdd, "", request)
}

// ChangeMaintenance changes a window of maintenance, by id.
func (c *Client) ChangeMaintenance(ctx context.Context, id string, request MaintenanceRequest) (*MaintenanceChanged, error) {
	return change(ctx, c, MaintenanceChange, id, request)
}

// EndMaintenance ends a window of maintenance, or removes one that has not begun.
func (c *Client) EndMaintenance(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, MaintenanceEnd, id, None{})
}
