package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hashicorp/memberlist"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// forgedMeta is what a liar says of itself.
type forgedMeta []byte

func (m forgedMeta) NodeMeta(int) []byte           { return m }
func (forgedMeta) NotifyMsg([]byte)                {}
func (forgedMeta) GetBroadcasts(_, _ int) [][]byte { return nil }
func (forgedMeta) LocalState(bool) []byte          { return nil }
func (forgedMeta) MergeRemoteState([]byte, bool)   {}

// forge makes a real member of gossip that says it is the server called name,
// at rpcAddr, with the highest incarnation that there is.
func forge(name, bind string, key []byte, cluster, rpcAddr string) (*memberlist.Memberlist, error) {
	meta, err := wire.Marshal(&gossip.Meta{Cluster: cluster, Role: string(auth.RoleServer), RPCAddr: rpcAddr, Protocol: wire.ProtocolVersion, Name: "forged"})
	if err != nil {
		return nil, err
	}
	config := memberlist.DefaultLocalConfig()
	config.Name, config.Label, config.SecretKey = name, gossip.DefaultLabel, key
	config.BindAddr, config.BindPort, config.AdvertiseAddr = bind, 0, bind
	config.Logger, config.Delegate = log.New(io.Discard, "", 0), forgedMeta(meta)
	config.ProbeInterval = time.Hour // a liar does not ask who lives
	list, err := memberlist.Create(config)
	if err != nil {
		return nil, fmt.Errorf("forge %s: %w", name, err)
	}
	incarnation := reflect.ValueOf(list).Elem().FieldByName("incarnation")
	(*atomic.Uint32)(unsafe.Pointer(incarnation.UnsafeAddr())).Store(math.MaxUint32 - 1)
	return list, list.UpdateNode(time.Second)
}

// impostor shows the node's certificate at an address and counts what it hears.
type impostor struct {
	addr        string
	calls, told atomic.Int64
}

func impersonate(bind string, certificate tls.Certificate) (*impostor, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(bind, "0"))
	if err != nil {
		return nil, fmt.Errorf("impersonate: %w", err)
	}
	i := &impostor{addr: listener.Addr().String()}
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			i.calls.Add(1)
			go func() {
				defer raw.Close()
				_ = raw.SetDeadline(time.Now().Add(time.Minute))
				conn := tls.Server(raw, &tls.Config{
					Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert,
					NextProtos: []string{auth.ALPNHTTP, auth.ALPNRPC, auth.ALPNRaft},
				})
				buffer := make([]byte, 4096)
				for {
					n, err := conn.Read(buffer)
					i.told.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return i, nil
}

// call opens the first server, or another agent, with stolen credentials.
func call[Req, Resp any](ctx context.Context, held *auth.Credentials, addr, method string, request *Req) error {
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(held)})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: addr})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = rpc.Call[Req, Resp](ctx, conn, method, request)
	return err
}

// stream opens a stream at an agent with stolen credentials, asks, and returns the
// first answer's error.
func stream[Req, Resp any](ctx context.Context, held *auth.Credentials, addr, method string, request *Req) error {
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(held)})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: addr})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	opened, err := rpc.OpenStream[Req, Resp](ctx, conn, method)
	if err != nil {
		return err
	}
	if err := opened.Send(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = opened.Recv()
	return err
}

// others is the address of the node that is not compromised: scripts/attack.sh
// has it behind this one.
func (t *target) others() string { return hostOf(t.gossip[len(t.gossip)-2]) }

func ping(ctx context.Context, held *auth.Credentials, addr string) error {
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(held)})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: addr})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = rpc.Ping(ctx, conn)
	return err
}

// hello registers at the first server, and returns the first answer's error.
func (t *target) hello(ctx context.Context, held *auth.Credentials, node structs.Node) error {
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(held)})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: t.servers[0]})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := rpc.OpenStream[structs.SessionUp, structs.SessionDown](ctx, conn, structs.MethodNodeSession)
	if err != nil {
		return err
	}
	if err := stream.Send(&structs.SessionUp{Hello: &structs.NodeRegister{Node: node}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	down, err := stream.Recv()
	if err == nil && down.Welcome == nil {
		err = errors.New("answered without a welcome")
	}
	return err
}

// rogue has the certificate, the key and the gossip key of one node. Its last
// line is the node's removal.
func (t *target) rogue() {
	stolen, err := credentials(t.node)
	if err == nil {
		err = t.rogueLines(stolen)
	}
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
	}
}

