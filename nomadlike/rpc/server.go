package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Bounds of a Server.
const (
	streamsPerConnMax = 1024     // calls and streams at once on one connection
	headerSizeMax     = 64 << 10 // bytes of the headers of one call
	readBuffer        = 1 << 10  // bytes per connection; TLS buffers whole records itself, and what is longer passes it by
	streamWindow      = 1 << 20  // bytes that one stream may have under way; fixed, since measuring it answers each message with a ping
	connWindow        = 4 << 20  // the same of all streams of a connection
	serverPing        = 10 * time.Second
	serverPingTimeout = 10 * time.Second // as of clients
	clientPingMin     = 5 * time.Second  // a peer that pings more often is cut off
)

// Callers is the set of roles that may call a method.
type Callers uint8

// The roles, and both of them.
const (
	FromServers Callers = 1 << iota
	FromClients
	FromAgents = FromServers | FromClients
)

func (c Callers) admit(role auth.Role) bool {
	switch role {
	case auth.RoleServer:
		return c&FromServers != 0
	case auth.RoleClient:
		return c&FromClients != 0
	}
	return false
}

// Server answers the calls of other agents. Declare all methods with Unary
// and Stream, then call Serve.
type Server struct {
	identity  *Identity
	logger    *slog.Logger
	addr      string                    // that Agent.Ping tells
	shuns     func(auth.Identity) bool  // whom Agent.Ping tells that they were removed
	condition func() Condition          // what Agent.Ping tells servers; nil: nothing
	refuse    func(auth.Identity) error // set before Serve; nil: nobody is refused

	mu struct {
		sync.Mutex
		methods  map[string]Callers // by full name, "/Node/Register"
		services map[string]*grpc.ServiceDesc
		grpc     *grpc.Server // set by Serve
		stopped  bool
	}
}

// NewServer makes a server that answers Agent.Ping and nothing else yet.
func NewServer(identity *Identity, logger *slog.Logger) *Server {
	s := &Server{identity: identity, logger: logger}
	s.mu.methods = make(map[string]Callers)
	s.mu.services = make(map[string]*grpc.ServiceDesc)
	declarePing(s)
	return s
}

// Refuse has every call of an agent answered with the error that f returns for
// it, unless that is nil: how an agent that was removed learns that it was, on
// connections old and new. Call it before Serve. It must not block.
func (s *Server) Refuse(f func(auth.Identity) error) { s.refuse = f }

// Unary declares a method of one request and one answer. Its name has the
// form "Service.Method"; callers are the roles that may call it. handle runs
// in a goroutine of its own for each call; its context ends with the call's
// deadline or the connection. It returns a *structs.Error, or any error,
// which the caller sees as CodeInternal. Unary panics on a name that is
// declared already or has no such form, and after Serve.
func Unary[Req, Resp any](s *Server, name string, callers Callers, handle func(context.Context, Peer, *Req) (*Resp, error)) {
	service, method := s.declare(name, callers)
	service.Methods = append(service.Methods, grpc.MethodDesc{
		MethodName: method,
		Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			// The interceptor asks whether the caller may, before a byte of
			// the request is decoded.
			info := &grpc.UnaryServerInfo{FullMethod: fullMethod(name)}
			return intercept(ctx, nil, info, func(ctx context.Context, _ any) (any, error) {
				caller, err := callerOf(ctx)
				if err != nil {
					return nil, err
				}
				var received frame
				if err := decode(&received); err != nil {
					return nil, err
				}
				request := new(Req)
				if err := received.into(request); err != nil {
					return nil, err
				}
				response, err := handle(ctx, caller, request)
				if err == nil && response == nil {
					response = new(Resp)
				}
				return response, err
			})
		},
	})
}

