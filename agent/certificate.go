package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// How certificates are renewed.
const (
	renewRetry   = time.Minute
	renewTimeout = 10 * time.Second
	// renewLook is how often the clock is looked at, at least: the timers of a
	// machine that slept, or was paused, know nothing of the time that went by.
	renewLook = time.Minute

	tellTimeout = time.Second

	lapseRetryFirst = 200 * time.Millisecond
	lapseRetryMax   = 30 * time.Second
)

// refresh renews the certificate of a server that comes back after its end, or
// near it: the server has the CA's key and needs nobody for that.
func (i *identity) refresh(now time.Time, advertise string) error {
	if i.ca() == nil || !i.credentials.Early(now) && now.Before(i.credentials.RenewAt()) {
		return nil
	}
	self := i.credentials.Self
	csr, key, err := auth.NewCSR(self.Role, self.ID, rand.Reader)
	if err != nil {
		return err
	}
	chain, err := i.sign(csr, self, now, advertise)
	if err != nil {
		return err
	}
	credentials, err := i.renewed(chain, key, nil)
	if err == nil {
		i.credentials = credentials
	}
	return err
}

// certificates keeps the certificates of this agent good: its own, and on a server
// that is a node as well, that of the node. It renews them in time, when another CA
// signs, and after the agent was away. Its methods may be called from any goroutine.
type certificates struct {
	renewals

	life     *lifecycle
	log      *slog.Logger
	now      func() time.Time // the clock that certificates are made and checked by
	look     time.Duration    // how often it is looked at, at least
	getenv   func(string) string
	out      io.Writer // the person at the console
	language messages.Language

	identity   *identity
	own        *rpc.Identity
	pool       *rpc.Pool
	servers    func() []string             // addresses, those first that nobody can forge
	disconnect func() int                  // ends all that is open at the port
	tell       func(context.Context) error // tells the other agents how this one is

	// By the configuration.
	name, advertise string
	token           auth.JoinToken
	doors           []string // of servers, for an agent that is not of the cluster at the moment
}

// renewInTime renews the agent's certificate when half of its life is
// over.
func (c *certificates) renewInTime() { c.every(c.own, c.renew) }

// every stores what renew returns when half of a certificate's life is
// over, until the agent stops.
func (c *certificates) every(identity *rpc.Identity, renew func(context.Context) (*auth.Credentials, error)) {
	look, wake := c.look, c.join(identity).wake
	identity.SetTrust(c.identity.trust())
	var retryAt time.Time
	lapseRetry := lapseRetryFirst
	for {
		held, now := identity.Load(), c.now()
		if retryAt.After(now.Add(renewRetry)) {
			retryAt = time.Time{} // the clock went back
		}
		due, stale := held.RenewAt(), c.stale(held)
		if stale || held.Early(now) {
			due = now
		}
		if retryAt.After(due) {
			due = retryAt
		}
		if wait := due.Sub(now); wait > 0 {
			followed := held.Trust.Followed()
			if stale || c.identity.ca() != nil {
				followed = nil // it is known; a server hears it from the log
			}
			timer := time.NewTimer(min(wait, look))
			select {
			case <-c.life.stopping:
				timer.Stop()
				return
			case <-timer.C:
			case <-wake:
				retryAt = time.Time{}
			case <-followed:
				retryAt = time.Time{}
			}
			timer.Stop()
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
		credentials, err := renew(ctx)
		cancel()
		if err == nil {
			identity.Store(credentials)
			identity.SetTrust(c.identity.trust()) // another may have come meanwhile
			c.log.Info("certificate renewed", "expires", credentials.ExpiresAt())
			c.tellEnd()
			// A certificate that is due as it comes is of a server whose clock is
			// far from this one's: another would be no better. The time is that from
			// before: the clock may have gone back since.
			retryAt, lapseRetry = now.Add(renewRetry), lapseRetryFirst
			if c.stale(identity.Load()) {
				retryAt = now.Add(caRetry)
			}
			continue
		}
		if now := c.now(); stale && !held.Over(now) {
			c.log.Warn("there is no certificate of the new CA yet", logkey.Error, err)
			retryAt = c.now().Add(lapseRetry)
			lapseRetry = min(2*lapseRetry, lapseRetryMax)
		} else if !held.Over(now) && !held.Early(now) {
			c.log.Error("certificate was not renewed", "expires", held.ExpiresAt(), logkey.Error, err)
			retryAt = c.now().Add(renewRetry)
		} else {
			c.lapsed(held, err)
			retryAt = c.now().Add(lapseRetry)
			lapseRetry = min(2*lapseRetry, lapseRetryMax)
		}
		select {
		case <-c.life.stopping:
			return
		default:
		}
	}
}

// tellEnd has the other agents know when the certificates of this one end. One that does
// not hear it hears it with what this agent tells next.
func (c *certificates) tellEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := c.tell(ctx); err != nil {
		c.log.Debug("the other agents were not told of the new certificate", logkey.Error, err)
	}
}