func (t *target) rogueLines(stolen *auth.Credentials) error {
	server, err := credentials(t.server)
	if err != nil {
		return err
	}
	other, err := credentials(t.other)
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(read(filepath.Join(t.node, "identity", "gossip.key")))
	if err != nil {
		return err
	}
	first := t.servers[0]
	t.line("6.5 raft with a node's certificate", "a server's certificate is let in", func(ctx context.Context) error {
		if ok, err := opens(ctx, first, machineTLS(auth.ALPNRaft, &server.Certificate, 0)); !ok {
			return err
		}
		return nil
	}, func(ctx context.Context) error {
		if ok, _ := opens(ctx, first, machineTLS(auth.ALPNRaft, &stolen.Certificate, 0)); ok {
			return errors.New("it was let in")
		}
		return nil
	})
	for _, method := range []struct {
		name string
		call func(context.Context, *auth.Credentials) error
	}{
		{"proposing entries", func(ctx context.Context, held *auth.Credentials) error {
			return call[structs.ProposeRequest, structs.ProposeReply](ctx, held, first, structs.MethodLeaderPropose, &structs.ProposeRequest{Command: []byte("x")})
		}},
		{"reading indexes", func(ctx context.Context, held *auth.Credentials) error {
			return call[structs.ReadIndexRequest, structs.ReadIndexReply](ctx, held, first, structs.MethodLeaderReadIndex, &structs.ReadIndexRequest{})
		}},
	} {
		t.line("6.5 "+method.name+" with a node's certificate", "a server is not forbidden to", func(ctx context.Context) error {
			if err := method.call(ctx, server); structs.CodeOf(err) == structs.CodeForbidden || structs.CodeOf(err) == structs.CodeUnauthorized {
				return err
			}
			return nil
		}, func(ctx context.Context) error { return refusedAs(method.call(ctx, stolen), structs.CodeForbidden) })
	}
	t.line("6.5 the API with a node's certificate", "a token beside it is answered", func(ctx context.Context) error {
		status, err := t.ask(ctx, api.Route{Method: http.MethodGet, Pattern: "/v1/jobs"}, "", t.adminToken)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}, func(context.Context) error {
		response, err := t.browser(&stolen.Certificate).Get("https://" + first + "/v1/jobs")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	})
	alive := func(ctx context.Context) error { return ping(ctx, stolen, first) }
	for _, lie := range []struct {
		name string
		node structs.Node
	}{
		{"10 registering under another's id", structs.Node{ID: other.Self.ID, Name: "c2", Pool: "default", Incarnation: math.MaxInt64}},
		{"10 registering under another's name", structs.Node{ID: stolen.Self.ID, Name: "c2", Pool: "default", Incarnation: math.MaxInt64}},
		{"6.46 registering with a million devices", structs.Node{ID: stolen.Self.ID, Name: "c1", Pool: "default", Incarnation: math.MaxInt64, Devices: make([]structs.Device, 1_000_000)}},
		{"10 registering with 8 MB", structs.Node{ID: stolen.Self.ID, Name: "c1", Pool: "default", Incarnation: math.MaxInt64, Attributes: map[string]string{"x": strings.Repeat("x", 8<<20)}}},
	} {
		t.line(lie.name, "the door answers this certificate; the node's record is compared", alive, func(ctx context.Context) error {
			before, _, err := t.admin.Node(ctx, other.Self.ID, nil)
			if err != nil {
				return err
			}
			if err := t.hello(ctx, stolen, lie.node); err == nil {
				return errors.New("it was welcomed")
			} else if ctx.Err() != nil {
				return fmt.Errorf("not answered: %w", err)
			}
			after, _, err := t.admin.Node(ctx, other.Self.ID, nil)
			if err != nil || after.Name != before.Name || after.Incarnation != before.Incarnation {
				return fmt.Errorf("the other node's record is another: %v", err)
			}
			return nil
		})
	}
	t.line("6.6 another node's logs, files and terminals with a node's certificate", "the other node answers this certificate", func(ctx context.Context) error {
		return ping(ctx, stolen, net.JoinHostPort(t.others(), "4646"))
	}, func(ctx context.Context) error {
		job, alloc, err := t.victim(ctx)
		if err != nil {
			return err
		}
		defer func() { _, _ = t.admin.StopJob(context.Background(), job, api.JobStopRequest{}) }()
		at := net.JoinHostPort(t.others(), "4646")
		for name, err := range map[string]error{
			"logs":  stream[structs.LogRequest, structs.LogChunk](ctx, stolen, at, structs.MethodAllocLogs, &structs.LogRequest{AllocID: alloc, Stream: "stdout"}),
			"files": stream[structs.FileRequest, structs.FileChunk](ctx, stolen, at, structs.MethodAllocFiles, &structs.FileRequest{AllocID: alloc, Path: "logs", List: true}),
			"terminal": stream[structs.ExecUp, structs.ExecDown](ctx, stolen, at, structs.MethodAllocExec,
				&structs.ExecUp{Start: &structs.ExecStart{AllocID: alloc, Attempt: 1, Command: []string{"id"}}}),
		} {
			if err := refusedAs(err, structs.CodeForbidden, structs.CodeNotFound, structs.CodeUnauthorized); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	t.line("6.47 what a replaced rank, and another node's, is told to have done and saved", "what the same session says of its own newest rank ends that job", func(context.Context) error { return nil },
		func(ctx context.Context) error { return t.replaced(ctx, stolen) })
	t.line("5 a node's certificate on the path of a token", "the impostor is called, and the same token is taken by the servers", func(ctx context.Context) error {
		_, err := t.admin.SelfToken(ctx)
		return err
	}, func(ctx context.Context) error {
		i, err := impersonate(t.bind, stolen.Certificate)
		if err != nil {
			return err
		}
		client, err := t.client(t.adminToken, i.addr)
		if err != nil {
			return err
		}
		if _, err := client.SelfToken(ctx); err == nil || i.calls.Load() == 0 || i.told.Load() > 0 {
			return fmt.Errorf("%d calls, %d bytes told, %v", i.calls.Load(), i.told.Load(), err)
		}
		return nil
	})
	t.line("4 forged gossip about every server, and thirty invented ones", "the liar was asked for proof, so it was heard", t.countMembers, func(ctx context.Context) error {
		return t.forgery(ctx, stolen, key)
	})
	t.line("7 a removed node's certificate", "it is answered by every server and a node before", func(ctx context.Context) error {
		for _, addr := range t.servers {
			if err := ping(ctx, stolen, addr); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		if _, err := t.admin.RemoveNode(ctx, stolen.Self.ID); err != nil {
			return err
		}
		for _, addr := range t.servers {
			var err error
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if err = ping(ctx, stolen, addr); structs.CodeOf(err) == structs.CodeForbidden {
					break
				}
			}
			if err := refusedAs(err, structs.CodeForbidden); err != nil {
				return fmt.Errorf("at %s: %w", addr, err)
			}
		}
		csr, _, err := auth.NewCSR(auth.RoleClient, stolen.Self.ID, rand.Reader)
		if err != nil {
			return err
		}
		proof, err := stolen.ProveKey(csr)
		if err != nil {
			return err
		}
		anonymous, err := t.client("")
		if err != nil {
			return err
		}
		_, err = anonymous.RenewLapsed(ctx, api.RenewRequest{Certificate: string(stolen.ChainPEM()), CSR: string(csr), Proof: proof})
		return refusedAs(err, structs.CodeForbidden)
	})
	return nil
}

// forgery announces lies in gossip, has the cluster write meanwhile, and looks
// whether its servers are who they were.
func (t *target) forgery(ctx context.Context, stolen *auth.Credentials, key []byte) error {
	before, err := t.admin.RaftPeers(ctx)
	if err != nil {
		return err
	}
	liar, err := impersonate(t.bind, stolen.Certificate)
	if err != nil {
		return err
	}
	var names []string
	for _, peer := range before.Peers {
		names = append(names, peer.ID)
	}
	for i := range 30 {
		names = append(names, fmt.Sprintf("%032x", 0xbad000+i))
	}
	for _, name := range names {
		list, err := forge(name, t.bind, key, stolen.Self.Cluster, liar.addr)
		if err != nil {
			return err
		}
		defer func() { _ = list.Shutdown() }()
		for _, seed := range t.gossip {
			_, _ = list.Join([]string{seed}) // whoever refuses to hear it has heard it
		}
	}
	for round := range 20 {
		if _, err := t.admin.PutPool(ctx, &structs.Pool{Name: "attacked", Description: fmt.Sprint(round)}); err != nil {
			return fmt.Errorf("write %d under attack: %w", round, err)
		}
	}
	for end := time.Now().Add(15 * time.Second); liar.calls.Load() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("nobody asked the liar for proof: the attack was not heard")
		}
	}
	after, err := t.admin.RaftPeers(ctx)
	if err != nil {
		return err
	}
	at := map[string]string{}
	for _, peer := range before.Peers {
		at[peer.ID] = peer.Addr
	}
	for _, peer := range after.Peers {
		if at[peer.ID] != peer.Addr || !peer.Voter {
			return fmt.Errorf("server %s is at %s, was at %q", peer.ID, peer.Addr, at[peer.ID])
		}
	}
	if len(after.Peers) != len(before.Peers) || liar.told.Load() > 0 {
		return fmt.Errorf("%d servers, were %d; the liar was told %d bytes", len(after.Peers), len(before.Peers), liar.told.Load())
	}
	return nil
}