// Stream declares a method of two streams: Up from the caller, Down from
// here. handle runs in a goroutine of its own for each stream; the stream
// ends when it returns, orderly with nil. The stream's context ends when the
// connection breaks or the caller closes. Names and panics are as for Unary.
func Stream[Up, Down any](s *Server, name string, callers Callers, handle func(context.Context, Peer, *ServerStream[Up, Down]) error) {
	service, method := s.declare(name, callers)
	service.Streams = append(service.Streams, grpc.StreamDesc{
		StreamName:    method,
		ServerStreams: true,
		ClientStreams: true,
		Handler: func(_ any, raw grpc.ServerStream) error {
			caller, err := callerOf(raw.Context())
			if err != nil {
				return err
			}
			return handle(raw.Context(), caller, &ServerStream[Up, Down]{raw: raw})
		},
	})
}

// Advertise has Agent.Ping tell host:port, where this agent wants to be called.
// Call it before Serve.
func (s *Server) Advertise(addr string) { s.addr = addr }

// Shun has Agent.Ping tell callers whom shuns reports that they were removed.
// Call it before Serve.
func (s *Server) Shun(shuns func(auth.Identity) bool) { s.shuns = shuns }

// Report has Agent.Ping tell other servers how this one does. Call it before
// Serve.
func (s *Server) Report(condition func() Condition) { s.condition = condition }

func (s *Server) declare(name string, callers Callers) (*grpc.ServiceDesc, string) {
	serviceName, method, ok := strings.Cut(name, ".")
	if !ok || serviceName == "" || method == "" || strings.ContainsAny(method, "./") {
		panic(fmt.Sprintf("rpc: method name %q is not Service.Method", name))
	}
	full := "/" + serviceName + "/" + method
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.grpc != nil {
		panic(fmt.Sprintf("rpc: method %s declared while serving", name))
	}
	if _, taken := s.mu.methods[full]; taken {
		panic(fmt.Sprintf("rpc: method %s declared twice", name))
	}
	s.mu.methods[full] = callers
	service := s.mu.services[serviceName]
	if service == nil {
		service = &grpc.ServiceDesc{ServiceName: serviceName}
		s.mu.services[serviceName] = service
	}
	return service, method
}

// Methods reports which roles may call which method, for tests that walk all
// of them and for documents.
func (s *Server) Methods() map[string]Callers {
	s.mu.Lock()
	defer s.mu.Unlock()
	methods := make(map[string]Callers, len(s.mu.methods))
	for full, callers := range s.mu.methods {
		methods[strings.Replace(full[1:], "/", ".", 1)] = callers
	}
	return methods
}

// Serve answers calls on the connections of listener, which must be a Mux's
// RPC listener, until Stop; it returns nil then. Call it once.
func (s *Server) Serve(listener net.Listener) error {
	s.mu.Lock()
	if s.mu.stopped {
		s.mu.Unlock()
		return listener.Close()
	}
	server := grpc.NewServer(
		grpc.Creds(servedCreds{}),
		grpc.ForceServerCodecV2(codec{}),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
		grpc.MaxRecvMsgSize(wire.MessageSizeMax),
		grpc.MaxSendMsgSize(wire.MessageSizeMax),
		grpc.MaxConcurrentStreams(streamsPerConnMax),
		grpc.MaxHeaderListSize(headerSizeMax),
		grpc.ConnectionTimeout(DefaultHandshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: serverPing, Timeout: serverPingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPingMin, PermitWithoutStream: true}),
	)
	for _, service := range s.mu.services {
		server.RegisterService(service, nil)
	}
	s.mu.grpc = server
	s.mu.Unlock()
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve RPC at %s: %w", listener.Addr(), err)
	}
	return nil
}

// Stop refuses new calls and waits for those under way, streams included,
// until ctx ends; then it breaks them. A stream's handler does not see that
// the server is stopping before that, so end long-lived streams first.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.mu.stopped = true
	server := s.mu.grpc
	s.mu.Unlock()
	if server == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		server.Stop()
		<-done
	}
}

