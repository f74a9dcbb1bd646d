package prepare

import (
	"context"
	"log/slog"
	"os"
	"path"
	"strconv"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/code"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
	"nomadlike/plugins/driver"
)

const stepCode = "code"

// Code brings the code of jobs to their tasks. Any goroutine may use it.
type Code struct {
	Store  *code.Store
	Layout layout.Layout
	Events loop.Events
	Notes  session.Teller
	Now    func() time.Time
	Log    *slog.Logger
}

// bring puts the code that came with a job into the task's directory, as files of
// the task's own, and returns the path that the task has it at; "" when none came.
func (c *Code) bring(ctx context.Context, a *structs.Assignment, s *space, owner account.Owner) (string, *alloc.PrepareFailed) {
	if a.Job.Workdir == nil {
		return "", nil
	}
	id, dir, begun := a.Alloc.ID, c.Layout.Task(a.Alloc.ID), c.Now()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", alloc.ByNode("client.dir_failed", "cause", err)
	}
	defer root.Close()
	slow := time.AfterFunc(slowStep, func() { c.Events.Event(id, alloc.Progressed{Step: stepCode}) })
	defer slow.Stop()
	coming := codeComing{
		now: c.Now, at: begun,
		progress: func(percent int) {
			slow.Stop() // what it would say is said, with more
			c.Events.Event(id, alloc.Progressed{Step: stepCode, Percent: percent})
		},
		tell: func(told structs.Told) { c.Notes.Tell(id, a.Alloc.Attempt, told) },
	}
	of := code.Wanted{AllocID: id, Project: a.Job.Project, Tree: tree.Digest(a.Job.Workdir.Tree)}
	made, err := c.Store.Copy(ctx, of, root, launch.CodeDir, owner.GiveIn, coming.report)
	switch {
	case ctx.Err() != nil:
		return "", alloc.ByNode("client.prepare_cancelled")
	case err != nil:
		return "", blame(err)
	}
	if took := c.Now().Sub(begun); made.Fetched > 0 || took > slowStep {
		coming.tell(structs.Told{Event: structs.EventCodeReady, Params: map[string]string{
			"files": strconv.Itoa(made.Files), "size": words.Roughly(made.Bytes), "fetched": words.Roughly(made.Fetched),
			"took": took.Round(time.Millisecond).String(),
		}})
	}
	return s.showCode(path.Join(dir, launch.CodeDir), dir), nil
}

// Sweep removes code of jobs that no task was given for long.
func (c *Code) Sweep() {
	removed, err := c.Store.Sweep()
	if err != nil {
		c.Log.Warn("sweep the code of jobs", logkey.Error, err)
	}
	if removed > 0 {
		c.Log.Info("code of jobs that nobody used is removed", logkey.Count, removed)
	}
}

// showCode lets a task find its code in its workspace, and returns the path of it.
func (s *space) showCode(at, taskDir string) string {
	if s.dir != "" {
		s.links[launch.CodeDir] = at
		return at
	}
	s.mounts = append(s.mounts, driver.Mount{HostPath: at, TaskPath: launch.CodeView, Within: taskDir})
	return launch.CodeView
}

// codeComing tells the servers how far code is: now and then in percent, and with bytes
// at every quarter. It is used by one goroutine.
type codeComing struct {
	progress func(percent int)
	tell     func(structs.Told)
	now      func() time.Time

	at      time.Time // of the last report
	percent int       // that it brought
	noted   int       // percents of the last event
}

func (c *codeComing) report(done, total int64) {
	now := c.now()
	percent := int(min(float64(done)/float64(max(total, 1))*100, percentsPending))
	if percent < c.percent+fetchPercents || now.Sub(c.at) < fetchEvery { // what comes quickly is not told of
		return
	}
	c.at, c.percent = now, percent
	c.progress(percent)
	if quarter := percent / fetchNoteEvery * fetchNoteEvery; quarter > c.noted {
		c.noted = quarter
		c.tell(structs.Told{Event: structs.EventCodeComing, Params: map[string]string{
			"done": words.Mebibytes(done), "total": words.Mebibytes(total), "percent": strconv.Itoa(percent),
		}})
	}
}
