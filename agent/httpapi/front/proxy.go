package front

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

const (
	// headerForwarded counts the agents that passed a request on, so that it
	// never goes in a circle: a client to a server, that to the leader.
	headerForwarded = "X-Nomadlike-Forwarded"
	// HeaderFor is the address that a server has a request from which it passes on.
	HeaderFor = "X-Nomadlike-For"
	// HeaderPage is the host of the pages at which a browser asked a server to begin a
	// sign-in. Only a server's own requests have it: what it passes on for others does not.
	HeaderPage  = "X-Nomadlike-Page"
	forwardsMax = 2

	proxyDialTimeout = 2 * time.Second
	proxyIdleMax     = 16 // idle connections kept to each server
	serversTried     = 5  // for one request
)

// proxy passes requests to a server of the cluster as they are, the caller's
// credentials included: it judges nothing and adds nothing.
type proxy struct {
	log     *slog.Logger
	servers func() []string // host:port of servers, the preferred one first
	reverse *httputil.ReverseProxy
	fail    func(http.ResponseWriter, *http.Request, error)
}

// NewProxy speaks to servers over TLS that only a server of this cluster can
// answer.
func NewProxy(log *slog.Logger, identity *rpc.Identity, now func() time.Time, servers func() []string, fail func(http.ResponseWriter, *http.Request, error)) *proxy {
	p := &proxy{log: log, servers: servers, fail: fail}
	transport := ToServers(identity, now)
	p.reverse = &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     firstServer{transport, servers},
		FlushInterval: -1, // streams pass as they come
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Debug("pass request on", logkey.Path, r.URL.Path, logkey.Error, err)
			var dial *net.OpError
			if r.Method == http.MethodGet || errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, errNoServer) {
				fail(w, r, structs.NewError(structs.CodeUnavailable, "agent.no_server").Because(err))
				return
			}
			fail(w, r, structs.NewError(structs.CodeTimeout, "agent.timeout").Because(err)) // it was sent
		},
	}
	return p
}

// ToServers is a way to servers of this cluster, and to nobody else.
func ToServers(identity *rpc.Identity, now func() time.Time) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: proxyDialTimeout}).DialContext,
		TLSClientConfig:     auth.ClientTLS(identity.Load, auth.ALPNHTTP, auth.Expect{Role: auth.RoleServer}, now),
		TLSHandshakeTimeout: proxyDialTimeout,
		MaxIdleConnsPerHost: proxyIdleMax,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme = "https"
	r.Out.URL.Host = "server" // firstServer replaces it
	r.Out.Host = ""
	r.Out.Header.Set(headerForwarded, strconv.Itoa(Forwards(r.In)+1))
	r.Out.Header.Set(HeaderFor, Address(r.In))
	r.Out.Header.Del(HeaderPage)
	// This agent has checked where the request comes from; the server would
	// compare with its own name.
	r.Out.Header.Del("Origin")
	for name := range r.Out.Header {
		if len(name) > 10 && name[:10] == "Sec-Fetch-" {
			r.Out.Header.Del(name)
		}
	}
}

// ServeHTTP passes the request on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if Forwards(r) >= forwardsMax {
		p.fail(w, r, structs.NewError(structs.CodeUnavailable, "agent.no_server"))
		return
	}
	p.reverse.ServeHTTP(w, r)
}

// Origin is the address that a request comes from, as limits count it.
func Origin(r *http.Request) string { return keyOf(Address(r)) }

// Address is the address that a request comes from. What a server of the cluster says of
// a request that it passes on is believed, since its certificate says that it is one;
// what anybody else says is not, an agent of a node included.
func Address(r *http.Request) string {
	if said := r.Header.Get(HeaderFor); said != "" && len(said) <= originMax && ofServer(r) {
		return said
	}
	return hostOf(r.RemoteAddr)
}

// ofServer reports whether a server of the cluster makes a request.
func ofServer(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	who, err := auth.ParseIdentity(r.TLS.PeerCertificates[0]) // verified by the handshake
	return err == nil && who.Role == auth.RoleServer
}

// PageHost is the host of the pages for which a server asks, "" where nobody believable
// asks for any.
func PageHost(r *http.Request) string {
	if said := r.Header.Get(HeaderPage); len(said) <= pageHostMax && ofServer(r) {
		return said
	}
	return ""
}

const (
	originMax   = 64  // bytes
	pageHostMax = 260 // of a name and a port
)

// Forwards is how often a request was passed on before.
func Forwards(r *http.Request) int {
	n, err := strconv.Atoi(r.Header.Get(headerForwarded))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// firstServer sends a request to the first server that can be dialed.
type firstServer struct {
	transport *http.Transport
	servers   func() []string
}

var errNoServer = errors.New("no server is known")

// RoundTrip tries one server after the other for as long as nothing of the
// request was sent.
func (f firstServer) RoundTrip(r *http.Request) (*http.Response, error) {
	servers := f.servers()
	err := errNoServer
	for _, addr := range servers[:min(len(servers), serversTried)] {
		attempt := r.Clone(r.Context())
		attempt.URL.Host = addr
		attempt.Host = addr
		body := &unread{ReadCloser: r.Body}
		if r.Body != nil {
			attempt.Body = body
		}
		var response *http.Response
		response, err = f.transport.RoundTrip(attempt)
		var dial *net.OpError
		if err == nil || body.touched || !errors.As(err, &dial) || dial.Op != "dial" {
			return response, err
		}
	}
	return nil, err
}

// unread notes whether a body was read, and does not let the transport close
// it after a dial that failed.
type unread struct {
	io.ReadCloser
	touched bool
}

func (u *unread) Read(p []byte) (int, error) {
	u.touched = true
	return u.ReadCloser.Read(p)
}

// Close is left to whoever gave the body.
func (u *unread) Close() error { return nil }

// NewRemote is the HTTP door of a client-only agent: it answers the routes of own by
// itself, those about its health, and passes everything else to a server, which judges it. What it refuses
// itself, before anybody is asked, refused takes.
func NewRemote(log *slog.Logger, now func() time.Time, hosts []string, servers func() []string, identity *rpc.Identity, own map[string]Handler, refused Recorder) *Front {
	f := &Front{log: log, now: now, hosts: newHostList(hosts), mux: http.NewServeMux(), bodyStall: bodyStall, audit: newAuditor(refused, now), remote: true}
	passOn := NewProxy(log, identity, now, servers, f.Fail)
	for _, route := range api.Routes() {
		if handle := own[route.Name]; handle != nil {
			f.mux.Handle(route.Method+" "+route.Pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				req := &Request{Request: r, Route: route, Writer: w}
				if err := handle(req); err != nil {
					f.Fail(w, r, err)
				}
			}))
		}
	}
	f.mux.Handle("/", passOn)
	return f
}
