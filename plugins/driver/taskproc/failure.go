package taskproc

import "fmt"

// Exit codes that shells use for commands they cannot execute.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Failure says why a command was not started, or a request not executed.
// It travels as JSON from the program beside a task to the driver.
type Failure struct {
	// Kind names a text of the message catalogue without its "driver." in
	// front, or one of the kinds below, which no user sees.
	Kind     string            `json:"kind"`
	Params   map[string]string `json:"params,omitempty"`
	ExitCode int               `json:"exit_code,omitempty"` // CodeNotExecutable or CodeNotFound; 0: not the command's fault
}

// Kinds of failures that are no texts of the catalogue.
const (
	FailEnded      = "ended"
	FailExists     = "exists" // the task has a record
	FailBadRequest = "bad_request"
	FailBusy       = "busy"
)

// Error renders the failure for logs.
func (f *Failure) Error() string { return fmt.Sprintf("%s %v", f.Kind, f.Params) }

// Refuse makes a failure; params are names and values by turns.
func Refuse(code int, kind string, params ...string) *Failure {
	f := &Failure{Kind: kind, Params: make(map[string]string, len(params)/2), ExitCode: code}
	for i := 0; i+1 < len(params); i += 2 {
		f.Params[params[i]] = params[i+1]
	}
	return f
}

// BadRequest is the failure of a request that makes no sense.
func BadRequest(cause string) *Failure { return Refuse(0, FailBadRequest, "cause", cause) }
