package agent

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

func shortFingerprint(name string) string { return name[:min(len(name), 16)] }

func caCertificate(ca *auth.CA) structs.CACertificate {
	return structs.CACertificate{Fingerprint: ca.Fingerprint(), PEM: string(ca.CertificatePEM())}
}

// caRetry is the pause between attempts to have a certificate of the new CA: the
// server that was asked may not know of it yet.
const caRetry = time.Second

// bringCA sends a server the CA that a rotation leads to, unless it said that it
// has it: it came into the cluster after the rotation began.
func (t *teller) bringCA(ctx context.Context, rotation *structs.KeyRotation, target rpc.Target, told toldAgent) {
	if rotation == nil || target.Role != auth.RoleServer || slices.Contains(told.cas, rotation.To) {
		return
	}
	ca := t.identity.held.Load().key(rotation.To)
	if ca == nil {
		return
	}
	if err := t.offerTo(ctx, server.Agent{ID: target.ID, Addr: target.Addr, Role: auth.RoleServer}, ca); err != nil && ctx.Err() == nil {
		t.log.Warn("the next CA did not reach a server", logkey.NodeID, target.ID, logkey.Error, err)
	}
}

func (t *teller) offerTo(ctx context.Context, other server.Agent, ca *auth.CA) error {
	key, err := ca.KeyPEM()
	if err != nil {
		return err
	}
	_, err = askServer[structs.CAOffer, structs.GossipKeyKept](ctx, t.pool, other, structs.MethodServerOfferCA, &structs.CAOffer{Certificate: ca.CertificatePEM(), Key: key})
	return err
}

// NewCA makes the CA that is to take the place of the present one and sends it to
// every other server, before the log names it. A server that is away would be
// shut out: only the certificates of nodes are renewed for those that were away.
func (t *teller) NewCA(ctx context.Context, revoke bool) (structs.CARotate, error) {
	now := t.now()
	before := t.identity.ca()
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
		end := now.Add(t.lapseGrace)
		cross, err := before.Cross(ca.Certificate, end, rand.Reader, now)
		if err != nil {
			return structs.CARotate{}, err
		}
		past := slices.DeleteFunc(slices.Clone(t.identity.held.Load().stored.Past), func(past structs.PastCA) bool { return past.Until <= structs.At(now) })
		past = append(past, structs.PastCA{Certificate: body.From, Cross: string(auth.CertificatePEM(cross)), Until: structs.At(cross.NotAfter)})
		body.Past = past[max(0, len(past)-structs.PastCAsMax):]
	}
	if err := t.identity.offerCA(offeredCA{ca.CertificatePEM(), key}); err != nil {
		return structs.CARotate{}, err
	}
	type answer struct {
		name string
		err  error
	}
	peers, names := t.raft.Peers(), t.members.names()
	answers := make(chan answer, len(peers))
	var asked sync.WaitGroup
	for _, peer := range peers {
		if peer.ID == t.id {
			continue
		}
		asked.Go(func() {
			err := t.offerTo(ctx, server.Agent{ID: peer.ID, Addr: peer.Addr, Role: auth.RoleServer}, ca)
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
