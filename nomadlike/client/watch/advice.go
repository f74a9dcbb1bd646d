package watch

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"

	"nomadlike/nomadlike/client/envcheck"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/tasklog"
)

// adviceTail is how much of the end of standard error is looked at when a
// command has failed, in bytes.
const adviceTail = 64 << 10

// launchArgument is what a script says that does not take the argument which
// torch.distributed.launch passes to it: --local-rank since PyTorch 2, --local_rank before.
var launchArgument = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`unrecognized arguments:[^\n]*(--local[-_]rank)\b`)
})

// logFacts names what the end of a log says of a known mistake, for the rules
// of package envcheck. Pure.
func logFacts(tail []byte) envcheck.Facts {
	facts := make(envcheck.Facts)
	if found := launchArgument().FindSubmatch(tail); found != nil {
		facts["log.launch_argument"] = string(found[1])
	}
	return facts
}

// advise looks why a command of torch.distributed has failed, and reports what the
// table makes of the end of its log.
func (w *watcher) advise() {
	a := w.task.Assigned.Load()
	if a == nil || a.Job == nil || a.Job.Distributed.Mode != structs.ModePyTorch {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastLook)
	defer cancel()
	var tail bytes.Buffer
	err := tasklog.Read(ctx, tasklog.Request{Top: w.Layout.Root, Dir: w.Layout.Logs(w.id), Stream: tasklog.Stderr, TailBytes: adviceTail, Limit: adviceTail},
		func(chunk tasklog.Chunk) error {
			tail.Write(chunk.Data)
			return nil
		})
	facts := logFacts(tail.Bytes())
	if err != nil || len(facts) == 0 {
		return // without its log nothing is known
	}
	table, err := w.Environment.Table()
	if err != nil {
		return // the looks at the environment have said so
	}
	for _, found := range table.Judge(facts) {
		if strings.HasPrefix(found.ID, "log-") {
			w.say(structs.Told{
				Event: structs.EventEnvironmentFound, Severity: "warn",
				Params: map[string]string{"rule": found.ID, "text": found.Text, "text_zh": found.TextZh},
			})
		}
	}
}