// end is when the first of the agent's certificates ends.
func (c *certificates) end() time.Time {
	first := c.own.Load().ExpiresAt()
	for _, credentials := range c.credentials() {
		if at := credentials.ExpiresAt(); at.Before(first) {
			first = at
		}
	}
	return first
}

// lapsed tells people and the service manager that the agent is not of the
// cluster at the moment, and why.
func (c *certificates) lapsed(held *auth.Credentials, err error) {
	c.log.Error("certificate has expired: the agent is not ready", "expired", held.ExpiresAt(), logkey.Error, err,
		"cure", messages.Textf(messages.English, "agent.certificate_expired.hint"))
	status := "STATUS=" + messages.Textf(messages.English, "agent.certificate_expired", "at", held.ExpiresAt().UTC().Format(time.RFC3339)) +
		fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", (2*lapseRetryMax).Microseconds())
	if err := tellManager(context.Background(), c.getenv, status); err != nil {
		c.log.Debug("service manager was not told", logkey.Error, err)
	}
}

// expired returns when the agent's certificate ended, if it did.
func (c *certificates) expired() (time.Time, bool) {
	held := c.own.Load()
	return held.ExpiresAt(), held.Over(c.now())
}

// certified waits until the agent has a certificate that its peers take, and
// reports whether it has.
func (c *certificates) certified(ctx context.Context) bool {
	at, over := c.expired()
	if !over {
		return true
	}
	fmt.Fprintln(c.out, messages.Textf(c.language, "agent.certificate_expired", "at", at.UTC().Format(time.RFC3339)))
	fmt.Fprintln(c.out, messages.Textf(c.language, "agent.certificate_expired.hint"))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for over {
		select {
		case <-ctx.Done():
			return false
		case <-c.life.stopping:
			return false
		case <-tick.C:
		}
		_, over = c.expired()
	}
	return true
}

// renew gets a new certificate for this agent's identity: a server signs its
// own, a client asks a server, by its certificate or, when that is over or has
// not begun, by the proof that it holds its key.
func (c *certificates) renew(ctx context.Context) (*auth.Credentials, error) {
	held := c.own.Load()
	csr, key, err := auth.NewCSR(held.Self.Role, held.Self.ID, rand.Reader)
	if err != nil {
		return nil, err
	}
	if c.identity.ca() != nil {
		chain, err := c.identity.sign(csr, held.Self, c.now(), c.advertise)
		if err != nil {
			return nil, err
		}
		return c.identity.renewed(chain, key, nil)
	}
	if now := c.now(); !held.Over(now) && !held.Early(now) && !c.replaced(held) {
		chain, err := c.ask(ctx, csr)
		if err != nil {
			return nil, err
		}
		return c.identity.renewed(chain, key, nil)
	}
	renewed, err := c.renewLapsed(ctx, held, csr)
	if err != nil {
		return nil, err
	}
	return c.identity.renewed([]byte(renewed.Certificate), key, renewed)
}

func (c *certificates) ask(ctx context.Context, csr []byte) ([]byte, error) {
	failure := errors.New("no server is known")
	for _, addr := range c.servers() {
		conn, err := c.pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
		if err == nil {
			var reply *structs.RenewReply
			reply, err = rpc.Call[structs.RenewRequest, structs.RenewReply](ctx, conn, structs.MethodServerRenew, &structs.RenewRequest{CSR: csr})
			if err == nil {
				return reply.Certificate, nil
			}
		}
		failure = err
	}
	return nil, failure
}

