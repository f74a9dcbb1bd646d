package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
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

	lapseRetryFirst = 200 * time.Millisecond
	lapseRetryMax   = 30 * time.Second
)

// now is the clock that certificates are made and checked by.
func (a *Agent) now() time.Time { return a.options.now() }

// refresh gives a server that comes back after its certificate's end, or near
// it, a new one: it holds the CA's key and needs nobody for that.
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

// keepCertificate renews the agent's certificate when half of its life is
// over.
func (a *Agent) keepCertificate() { a.everyRenewal(a.ident, a.renew) }

// everyRenewal stores what renew returns when half of a certificate's life is
// over, until the agent stops.
func (a *Agent) everyRenewal(identity *rpc.Identity, renew func(context.Context) (*auth.Credentials, error)) {
	look, wake := a.options.renewLook, a.renewals.join(identity).wake
	identity.SetTrust(a.identity.trust())
	var retryAt time.Time
	lapseRetry := lapseRetryFirst
	for {
		held, now := identity.Load(), a.now()
		if retryAt.After(now.Add(renewRetry)) {
			retryAt = time.Time{} // the clock went back
		}
		due, stale := held.RenewAt(), a.stale(held)
		if stale || held.Early(now) {
			due = now
		}
		if retryAt.After(due) {
			due = retryAt
		}
		if wait := due.Sub(now); wait > 0 {
			followed := held.Trust.Followed()
			if stale || a.identity.ca() != nil {
				followed = nil // it is known; a server hears it from the log
			}
			timer := time.NewTimer(min(wait, look))
			select {
			case <-a.life.stopping:
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
			identity.SetTrust(a.identity.trust()) // another may have come meanwhile
			a.log.Info("certificate renewed", "expires", credentials.ExpiresAt())
			// A certificate that is due as it comes is of a server whose clock is
			// far from this one's: another would be no better.
			retryAt, lapseRetry = a.now().Add(renewRetry), lapseRetryFirst
			if a.stale(identity.Load()) {
				retryAt = a.now().Add(caRetry)
			}
			continue
		}
		if now := a.now(); stale && !held.Over(now) {
			a.log.Warn("there is no certificate of the new CA yet", logkey.Error, err)
			retryAt = a.now().Add(lapseRetry)
			lapseRetry = min(2*lapseRetry, lapseRetryMax)
		} else if !held.Over(now) && !held.Early(now) {
			a.log.Error("certificate was not renewed", "expires", held.ExpiresAt(), logkey.Error, err)
			retryAt = a.now().Add(renewRetry)
		} else {
			a.lapsed(held, err)
			retryAt = a.now().Add(lapseRetry)
			lapseRetry = min(2*lapseRetry, lapseRetryMax)
		}
		select {
		case <-a.life.stopping:
			return
		default:
		}
	}
}

// lapsed tells people and the service manager that the agent is not of the
// cluster at the moment, and why.
func (a *Agent) lapsed(held *auth.Credentials, err error) {
	a.log.Error("certificate has expired: the agent is not ready", "expired", held.ExpiresAt(), logkey.Error, err,
		"cure", messages.Textf(messages.English, "agent.certificate_expired.hint"))
	status := "STATUS=" + messages.Textf(messages.English, "agent.certificate_expired", "at", held.ExpiresAt().UTC().Format(time.RFC3339)) +
		fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", (2*lapseRetryMax).Microseconds())
	if err := notify(context.Background(), a.options.Getenv, status); err != nil {
		a.log.Debug("service manager was not told", logkey.Error, err)
	}
}

// expired returns when the agent's certificate ended, if it did.
func (a *Agent) expired() (time.Time, bool) {
	held := a.ident.Load()
	return held.ExpiresAt(), held.Over(a.now())
}

// certified waits until the agent has a certificate that its peers take, and
// reports whether it has.
func (a *Agent) certified(ctx context.Context) bool {
	at, over := a.expired()
	if !over {
		return true
	}
	fmt.Fprintln(a.options.Out, messages.Textf(a.options.Language, "agent.certificate_expired", "at", at.UTC().Format(time.RFC3339)))
	fmt.Fprintln(a.options.Out, messages.Textf(a.options.Language, "agent.certificate_expired.hint"))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for over {
		select {
		case <-ctx.Done():
			return false
		case <-a.life.stopping:
			return false
		case <-tick.C:
		}
		_, over = a.expired()
	}
	return true
}

// renew gets a new certificate for this agent's identity: a server signs its
// own, a client asks a server, by its certificate or, when that is over or has
// not begun, by the proof that it holds its key.
func (a *Agent) renew(ctx context.Context) (*auth.Credentials, error) {
	held := a.ident.Load()
	csr, key, err := auth.NewCSR(held.Self.Role, held.Self.ID, rand.Reader)
	if err != nil {
		return nil, err
	}
	if a.identity.ca() != nil {
		chain, err := a.identity.sign(csr, held.Self, a.now(), a.config.Advertise)
		if err != nil {
			return nil, err
		}
		return a.identity.renewed(chain, key, nil)
	}
	if now := a.now(); !held.Over(now) && !held.Early(now) && !a.replaced(held) {
		chain, err := a.askRenewal(ctx, csr)
		if err != nil {
			return nil, err
		}
		return a.identity.renewed(chain, key, nil)
	}
	renewed, err := a.renewLapsed(ctx, held, csr)
	if err != nil {
		return nil, err
	}
	return a.identity.renewed([]byte(renewed.Certificate), key, renewed)
}

func (a *Agent) askRenewal(ctx context.Context, csr []byte) ([]byte, error) {
	failure := errors.New("no server is known")
	for _, addr := range a.servers.addresses() {
		conn, err := a.pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
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
func (a *Agent) renewLapsed(ctx context.Context, held *auth.Credentials, csr []byte) (*api.Renewed, error) {
	proof, err := held.ProveKey(csr)
	if err != nil {
		return nil, err
	}
	request := api.RenewRequest{Certificate: string(held.ChainPEM()), CSR: string(csr), Proof: proof}
	transport := &http.Transport{
		TLSClientConfig:     auth.LapsedTLS(func() *auth.Trust { return a.ident.Load().Trust }, a.now),
		TLSHandshakeTimeout: proxyDialTimeout, DisableKeepAlives: true,
	}
	door := &http.Client{Transport: transport, Timeout: renewTimeout}
	failure := error(structs.NewError(structs.CodeUnavailable, "agent.no_server"))
	addresses := a.servers.addresses()
	for _, addr := range joinAddresses(a.config) {
		addresses = appendNew(addresses, addr)
	}
	for _, addr := range addresses {
		client, err := api.New(api.Config{Address: addr, HTTPClient: door, RetryFor: -1})
		if err != nil {
			return nil, err
		}
		renewed, err := client.RenewLapsed(ctx, request)
		if code := structs.CodeOf(err); code == structs.CodeUnauthorized || code == structs.CodeForbidden {
			if token := a.config.JoinToken; token.Secret != "" {
				var joined *api.Joined
				joined, err = client.Join(ctx, api.JoinRequest{
					TokenID: token.ID, Secret: token.Secret, Role: string(held.Self.Role), AgentID: held.Self.ID, Name: a.config.Name,
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
