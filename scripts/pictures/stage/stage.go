// Package stage is demonstration clusters whose clock stands still: the real API over
// a state in memory, filled by real commands of a story that is always the same.
//
// Flow: Open makes a replica, lets a Story drive it from the day before until Now
// (people submit, the scheduler places, nodes report), and serves API, pages and guides
// at a free port of this machine. What only nodes know, their stand-ins answer over the
// real calls.
//
// Limits: nothing goes on after Now; whoever changes something sees it changed, but
// nothing runs. The stand-ins answer no terminals.
package stage

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	chacha "math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"nomadlike/agent/httpapi"
	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/ui"
	"nomadlike/website"
)

// Zone is where the people of the stories live.
const Zone = "Asia/Shanghai"

// Now is when the clock stands still: two in the afternoon of a Wednesday in Zone.
var Now = time.Date(2026, time.November, 25, 6, 0, 0, 0, time.UTC)

// Story fills a cluster, and ends at Now.
type Story func(context.Context, *Stage) error

// Stage is one cluster.
type Stage struct {
	Address string // of its pages
	Token   string // of ada, an administrator

	replica *httpapi.FakeReplica
	door    http.Handler
	nodes   *standIns
	people  map[string]*api.Client
	random  io.Reader
	agenda  agenda  // what is still to happen
	plays   []*play // jobs of the story
	seats   int     // nodes that were registered
	closers []func()
}

// Open plays a story and serves its end. Close ends it.
func Open(ctx context.Context, story Story) (*Stage, error) {
	s, err := perform(ctx, story)
	if err != nil {
		return nil, err
	}
	if err := s.serve(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// perform plays a story without a port.
func perform(ctx context.Context, story Story) (*Stage, error) {
	s := &Stage{random: &chance{from: chacha.NewChaCha8([32]byte{'n', 'o', 'm', 'a', 'd'})}, people: map[string]*api.Client{}}
	var err error
	if s.replica, err = httpapi.NewFakeReplica(Now.Add(-26*time.Hour), s.random); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.replica.Close)
	if s.nodes, err = newStandIns(s.replica.Store()); err != nil {
		s.Close()
		return nil, err
	}
	s.closers = append(s.closers, s.nodes.close)
	s.open()
	if err = s.hire(ctx); err == nil {
		err = story(ctx, s)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the cluster.
func (s *Stage) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// chance is a source of numbers that are always the same, for one or many.
type chance struct {
	sync.Mutex
	from io.Reader
}

// Read implements io.Reader.
func (c *chance) Read(b []byte) (int, error) {
	c.Lock()
	defer c.Unlock()
	return c.from.Read(b)
}

// noAuthority and noKeys are asked nothing: nobody joins, and no key changes.
type (
	noAuthority struct{ httpapi.Authority }
	noKeys      struct{ httpapi.Keys }
)

// open makes the door of the API.
func (s *Stage) open() {
	servers := newServers()
	pages := front.Pages(ui.Files())
	if pages == nil {
		pages = front.NoPages()
	}
	quiet := slog.New(slog.DiscardHandler)
	s.door = httpapi.New(httpapi.Config{
		Door: front.Config{
			Log: quiet, Now: time.Now, Rest: website.Handler(website.Files(), pages),
			Limits: front.Limits{Streams: 4096, RequestsPerSec: 1e6, SubmitsPerSec: 1e6, TokenFailures: 100},
		},
		Replica: s.replica, Store: s.replica.Store(), Now: s.replica.Now, Rand: s.random, Pool: s.nodes.pool,
		Members: servers, Servers: servers, Authority: noAuthority{}, Keys: noKeys{},
		Leads: func() bool { return true }, Leader: func() string { return "" }, Full: func() bool { return false }, Hears: func(string) bool { return true },
		Self:         func() api.AgentSelf { return api.AgentSelf{ID: servers.id(0), Name: servers.name(0), Version: version} },
		Health:       func() api.Health { return api.Health{Healthy: true} },
		KeepSessions: func(*front.Sessions) {},
	})
}

// serve opens a port, over TLS as browsers want it for cookies.
func (s *Stage) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	issued, err := s.nodes.ca.IssueAgent(auth.Grant{Role: auth.RoleServer, ID: hex.EncodeToString([]byte("door-of-a-story."))}, rand.Reader, time.Now())
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.door, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(listener, "", "") // until it is closed
	}()
	s.closers = append(s.closers, func() {
		_ = server.Close() // streams of pages never end by themselves
		<-served
	})
	s.Address = "https://" + listener.Addr().String()
	return nil
}

// hire makes a token for each of the people of the story.
func (s *Stage) hire(ctx context.Context) error {
	for _, one := range []struct{ user, role, project string }{
		{"ada", "admin", ""}, {"chen", "user", "vision"}, {"li", "user", "speech"}, {"wang", "user", "nlp"}, {"olga", "operator", ""},
	} {
		kind := auth.TokenUser
		if one.project == "" {
			kind = auth.TokenManagement
		}
		secret, token, err := httpapi.NewToken(s.random, s.replica.Now(), kind, api.TokenRequest{Name: one.user + "'s laptop", Role: one.role, Project: one.project, User: one.user}, "setup")
		if err != nil {
			return err
		}
		if err := s.put(ctx, structs.CommandTokenPut, structs.TokenPut{Token: token}); err != nil {
			return err
		}
		client, err := api.New(api.Config{Address: "https://127.0.0.1", Token: secret, RetryFor: -1, HTTPClient: &http.Client{Transport: s}})
		if err != nil {
			return err
		}
		s.people[one.user] = client
		if one.user == "ada" {
			s.Token = secret
		}
	}
	return nil
}

// put puts a command into the log, as servers and nodes do.
func (s *Stage) put(ctx context.Context, kind structs.CommandKind, body any) error {
	if _, _, err := s.replica.Submit(ctx, kind, servers{}.id(0), body); err != nil {
		return fmt.Errorf("command %d: %w", kind, err)
	}
	return nil
}
