package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// holdCA takes the CAs that a record of the cluster names, on a server: with the
// key of that which signs, or is to.
func (a *Agent) holdCA(cluster *structs.Cluster) error {
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
		return errors.New("the leader has not brought the key of the next CA yet")
	}
	return a.certificates.takeCA(caNews{trusted, state.Past, cluster.ModifyIndex, cluster.RevivedAt})
}

func shortFingerprint(name string) string { return name[:min(len(name), 16)] }

// registerCAKeys declares how a leader brings the others the CA that is to take
// the place of the present one. Nobody can ask for it: while the CA of before is
// trusted, whoever has its key passes for any server, but is not at its address.
func (a *Agent) registerCAKeys() {
	rpc.Unary(a.rpc, structs.MethodServerOfferCA, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.CAOffer) (*structs.GossipKeyKept, error) {
			if a.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			offered := offeredCA{offer.Certificate, offer.Key}
			if cluster := a.store.Snapshot().Cluster(); cluster != nil && cluster.CA != nil && cluster.CA.Keys.Rotation != nil {
				ca, err := auth.ParseCA(offered.Certificate, offered.Key, cluster.ID)
				if err != nil || ca.Fingerprint() != cluster.CA.Keys.Rotation.To {
					return nil, structs.NewError(structs.CodeConflict, "state.rotation_other", "kind", string(structs.KeyCA)).Because(err)
				}
			}
			return &structs.GossipKeyKept{}, a.identity.offerCA(offered)
		})
}

// bringCA gives a server the CA that a rotation leads to, unless it said that it
// has it: it came into the cluster after the rotation began.
func (a *Agent) bringCA(ctx context.Context, rotation *structs.KeyRotation, target rpc.Target, told toldAgent) {
	if rotation == nil || target.Role != auth.RoleServer || slices.Contains(told.cas, rotation.To) {
		return
	}
	ca := a.identity.held.Load().key(rotation.To)
	if ca == nil {
		return
	}
	if err := a.offerTo(ctx, server.Agent{ID: target.ID, Addr: target.Addr, Role: auth.RoleServer}, ca); err != nil && ctx.Err() == nil {
		a.log.Warn("the next CA did not reach a server", logkey.NodeID, target.ID, logkey.Error, err)
	}
}

func (a *Agent) offerTo(ctx context.Context, other server.Agent, ca *auth.CA) error {
	key, err := ca.KeyPEM()
	if err != nil {
		return err
	}
	_, err = askServer[structs.CAOffer, structs.GossipKeyKept](ctx, a.pool, other, structs.MethodServerOfferCA, &structs.CAOffer{Certificate: ca.CertificatePEM(), Key: key})
	return err
}

// NewCA makes the CA that is to take the place of the present one and gives it to
// every other server, before the log names it. A server that is away would be
// shut out: only the certificates of nodes are renewed for who was away.
func (a *Agent) NewCA(ctx context.Context, revoke bool) (structs.CARotate, error) {
	now := a.options.now()
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
		past := slices.DeleteFunc(slices.Clone(a.identity.held.Load().kept.Past), func(past structs.PastCA) bool { return past.Until <= structs.At(now) })
		past = append(past, structs.PastCA{Certificate: body.From, Cross: string(auth.CertificatePEM(cross)), Until: structs.At(cross.NotAfter)})
		body.Past = past[max(0, len(past)-structs.PastCAsMax):]
	}
	if err := a.identity.offerCA(offeredCA{ca.CertificatePEM(), key}); err != nil {
		return structs.CARotate{}, err
	}
	type answer struct {
		name string
		err  error
	}
	peers, names := a.raft.Peers(), a.members.names()
	answers := make(chan answer, len(peers))
	var asked sync.WaitGroup
	for _, peer := range peers {
		if peer.ID == a.ID() {
			continue
		}
		asked.Go(func() {
			err := a.offerTo(ctx, server.Agent{ID: peer.ID, Addr: peer.Addr, Role: auth.RoleServer}, ca)
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
