package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/structs"
)

// How a server looks for a cluster that knows it, before it founds one.
const (
	foundLook     = 900 * time.Millisecond // servers call each other each second, leaders more often
	foundCallsMax = 64                     // hellos that are read at once
	knownFile     = "servers.json"         // the servers that gossip knew
)

// errOverheard ends the handshake of a call that was only listened to.
var errOverheard = errors.New("this server has no identity yet")

// founding is what a server goes by that would make a cluster.
type founding struct {
	config config.Config
	addr   string        // host:port under which others would reach it
	look   time.Duration // how long it asks and listens
	log    *slog.Logger
}

// mayFound refuses to make a second cluster where the first one is still there:
// a server whose disk was lost and that is started with its old command. It asks
// the servers that the configuration and the data directory name, and listens
// for a moment whether servers call this address as one of their own. What is
// heard is a hint and no proof, which this server could not check: it refuses,
// and whoever knows better says so with -found.
func (f *founding) mayFound(ctx context.Context, listener net.Listener) error {
	if f.config.Found || f.config.Dev {
		return nil
	}
	known, err := gossip.KnownFile(filepath.Join(f.config.DataDir, knownFile)).Load()
	if err != nil {
		f.log.Warn("what the data directory remembers of other servers is not read", logkey.Error, err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.look)
	defer cancel()
	var looking sync.WaitGroup
	answers := make(chan *structs.Error, foundCallsMax)
	for _, addr := range foundAsk(f.config.Client.Servers, known, f.addr) {
		looking.Go(func() {
			if _, err := askAgent(ctx, addr); err == nil {
				answers <- f.refuse("agent.refuse.found_answers", "address", addr)
				cancel()
			}
		})
	}
	looking.Go(func() {
		if from := overhear(ctx, listener, f.calledBack); from != "" {
			answers <- f.refuse("agent.refuse.found_called", "address", f.addr, "from", from)
			cancel()
		}
	})
	looking.Wait()
	select {
	case refusal := <-answers:
		return refusal
	default:
	}
	if len(known) > 0 {
		names := make([]string, len(known))
		for i, one := range known {
			names[i] = one.Addr
		}
		return f.refuse("agent.refuse.found_known", "servers", strings.Join(names, ", "))
	}
	return nil
}

func (f *founding) refuse(id string, args ...any) *structs.Error {
	return structs.NewError(structs.CodeConflict, id, append(args, "dir", f.config.DataDir)...)
}

// foundAsk lists the addresses to ask, without repetitions and this server's own.
func foundAsk(servers []string, known []gossip.KnownServer, self string) []string {
	var addresses []string
	add := func(addr string) {
		if addr != "" && addr != self && !slices.Contains(addresses, addr) && len(addresses) < foundCallsMax/2 {
			addresses = append(addresses, addr)
		}
	}
	for _, addr := range servers {
		add(addr)
	}
	for _, one := range known {
		add(one.RPCAddr)
	}
	return addresses
}

// askAgent reads in the certificate of whoever answers at addr which agent of
// which cluster it is. It trusts nobody yet, so nothing of it is verified.
func askAgent(ctx context.Context, addr string) (auth.Identity, error) {
	var found auth.Identity
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{auth.ALPNHTTP}, InsecureSkipVerify: true, // nothing is told, and the answer is a hint
		VerifyConnection: func(state tls.ConnectionState) error {
			var err error
			found, err = auth.ParseIdentity(state.PeerCertificates[0])
			return err
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return auth.Identity{}, err
	}
	return found, conn.Close()
}

// calledBack looks for the server that called, since nodes call as servers do:
// at its host, on the port that servers mostly have.
func (f *founding) calledBack(ctx context.Context, host string) (addr string, ok bool) {
	ports := []string{strconv.Itoa(config.DefaultHTTPPort)}
	if _, own, err := net.SplitHostPort(f.addr); err == nil && own != ports[0] {
		ports = append(ports, own)
	}
	for _, port := range ports {
		addr := net.JoinHostPort(host, port)
		if addr == f.addr {
			continue
		}
		if who, err := askAgent(ctx, addr); err == nil && who.Role == auth.RoleServer {
			return addr, true
		}
	}
	return "", false
}

// overhear reads the hellos of those who call until ctx ends, and returns where
// a server called from, "" if none did. A hello for Raft comes from servers
// alone; one for RPC counts when a server answers at its host. No more than the
// hello can be read: callers show their certificate to nobody but their own.
func overhear(ctx context.Context, listener net.Listener, back func(context.Context, string) (string, bool)) string {
	bounded, ok := listener.(*net.TCPListener)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = bounded.SetDeadline(time.Unix(1, 0))
		close(over)
	})
	var calls sync.WaitGroup
	from := make(chan string, 1)
	places := make(chan struct{}, foundCallsMax)
	for {
		conn, err := bounded.Accept()
		if err != nil {
			break // the deadline; a port that is broken says so when it is served
		}
		select {
		case places <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		calls.Go(func() {
			defer func() { <-places }()
			addr, counts := hear(ctx, conn, back)
			if !counts {
				return
			}
			select {
			case from <- addr:
				cancel()
			default:
			}
		})
	}
	cancel()
	calls.Wait()
	if !stop() {
		<-over
		_ = bounded.SetDeadline(time.Time{}) // the port is served next
	}
	select {
	case addr := <-from:
		return addr
	default:
		return ""
	}
}

// hear reads one hello and hangs up.
func hear(ctx context.Context, conn net.Conn, back func(context.Context, string) (string, bool)) (from string, counts bool) {
	defer conn.Close()
	var protocols []string
	heard := tls.Server(silent{conn}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		protocols = hello.SupportedProtos
		return nil, errOverheard
	}})
	if err := heard.HandshakeContext(ctx); !errors.Is(err, errOverheard) {
		return "", false
	}
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil || !slices.Contains(protocols, auth.ALPNRaft) && !slices.Contains(protocols, auth.ALPNRPC) {
		return "", false
	}
	if addr, found := back(ctx, host); found {
		return addr, true
	}
	return host, slices.Contains(protocols, auth.ALPNRaft)
}

// silent is a connection on which nothing is said.
type silent struct{ net.Conn }

// Write drops what crypto/tls would say of a handshake that it ends.
func (silent) Write(p []byte) (int, error) { return len(p), nil }
