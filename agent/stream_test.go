package agent

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A reader that follows gets every line as it is written, and the end.
func TestLogsAreFollowed(t *testing.T) {
	_, client := devAgent(t)
	job := runJob(t, client, hello(`sh -c 'for i in 1 2 3; do echo line $i; sleep 0.05; done; echo err >&2'`), structs.JobRunning)
	alloc := allocOf(t, client, job.Job.ID)
	if got := logsOf(t, client, alloc.ID, api.LogOptions{Follow: true}); got != "line 1\nline 2\nline 3\n" {
		t.Errorf("followed %q", got)
	}
	if got := logsOf(t, client, alloc.ID, api.LogOptions{Stream: "stderr", Follow: true}); got != "err\n" {
		t.Errorf("stderr %q", got)
	}
	if got := logsOf(t, client, alloc.ID, api.LogOptions{Tail: 2}); got != "line 2\nline 3\n" {
		t.Errorf("tail %q", got)
	}
	if got := logsOf(t, client, alloc.ID[:10], api.LogOptions{Offset: 7}); got != "line 2\nline 3\n" {
		t.Errorf("offset %q", got)
	}
}

func TestEventsTellTheLifeOfAJob(t *testing.T) {
	_, client := devAgent(t)
	stream, err := client.Events(t.Context(), api.EventFilter{Topics: []string{"job", "alloc"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	job := runJob(t, client, hello("true"), structs.JobSucceeded)
	last := uint64(0)
	for seen := map[string]bool{}; !seen["event.job.succeeded"]; {
		event, err := stream.Next()
		if err != nil {
			t.Fatalf("%v after %v", err, seen)
		}
		if event.JobID != job.Job.ID || event.Index < last {
			t.Errorf("event %+v after index %d", event, last)
		}
		last = event.Index
		seen[event.ID] = true
	}
}

// Whoever may no longer do it sees what they have open end within a second: events,
// followed logs, a terminal, ssh and a blocking query.
func TestWhatIsOpenEndsWithTheRightToIt(t *testing.T) {
	t.Run("token revoked", func(t *testing.T) {
		agent, admin := devAgent(t)
		made := tokenOf(t, admin, api.TokenRequest{Role: "user", Project: "default", User: "ann"})
		closesWhatIsOpen(t, agent, admin, made, structs.CodeUnauthorized, func() error {
			_, err := admin.DeleteToken(t.Context(), made.Token.ID)
			return err
		})
	})
	for name, c := range map[string]struct {
		code structs.ErrorCode
		end  func(*api.Client) error
	}{
		"account disabled": {structs.CodeUnauthorized, func(admin *api.Client) error {
			_, err := admin.SetUserState(t.Context(), "ann", api.UserStateRequest{Disabled: true})
			return err
		}},
		"no member any more": {structs.CodeForbidden, func(admin *api.Client) error {
			_, err := admin.SetMember(t.Context(), "speech", api.MemberRequest{User: "ann"})
			return err
		}},
		"only to look": {structs.CodeUnauthorized, func(admin *api.Client) error {
			_, err := admin.SetMember(t.Context(), "speech", api.MemberRequest{User: "ann", Role: structs.RoleViewer})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			agent, admin := devAgent(t)
			if _, err := admin.PutUser(t.Context(), &structs.User{Name: "ann"}); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.SetMember(t.Context(), "speech", api.MemberRequest{User: "ann", Role: structs.RoleUser}); err != nil {
				t.Fatal(err)
			}
			made := tokenOf(t, admin, api.TokenRequest{Role: structs.RoleAccount, User: "ann"})
			closesWhatIsOpen(t, agent, admin, made, c.code, func() error { return c.end(admin) })
		})
	}
}

func tokenOf(t *testing.T, admin *api.Client, request api.TokenRequest) *api.NewToken {
	t.Helper()
	made, err := admin.CreateToken(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// closesWhatIsOpen has ann open everything that stays open, takes a right away, and
// expects all of it to end within a second with a code.
func closesWhatIsOpen(t *testing.T, agent *Agent, admin *api.Client, made *api.NewToken, code structs.ErrorCode, end func() error) {
	t.Helper()
	ann := admin.WithToken(made.Secret)
	job := runJob(t, ann, hello("sleep 600"), structs.JobRunning)
	alloc := allocOf(t, ann, job.Job.ID)
	events, err := ann.Events(t.Context(), api.EventFilter{Topics: []string{"token"}})
	if err != nil {
		t.Fatal(err)
	}
	logs, err := ann.Logs(t.Context(), alloc.ID, api.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	shell, err := ann.Exec(t.Context(), alloc.ID, structs.ExecStart{Command: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	overSSH := sshCommand(t, ann, alloc.ID, "sleep 600")
	ended := make(chan string, 5)
	go func() {
		_ = overSSH() // ssh tells its user no more than that the connection ended
		ended <- "ssh"
	}()
	go func() {
		_, err := events.Next()
		ended <- "events " + string(structs.CodeOf(err))
	}()
	go func() {
		_, err := io.ReadAll(logs)
		ended <- "logs " + string(structs.CodeOf(err))
	}()
	go func() {
		_, err := shell.Recv(t.Context())
		ended <- "exec " + string(structs.CodeOf(err))
	}()
	go func() {
		_, _, err := ann.Job(t.Context(), job.Job.ID, &api.Query{Index: 1 << 40})
		ended <- "query " + string(structs.CodeOf(err))
	}()
	eventually.Within(t, time.Minute, "see the command run", func() bool {
		return shell.SendStdin(t.Context(), []byte("x")) == nil
	})
	eventually.Within(t, time.Minute, "see all five open", func() bool {
		return agent.http.Handler.(*front.Front).Streams(made.Token.ID) == 5
	})
	if err := end(); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	got := map[string]bool{}
	for len(got) < 5 {
		select {
		case one := <-ended:
			if strings.HasPrefix(one, "exec") { // cat may have echoed first
				one = "exec"
			}
			got[one] = true
		case <-limit.C:
			t.Fatalf("only %v ended within a second", got)
		}
	}
	for _, want := range []string{"events ", "logs ", "query "} {
		if !got[want+string(code)] {
			t.Errorf("%s%s is missing in %v", want, code, got)
		}
	}
	if _, err := ann.Exec(t.Context(), alloc.ID, structs.ExecStart{Command: []string{"cat"}}); err == nil {
		t.Error("a terminal opens afterwards")
	}
	if _, err := ann.Exec(t.Context(), alloc.ID, structs.ExecStart{SSH: new(structs.SSHHost)}); err == nil {
		t.Error("ssh opens afterwards")
	}
	if _, err := admin.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Error(err)
	}
}

// recvAll gathers what a command writes until it ends.
func recvAll(t *testing.T, conn *api.ExecConn) (stdout, stderr string, exit *structs.ExecExit) {
	t.Helper()
	ctx, cancel := contextWithTimeout(t, time.Minute)
	defer cancel()
	for {
		down, err := conn.Recv(ctx)
		if errors.Is(err, io.EOF) {
			return stdout, stderr, exit
		}
		if err != nil {
			t.Fatalf("after %q %q %+v: %v", stdout, stderr, exit, err)
		}
		stdout, stderr = stdout+string(down.Stdout), stderr+string(down.Stderr)
		if down.Exit != nil {
			exit = down.Exit
		}
	}
}

func TestExec(t *testing.T) {
	_, client := devAgent(t)
	job := runJob(t, client, hello("sleep 600"), structs.JobRunning)
	alloc := allocOf(t, client, job.Job.ID)
	ctx := t.Context()

	conn, err := client.Exec(ctx, alloc.ID, structs.ExecStart{Command: []string{"sh", "-c", "cat; echo $NOMADLIKE_JOB_NAME; echo oh >&2; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.SendStdin(ctx, []byte("input\n")), conn.CloseStdin(ctx)); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exit := recvAll(t, conn)
	if stdout != "input\nhello\n" || stderr != "oh\n" || exit == nil || exit.Code != 3 {
		t.Errorf("got %q %q %+v", stdout, stderr, exit)
	}

	conn, err = client.Exec(ctx, alloc.ID, structs.ExecStart{
		Command: []string{"sh", "-c", "stty size; exec sleep 600"}, TTY: true, Size: &structs.TTYSize{Rows: 30, Cols: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	down, err := conn.Recv(ctx)
	if err != nil || !strings.Contains(string(down.Stdout), "30 100") {
		t.Errorf("terminal: %+v %v", down, err)
	}
	if err := conn.SendStdin(ctx, []byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if _, _, exit = recvAll(t, conn); exit == nil || exit.Code == 0 && exit.Signal == 0 {
		t.Errorf("after Ctrl-C: %+v", exit)
	}

	conn, err = client.Exec(ctx, alloc.ID, structs.ExecStart{Command: []string{"/no/such/program"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, exit = recvAll(t, conn); exit == nil || exit.Err == nil && exit.Code == 0 {
		t.Errorf("missing program: %+v", exit)
	}

	if _, err := client.StopJob(ctx, job.Job.ID, api.JobStopRequest{Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobStopped)
	if _, err = client.Exec(ctx, alloc.ID, structs.ExecStart{Command: []string{"true"}}); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("exec in an ended task: %v", err)
	}
}
