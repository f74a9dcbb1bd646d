package docker_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
)

// silentEngine stands between a driver and the real engine, and keeps to itself
// the requests that it is told to: they are taken and never answered, as by an
// engine that has locked itself up.
type silentEngine struct {
	listener net.Listener
	work     sync.WaitGroup

	mu struct {
		sync.Mutex
		keeps *regexp.Regexp // of "METHOD /path"; nil: nothing
		kept  int
		open  []net.Conn
	}
}

// startSilent returns the address of an engine that answers as the real one.
func startSilent(t *testing.T) (*silentEngine, string) {
	t.Helper()
	path := filepath.Join(stateDir(t), "e")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	e := &silentEngine{listener: listener}
	e.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.hold(conn)
			e.work.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(e.close)
	return e, "unix://" + path
}

func (e *silentEngine) close() {
	_ = e.listener.Close()
	e.mu.Lock()
	for _, conn := range e.mu.open {
		_ = conn.Close()
	}
	e.mu.Unlock()
	e.work.Wait()
}

func (e *silentEngine) hold(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.open = append(e.mu.open, conn)
}

// keep names the requests that are not answered from now on; "" none.
func (e *silentEngine) keep(pattern string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.keeps, e.mu.kept = nil, 0
	if pattern != "" {
		e.mu.keeps = regexp.MustCompile(pattern)
	}
}

// keptSome reports how many requests were kept since.
func (e *silentEngine) keptSome() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.kept
}

func (e *silentEngine) keeps(request *http.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	silent := e.mu.keeps != nil && e.mu.keeps.MatchString(request.Method+" "+request.URL.Path)
	if silent {
		e.mu.kept++
	}
	return silent
}

// serve hands one connection's requests on, each over a connection of its own.
func (e *silentEngine) serve(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		if e.keeps(request) {
			_, _ = io.Copy(io.Discard, from) // until the caller gives up
			return
		}
		real, err := net.Dial("unix", world.endpoint[len("unix://"):])
		if err != nil {
			return
		}
		e.hold(real)
		answered := func() bool {
			defer real.Close()
			if request.Write(real) != nil {
				return false
			}
			response, err := http.ReadResponse(bufio.NewReader(real), request)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			return response.Write(flushing{conn}) == nil && !response.Close
		}()
		if !answered {
			return
		}
	}
}

// flushing passes every write on at once.
type flushing struct{ net.Conn }

// TestSilentEngine has an engine take requests and never answer: whatever a
// caller asks for ends with the caller's patience and an error that says what was
// asked, the driver takes nothing along into the wait, and when the engine
// answers again everything can be done.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	needEngine(t)
	e, endpoint := startSilent(t)
	d := open(t, func(c *docker.Config) { c.Endpoint = endpoint })
	const patience = 2 * time.Second
	// bounded runs f, which has to end with an error soon after its patience.
	bounded := func(what string, f func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		err := f(ctx)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: after %v: %v", what, time.Since(begun).Round(10*time.Millisecond), err)
		if took := time.Since(begun); took > 10*patience {
			t.Errorf("%s took %v", what, took)
		}
	}

	running := dressed(drivertest.Shell(t, "echo ready; sleep 1000"))
	drivertest.Start(t, d, running)
	drivertest.AwaitOutput(t, running, "ready")
	for _, silence := range []struct{ what, pattern string }{
		{"create", "POST .*/containers/create"}, {"start", "POST .*/start"}, {"everything", "."}, // which lasts
	} {
		e.keep(silence.pattern)
		bounded(silence.what, func(ctx context.Context) error {
			spec := dressed(drivertest.Shell(t, "true"))
			spec.ID += driver.TaskID("-" + silence.what)
			_, err := d.Start(ctx, spec)
			return err
		})
	}
	bounded("wait", func(ctx context.Context) error { _, err := d.Wait(ctx, running.ID); return err })
	bounded("pause", func(ctx context.Context) error { return d.Pause(ctx, running.ID) })

	// The init of the container stops it without the engine.
	if err := d.Stop(t.Context(), running.ID, "", time.Second); err != nil {
		t.Errorf("stop beside a silent engine: %v", err)
	}
	if result := drivertest.Wait(t, d, running.ID); result.Signal == "" && result.Code == 0 {
		t.Errorf("the task ended with %+v", result)
	}
	bounded("remove", func(ctx context.Context) error { return d.Destroy(ctx, running.ID) })
	if e.keptSome() == 0 {
		t.Error("the engine was asked nothing")
	}

	e.keep("")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Destroy(ctx, running.ID); err != nil {
		t.Errorf("remove when the engine answers again: %v", err)
	}
	eventually.Within(t, time.Minute, "a task runs again", func() bool {
		spec := dressed(drivertest.Shell(t, "true"))
		spec.ID += "-after"
		if _, err := d.Start(ctx, spec); err != nil {
			t.Log(err)
			return false
		}
		result := drivertest.Wait(t, d, spec.ID)
		return result.Code == 0
	})
	// One that keeps removals only keeps nobody from starting and from closing.
	e.keep("DELETE .*/containers/")
	spec := dressed(drivertest.Shell(t, "true"))
	spec.ID += "-kept"
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	bounded("remove only", func(ctx context.Context) error { return d.Destroy(ctx, spec.ID) })
	e.keep("")
	if err := d.Destroy(ctx, spec.ID); err != nil {
		t.Error(err)
	}
}
