package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// lookEvery is how often Register looks for the answer.
const lookEvery = 20 * time.Millisecond

// Register tells the agent of the task whose inbox is given that a checkpoint
// lies at path, an absolute one as the task sees it, and waits for the servers
// to have it until ctx ends. False without an error: the agent was told, and
// tells the servers as soon as it can. Errors are *structs.Error.
func Register(ctx context.Context, inbox, path string, step int64) (stored bool, err error) {
	if problem := structs.CheckpointPathProblem(path); problem != "" {
		return false, structs.NewError(structs.CodeInvalid, problem)
	}
	if step < 0 {
		return false, structs.NewError(structs.CodeInvalid, "client.checkpoint_step_bad")
	}
	if inbox == "" {
		return false, structs.NewError(structs.CodeInvalid, "client.checkpoint_outside")
	}
	at := filepath.Join(inbox, rand.Text())
	text := message{path: path, step: step, answer: true}.text()
	if err := os.WriteFile(at+partSuffix, []byte(text), 0o644); err != nil {
		return false, structs.NewError(structs.CodeUnavailable, "client.checkpoint_inbox", "cause", fmt.Sprint(err))
	}
	if err := os.Rename(at+partSuffix, at); err != nil {
		return false, structs.NewError(structs.CodeUnavailable, "client.checkpoint_inbox", "cause", fmt.Sprint(err))
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		answer, err := os.ReadFile(at + answerSuffix)
		switch {
		case err == nil:
			_ = os.Remove(at + answerSuffix) // goes with the task's directory otherwise
			if id := strings.TrimSpace(string(answer)); id != answerGood {
				return false, structs.NewError(structs.CodeInvalid, id)
			}
			return true, nil
		case !errors.Is(err, os.ErrNotExist):
			return false, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}
