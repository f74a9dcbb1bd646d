package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// holdCA takes the CAs that a record of the cluster names, on a server: with the
// key of that which signs, or is to.
func (a *Agent) holdCA(ctx context.Context, cluster *structs.Cluster) error {
	state := cluster.CA
	trusted := state.Trusted()
	if len(trusted) == 0 {
		return nil
	}
	signs := state.Keys.Current
	if state.Keys.Rotation != nil {
		signs = state.Keys.Rotation.To
	}
	if a.identity.held.Load().key(signs) == nil {
		if err := a.fetchCA(ctx, signs); err != nil {
			return fmt.Errorf("get key of CA: %w", err)
		}
	}
	return a.takeCA(caNews{trusted, state.Past, cluster.ModifyIndex, cluster.RevivedAt})
}

// takeCA takes what the cluster's record says of CAs, and has this agent's
// certificates and connections go by it.
func (a *Agent) takeCA(news caNews) error {
	changed, err := a.identity.takeCA(news, a.renewals.credentials())
	if changed && err == nil {
		a.renewals.trust(a.identity.trust())
		a.log.Info("the CAs that are trusted have changed", "trusted", len(news.trusted), "signs", shortFingerprint(news.trusted[0].Fingerprint))
		if len(news.trusted) == 1 && len(news.past) == 0 {
			// Whoever holds the key of the CA of before may have a connection
			// open: agents dial again, with certificates of the new one.
			a.mux.DisconnectAll()
		}
	}
	return err
}

func shortFingerprint(name string) string { return name[:min(len(name), 16)] }

// fetchCA asks the other servers for a CA with its key.
func (a *Agent) fetchCA(ctx context.Context, fingerprint string) error {
	failure := errors.New("no other server is known")
	for _, other := range a.otherServers() {
		reply, err := askServer[structs.CAKeyRequest, structs.CAKeyReply](ctx, a.pool, other, structs.MethodServerCAKey, &structs.CAKeyRequest{Fingerprint: fingerprint})
		switch {
		case err != nil:
			failure = err
		case len(reply.Key) == 0:
			failure = errors.New("another server does not have it either")
		default:
			if failure = a.identity.offerCA(offeredCA{reply.Certificate, reply.Key}); failure == nil {
				return nil
			}
		}
	}
	return failure
}

// registerCAKeys declares how servers give each other the keys of CAs. Nobody
// else is answered, and no server that an administrator took out.
func (a *Agent) registerCAKeys() {
	rpc.Unary(a.rpc, structs.MethodServerCAKey, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, request *structs.CAKeyRequest) (*structs.CAKeyReply, error) {
			if a.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			ca := a.identity.held.Load().key(request.Fingerprint)
			if ca == nil {
				return &structs.CAKeyReply{}, nil
			}
			key, err := ca.KeyPEM()
			return &structs.CAKeyReply{Certificate: ca.CertificatePEM(), Key: key}, err
		})
	rpc.Unary(a.rpc, structs.MethodServerOfferCA, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.CAKeyReply) (*structs.GossipKeyKept, error) {
			if a.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			return &structs.GossipKeyKept{}, a.identity.offerCA(offeredCA{offer.Certificate, offer.Key})
		})
}

// newCA makes the CA that is to take the place of the present one and gives it to
// every other server, before the log names it. A server that is away would be
// shut out: only the certificates of nodes are renewed for who was away.
func (a *Agent) newCA(ctx context.Context, revoke bool) (structs.CARotate, error) {
	now := a.now()
	before := a.identity.ca()
	ca, err := auth.NewCA(before.Cluster, rand.Reader, now)
	if err != nil {
		return structs.CARotate{}, err
	}
	key, err := ca.KeyPEM()
	if err != nil {
		return structs.CARotate{}, err
	}
	body := structs.CARotate{Stage: structs.KeyInstall, From: caCertificate(before), To: caCertificate(ca)}
	if !revoke {
		end := now.Add(a.config.Server.LapseGrace)
		cross, err := before.Cross(ca.Certificate, end, rand.Reader, now)
		if err != nil {
			return structs.CARotate{}, err
		}
		body.Cross, body.Until = string(auth.CertificatePEM(cross)), structs.At(cross.NotAfter)
	}
	if err := a.identity.offerCA(offeredCA{ca.CertificatePEM(), key}); err != nil {
		return structs.CARotate{}, err
	}
	type answer struct {
		name string
		err  error
	}
	peers, names := a.raft.Peers(), a.house.names()
	answers := make(chan answer, len(peers))
	var asked sync.WaitGroup
	for _, peer := range peers {
		if peer.ID == a.ID() {
			continue
		}
		asked.Go(func() {
			_, err := askServer[structs.CAKeyReply, structs.GossipKeyKept](ctx, a.pool, server.Agent{ID: peer.ID, Addr: peer.Addr, Role: auth.RoleServer},
				structs.MethodServerOfferCA, &structs.CAKeyReply{Certificate: ca.CertificatePEM(), Key: key})
			name := names[peer.ID]
			if name == "" {
				name = peer.Addr
			}
			answers <- answer{name, err}
		})
	}
	asked.Wait()
	close(answers)
	for answer := range answers {
		if answer.err != nil {
			return structs.CARotate{}, structs.NewError(structs.CodeUnavailable, "agent.rotation_server_away", "server", answer.name).Because(answer.err)
		}
	}
	return body, nil
}

func caCertificate(ca *auth.CA) structs.CACertificate {
	return structs.CACertificate{Fingerprint: ca.Fingerprint(), PEM: string(ca.CertificatePEM())}
}

// caRetry is the pause between attempts to have a certificate of the new CA: the
// server that was asked may not know of it yet.
const caRetry = time.Second
