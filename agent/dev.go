package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// devStart bounds how long development mode waits for its own log and node.
const devStart = 10 * time.Second

// development is what an agent in development mode does more than others: it signs
// its command line in, and ends what runs where its data directory goes with it.
type development struct {
	addr    string
	dataDir string
	getenv  func(string) string
	log     *slog.Logger
	life    *lifecycle

	identity *identity
	store    *state.Store
	server   *server.Server
	node     *clientPart
}

// open finishes development mode: it waits until the log and the
// node work, makes a management token and logs the command line in with it.
func (d *development) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devStart)
	defer cancel()
	secret, err := d.token(ctx)
	if err != nil {
		return fmt.Errorf("start development mode: %w", err)
	}
	dir, err := api.ContextDir(d.getenv)
	if err != nil {
		return err
	}
	saved := api.Context{Address: "https://" + d.addr, Cluster: d.identity.credentials.Self.Cluster, CA: string(d.identity.caPEM()), Token: secret}
	if kept, err := api.KeepContext(dir, saved.Cluster); err != nil {
		return err
	} else if kept != "" {
		d.log.Warn("the context of another cluster was put aside", logkey.Path, kept)
	}
	if err := api.SaveContext(dir, saved); err != nil {
		return err
	}
	// The node registers through its own stream; a command that follows at
	// once should find it there.
	_, err = d.store.Block(ctx, func(now *state.Snapshot) (bool, <-chan struct{}) {
		node := now.Node(d.node.id)
		return node != nil && node.Status == structs.NodeReady, now.WatchNode(d.node.id)
	})
	if err != nil {
		return fmt.Errorf("start development mode: wait for the node: %w", err)
	}
	select { // the servers know the node a moment before it knows them
	case <-d.node.client.Welcomed():
	case <-ctx.Done():
		return fmt.Errorf("start development mode: wait for the node: %w", context.Cause(ctx))
	}
	if strings.Contains(filepath.Base(d.dataDir), "nomadlike-dev-") {
		d.life.atStop(d.stopJobs)
	}
	return nil
}

// token stores a new management token, valid as long as this start lasts:
// those of earlier starts are revoked.
func (d *development) token(ctx context.Context) (string, error) {
	for token := range d.store.Snapshot().Tokens() {
		if token.CreatedBy == "dev" {
			if _, _, err := d.server.Submit(ctx, structs.CommandTokenDelete, "dev", structs.TokenDelete{ID: token.ID}); err != nil {
				return "", err
			}
		}
	}
	secret, token, err := httpapi.NewToken(rand.Reader, time.Now(), auth.TokenManagement, api.TokenRequest{Name: "development", Role: string(auth.RoleAdmin), User: "dev"}, "dev")
	if err != nil {
		return "", err
	}
	_, _, err = d.server.Submit(ctx, structs.CommandTokenPut, "dev", structs.TokenPut{Token: token})
	return secret, err
}

// stopJobs ends what runs before a development agent whose data directory
// goes with it: its tasks would have nobody left.
func (d *development) stopJobs(ctx context.Context) {
	for view := range d.store.Snapshot().Jobs() {
		if view.Status.State.Terminal() {
			continue
		}
		_, _, err := d.server.Submit(ctx, structs.CommandJobStop, "dev", structs.JobStop{JobID: view.Job.ID, Reason: "development mode ends"})
		if err != nil {
			d.log.Warn("job was not stopped", logkey.JobID, view.Job.ID, logkey.Error, err)
		}
	}
	wait, cancel := context.WithTimeout(ctx, stopTimeout/2)
	defer cancel()
	_, err := d.store.Block(wait, func(now *state.Snapshot) (bool, <-chan struct{}) {
		held := 0
		for range now.Occupants(d.node.id) {
			held++
		}
		return held == 0, now.WatchOccupants(d.node.id)
	})
	if err == nil {
		return
	}
	handles, err := d.node.driver.List(ctx)
	if err != nil {
		d.log.Warn("tasks are left", logkey.Error, err)
	}
	for _, handle := range handles {
		err := errors.Join(d.node.driver.Stop(ctx, handle.TaskID, "SIGKILL", 0), d.node.driver.Destroy(ctx, handle.TaskID))
		if err != nil {
			d.log.Warn("task is left", logkey.TaskID, handle.TaskID, logkey.Error, err)
		}
	}
}

func readSecret(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

// announce tells the person at the console what they need to know.
func (a *Agent) announce() {
	say := func(id string, pairs ...any) {
		fmt.Fprintln(a.options.Out, messages.Textf(a.options.Language, id, pairs...))
	}
	if a.config.Dev {
		dir, _ := api.ContextDir(a.options.Getenv) // it was good when the context was saved
		say("agent.print.dev", "address", "https://"+a.addr, "path", filepath.Join(dir, api.ContextFile))
		if saved, err := api.LoadContext(dir); err == nil && saved.Token != "" && a.options.UI != nil {
			say("agent.print.sign_in")
			fmt.Fprintln(a.options.Out, "  "+a.http.Handler.(*front.Front).SignInLink(a.addr, saved.Token))
		}
		return
	}
	say("agent.print.ready", "name", a.config.Name, "address", "https://"+a.addr)
	if !a.identity.founder || a.store.Snapshot().Cluster() != nil && a.store.Snapshot().Cluster().Bootstrapped {
		return
	}
	line := func(role, file string) {
		path := filepath.Join(a.config.DataDir, file)
		token, err := readSecret(path)
		if err != nil || !isTerminal(a.options.Out) { // what is not a terminal is kept: a journal, a file
			fmt.Fprintf(a.options.Out, "  nomadlike agent -%s -join-token-file %s\n", role, path)
			return
		}
		fmt.Fprintf(a.options.Out, "  nomadlike agent -%s -join-token %s\n", role, token)
	}
	say("agent.print.servers")
	line("server", joinServer)
	say("agent.print.clients")
	line("client", joinClient)
	say("agent.print.setup")
	fmt.Fprintf(a.options.Out, "  nomadlike token bootstrap -address https://%s -setup-file %s\n", a.addr, filepath.Join(a.config.DataDir, setupFile))
	say("agent.print.fingerprint", "fingerprint", a.identity.ca().Fingerprint())
}

// reload takes from a new configuration what can change while the agent
// runs, and reports what cannot.
func (a *Agent) reload(next config.Config) {
	if a.options.Level != nil && next.LogLevel != a.config.LogLevel {
		a.options.Level.Set(parseLevel(next.LogLevel))
		a.log.Info("log level changed", "level", next.LogLevel)
	}
	a.config.LogLevel = next.LogLevel
	if ignored := config.Changed(a.configured, next); len(ignored) > 0 {
		a.log.Warn("settings change only when the agent is started again", "settings", strings.Join(ignored, ", "))
	}
}

// ui serves the web pages, or says how to get them.
func (o Options) ui() http.Handler {
	pages := o.UI
	if pages == nil {
		pages = front.NoPages()
	}
	if o.Guides != nil {
		return o.Guides(pages)
	}
	return pages
}