// authorize is the one place where the caller's role is checked. A method
// without an entry admits nobody.
func (s *Server) authorize(ctx context.Context, fullMethod string) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	if s.refuse != nil {
		if err := s.refuse(caller.Identity); err != nil {
			s.logger.Debug("refuse call", logkey.Method, fullMethod, logkey.PeerID, caller.Identity.String(), logkey.Error, err)
			return err
		}
	}
	s.mu.Lock()
	callers := s.mu.methods[fullMethod]
	s.mu.Unlock()
	if callers.admit(caller.Role) && caller.Cluster == s.identity.Self().Cluster {
		return nil
	}
	s.logger.Warn("refuse call", logkey.Method, fullMethod, logkey.PeerID, caller.Identity.String(), logkey.Reason, "role")
	return structs.NewError(structs.CodeForbidden, "rpc.role", "method", fullMethod[1:], "role", string(caller.Role))
}

func (s *Server) interceptUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := func() (response any, err error) {
		defer s.recoverPanic(info.FullMethod, &err)
		if err := s.authorize(ctx, info.FullMethod); err != nil {
			return nil, err
		}
		return handle(ctx, request)
	}()
	if err == nil {
		return response, nil
	}
	trailer, err := outgoingError(err)
	s.setTrailer(ctx, info.FullMethod, trailer)
	return nil, err
}

func (s *Server) setTrailer(ctx context.Context, method string, trailer metadata.MD) {
	if err := grpc.SetTrailer(ctx, trailer); err != nil {
		s.logger.Debug("set error of call", logkey.Method, method, logkey.Error, err)
	}
}

func (s *Server) interceptStream(_ any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := func() (err error) {
		defer s.recoverPanic(info.FullMethod, &err)
		if err := s.authorize(stream.Context(), info.FullMethod); err != nil {
			return err
		}
		return handle(nil, stream)
	}()
	if err == nil {
		return nil
	}
	trailer, err := outgoingError(err)
	stream.SetTrailer(trailer)
	return err
}

// recoverPanic turns a panic of a handler into an error of this one call: a
// request that finds a defect must not be able to take down one server after
// the other.
func (s *Server) recoverPanic(method string, err *error) {
	if cause := recover(); cause != nil {
		s.logger.Error("handler panicked", logkey.Method, method, logkey.Error, cause, "stack", string(debug.Stack()))
		*err = structs.NewError(structs.CodeInternal, "rpc.panic", "method", method[1:])
	}
}

// callerOf finds the peer that servedCreds noted on the connection.
func callerOf(ctx context.Context) (Peer, error) {
	p, ok := peer.FromContext(ctx)
	if ok {
		if info, ok := p.AuthInfo.(peerInfo); ok {
			return info.Peer, nil
		}
	}
	return Peer{}, structs.NewError(structs.CodeUnauthorized, "rpc.role", "role", "unknown")
}

// peerInfo is the agent at the other end, where gRPC keeps such things.
type peerInfo struct {
	credentials.CommonAuthInfo
	Peer
}

// AuthType names how the peer was authenticated.
func (peerInfo) AuthType() string { return "nomadlike-mtls" }

func newPeerInfo(p Peer) peerInfo {
	return peerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, p}
}

// servedCreds takes connections whose handshake the Mux has completed.
type servedCreds struct{}

var _ credentials.TransportCredentials = servedCreds{}

// ServerHandshake passes on whom the Mux verified, and refuses connections
// that did not come through a Mux.
func (servedCreds) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	verified, ok := conn.(*peerConn)
	if !ok {
		return nil, nil, fmt.Errorf("take connection of %s: %w", conn.RemoteAddr(), auth.ErrNoIdentity)
	}
	return verified, newPeerInfo(verified.peer), nil
}

// ClientHandshake is never called on a server.
func (servedCreds) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, auth.ErrUntrusted
}

// Info describes the protocol to gRPC.
func (servedCreds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns c: gRPC asks for a copy, and c never changes.
func (c servedCreds) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: agents are known by identity, not name.
func (servedCreds) OverrideServerName(string) error { return nil }