// renewLapsed asks servers at their HTTPS door, which wants no certificate. A
// refusal is final but for a fresh join token, which lets the agent in again
// as who it was.
func (c *certificates) renewLapsed(ctx context.Context, held *auth.Credentials, csr []byte) (*api.Renewed, error) {
	proof, err := held.ProveKey(csr)
	if err != nil {
		return nil, err
	}
	request := api.RenewRequest{Certificate: string(held.ChainPEM()), CSR: string(csr), Proof: proof}
	transport := &http.Transport{
		TLSClientConfig:     auth.LapsedTLS(func() *auth.Trust { return c.own.Load().Trust }, c.now),
		TLSHandshakeTimeout: proxyDialTimeout, DisableKeepAlives: true,
	}
	door := &http.Client{Transport: transport, Timeout: renewTimeout}
	failure := error(structs.NewError(structs.CodeUnavailable, "agent.no_server"))
	addresses := c.servers()
	for _, addr := range c.doors {
		addresses = appendNew(addresses, addr)
	}
	for _, addr := range addresses {
		client, err := api.New(api.Config{Address: addr, HTTPClient: door, RetryFor: -1})
		if err != nil {
			return nil, err
		}
		renewed, err := client.RenewLapsed(ctx, request)
		if code := structs.CodeOf(err); code == structs.CodeUnauthorized || code == structs.CodeForbidden {
			if token := c.token; token.Secret != "" {
				var joined *api.Joined
				joined, err = client.Join(ctx, api.JoinRequest{
					TokenID: token.ID, Secret: token.Secret, Role: string(held.Self.Role), AgentID: held.Self.ID, Name: c.name,
					CSR: string(csr), Certificate: request.Certificate, Proof: proof,
				})
				if err == nil {
					renewed = &api.Renewed{Certificate: joined.Certificate, CA: joined.CA, PastCA: joined.PastCA}
				}
			}
		}
		client.Close()
		if err == nil {
			return renewed, nil
		}
		failure = err
	}
	return nil, failure
}

// appendNew appends what is not in the list.
func appendNew(list []string, one string) []string {
	for _, known := range list {
		if known == one {
			return list
		}
	}
	return append(list, one)
}

// ownCAs names the CAs that this agent trusts, first the one that signed its
// certificates: of several, the one that is to go.
func (c *certificates) ownCAs() []string {
	trust := c.identity.trust()
	var names []string
	for _, cert := range trust.Certificates() {
		names = append(names, auth.Fingerprint(cert))
	}
	for _, credentials := range c.credentials() {
		issuer := trust.Issuer(credentials.Certificate.Leaf)
		if issuer == nil {
			return nil
		}
		if name := auth.Fingerprint(issuer); name != names[0] {
			at := slices.Index(names, name)
			return append([]string{name}, slices.Delete(names, at, at+1)...)
		}
	}
	return names
}

// stale reports whether a certificate is to be replaced because the CA that
// signed it is: another signs now, or a peer showed that there is another.
func (c *certificates) stale(held *auth.Credentials) bool {
	return c.replaced(held) || held.Trust.Issuer(held.Certificate.Leaf) != held.Trust.Certificates()[0]
}

// replaced reports whether a node was away while the CA was replaced: servers
// follow the log, and hold its keys.
func (c *certificates) replaced(held *auth.Credentials) bool {
	return c.identity.ca() == nil && held.Trust.HasFollowed()
}

// takeCA takes what the cluster's record says of CAs, and has this agent's
// certificates and connections go by it.
func (c *certificates) takeCA(news caNews) error {
	changed, err := c.identity.takeCA(news, c.credentials())
	if changed && err == nil {
		c.trust(c.identity.trust())
		c.log.Info("the CAs that are trusted have changed", "trusted", len(news.trusted), "signs", shortFingerprint(news.trusted[0].Fingerprint))
		if len(news.trusted) == 1 && len(news.past) == 0 {
			// Whoever holds the key of the CA of before may have a connection
			// open: agents dial again, with certificates of the new one.
			c.disconnect()
		}
	}
	return err
}
