package httpapi

import (
	"context"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Replica is what the API needs of the server in this process;
// *server.Server is one, FakeReplica another. Each noun takes the part that it
// needs.
type Replica interface {
	Log
	Setup
	Submissions
	Forecasts
	Boards
	Joins
}

// Log is the newest state, and the way to change it.
type Log interface {
	// Consistent waits until this server's state holds everything that was
	// acknowledged before the call, and returns it. It fails with
	// CodeUnavailable without a leader.
	Consistent(ctx context.Context) (*state.Snapshot, error)
	// SubmitGuarded puts a command into the log, through the leader, which is
	// applied only while guard stands, and waits until this server's state has
	// applied it. The error is the state's refusal, CodeTimeout when the outcome is
	// unknown, or CodeUnavailable when nothing was done.
	SubmitGuarded(ctx context.Context, guard structs.Guard, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error)
}

// Setup changes the state on behalf of callers whose right the log itself checks.
type Setup interface {
	// Submit is SubmitGuarded without a guard.
	Submit(ctx context.Context, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error)
}

// Submissions takes jobs in.
type Submissions interface {
	// SubmitJob queues a job that server.Admit checked.
	SubmitJob(ctx context.Context, guard structs.Guard, user, key string, admitted *server.Admitted) (jobID string, index uint64, err error)
}

// Forecasts looks into the future.
type Forecasts interface {
	// ForecastSnapshot shows the future of this server's state, at least as it was at
	// index knows. It is shared by all callers.
	ForecastSnapshot(ctx context.Context, knows uint64, jobID string) (*server.ForecastSnapshot, error)
	// Preview lets ask compute with the futures of the newest one, when it is the turn
	// of the asker.
	Preview(ctx context.Context, who server.Asker, ask func(*forecast.Futures) error) error
}

// Boards shows how the scheduler sees the newest state.
type Boards interface {
	// Try calls ask with a scheduler's board of its own, when it is the turn of the asker.
	Try(ctx context.Context, who server.Asker, ask func(*scheduler.Board)) error
	// Consult lets ask read a scheduler's board.
	Consult(ctx context.Context, ask func(*scheduler.Board)) error
}

// Joins lets new agents in.
type Joins interface {
	// Admit lets a new agent in and returns its certificate.
	Admit(ctx context.Context, join server.Join) (certificatePEM []byte, err error)
}

// clockFunc reads the wall clock.
type clockFunc = func() time.Time
