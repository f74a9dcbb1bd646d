package agent

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// letIn answers agent.join: a new agent with a join token's secret gets its
// certificate, and with it the secrets of its role.
func (s *site) letIn(r *request) error {
	body := r.body.(*api.JoinRequest)
	role := auth.Role(body.Role)
	if err := s.checkJoin(body, role); err != nil {
		return err
	}
	chain, err := s.admitAgent(r, body, role)
	if err != nil {
		return err
	}
	held := s.identity.held.Load()
	out := api.Joined{
		Certificate: string(chain), GossipKey: encodeGossipKey(s.identity.gossip.primary()),
		Servers: s.gossipServers(), CA: string(held.caPEM), PastCA: held.kept.Past,
	}
	if role == auth.RoleServer {
		key, err := held.ca.KeyPEM()
		if err != nil {
			return err
		}
		out.CAKey, out.Init = string(key), s.identity.record()
		if next := held.kept.Offered; next != nil {
			out.NextCA, out.NextCAKey = string(next.Certificate), string(next.Key)
		}
	}
	s.log.Info("agent let in", "role", body.Role, "id", body.AgentID, "name", body.Name, logkey.Addr, peerKey(r.RemoteAddr), logkey.TokenID, body.TokenID)
	return r.reply(out)
}

// ownAddress is the IP that a request comes from, for the requester's
// certificate, "" when a node passed it on: the address is that node's then.
func ownAddress(r *http.Request) string {
	passedOn := forwards(r) > 0 || r.TLS == nil || r.TLS.ServerName == auth.ServerName
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || passedOn {
		return ""
	}
	return host
}

// admitAgent checks and uses the token and signs the certificate: by the log,
// or, before there is one, by the founder's own record.
func (s *site) admitAgent(r *request, body *api.JoinRequest, role auth.Role) ([]byte, error) {
	if s.store.Snapshot().Cluster() != nil || len(s.house.raft.Peers()) > 0 {
		return s.replica.Admit(r.Context(), server.Join{
			TokenID: body.TokenID, Secret: body.Secret, Role: role, AgentID: body.AgentID, CSR: []byte(body.CSR), IP: ownAddress(r.Request),
		})
	}
	if err := s.identity.useJoinToken(body, role, s.now); err != nil {
		return nil, err
	}
	chain, err := s.identity.sign([]byte(body.CSR), auth.Identity{Cluster: s.identity.credentials.Self.Cluster, Role: role, ID: body.AgentID}, s.now(), ownAddress(r.Request))
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	return chain, nil
}

// checkJoin refuses requests that no joiner of ours makes, and ids that are
// taken: a join token must not buy the identity of an agent that exists.
func (s *site) checkJoin(body *api.JoinRequest, role auth.Role) error {
	id := auth.Identity{Cluster: s.identity.credentials.Self.Cluster, Role: role, ID: body.AgentID}
	problem := structs.NameProblem(body.Name)
	switch {
	case id.Validate() != nil:
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", "role or id")
	case problem != "":
		return structs.NewError(structs.CodeInvalid, problem)
	case len(body.AgentID) != 32:
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", "id")
	}
	if _, err := auth.ParseCSR([]byte(body.CSR)); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	if s.store.Snapshot().Cluster().IsNodeRemoved(body.AgentID) {
		return structs.NewError(structs.CodeForbidden, "server.node_removed")
	}
	if s.isWho(body, id) {
		return nil
	}
	taken := s.store.Snapshot().Node(body.AgentID) != nil || s.identity.credentials.Self.ID == body.AgentID
	for _, peer := range s.house.raft.Peers() {
		taken = taken || peer.ID == body.AgentID
	}
	for _, member := range s.house.gossip.Members() {
		taken = taken || member.ID == body.AgentID
	}
	if s.store.Snapshot().Cluster().IsRemoved(body.AgentID) {
		return structs.NewError(structs.CodeConflict, "agent.join_removed", "id", body.AgentID)
	}
	if taken {
		return structs.NewError(structs.CodeConflict, "agent.join_id_taken", "id", body.AgentID)
	}
	return nil
}

// record is a copy of the cluster's record as it stands now.
func (i *identity) record() *structs.ClusterInit {
	i.using.Lock()
	defer i.using.Unlock()
	copied := *i.init
	copied.JoinTokens = append([]structs.JoinToken(nil), i.init.JoinTokens...)
	return &copied
}

// useJoinToken takes one use of a token that the founder made before there
// was a log, and remembers it on disk before anybody is let in.
func (i *identity) useJoinToken(body *api.JoinRequest, role auth.Role, now clockFunc) error {
	i.using.Lock()
	defer i.using.Unlock()
	var stored *structs.JoinToken
	for k := range i.init.JoinTokens {
		if i.init.JoinTokens[k].ID == body.TokenID {
			stored = &i.init.JoinTokens[k]
		}
	}
	if err := auth.CheckJoin(stored, body.Secret, role, now()); err != nil {
		return err
	}
	if stored.UsesLeft == auth.JoinUsesUnlimited {
		return nil
	}
	stored.UsesLeft--
	data, err := json.MarshalIndent(i.init, "", "  ")
	if err == nil {
		i.gossip.mu.Lock() // a renewal would bring the use back with its copy of the directory
		err = replaceFile(filepath.Join(i.dir, identityDir, initFile), data)
		i.gossip.mu.Unlock()
	}
	if err != nil {
		stored.UsesLeft++
		return err
	}
	return nil
}

func (s *site) listJoinTokens(r *request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	out := api.JoinTokenList{Tokens: []structs.JoinToken{}}
	for token := range s.store.Snapshot().JoinTokens() {
		shown := *token
		shown.Hash = nil
		out.Tokens = append(out.Tokens, shown)
	}
	return r.reply(out)
}

func (s *site) createJoinToken(r *request) error {
	body := r.body.(*api.JoinTokenRequest)
	uses, ttl := body.Uses, body.TTL.Std()
	if uses == 0 {
		uses = 1
	}
	if ttl == 0 {
		ttl = joinTTLDefault
	}
	switch {
	case !auth.Role(body.Role).Valid():
		return structs.NewError(structs.CodeInvalid, "agent.role_unknown", "role", body.Role)
	case ttl < 0 || ttl > joinTTLMax:
		return structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", body.TTL)
	case uses < auth.JoinUsesUnlimited || uses > joinUsesMax:
		return structs.NewError(structs.CodeInvalid, "agent.uses", "uses", body.Uses, "max", joinUsesMax)
	}
	token, stored, err := auth.GenerateJoinToken(s.identity.ca().Fingerprint(), s.addr, auth.Role(body.Role), uses, ttl, s.rand, s.now())
	if err != nil {
		return err
	}
	stored.CreatedBy = r.caller.principal.ID
	index, err := s.propose(r, structs.CommandJoinTokenPut, structs.JoinTokenPut{Token: *stored})
	if err != nil {
		return err
	}
	r.setIndex(index)
	shown := *stored
	shown.Hash = nil
	return r.reply(api.NewJoinToken{Token: shown, Join: token.String()})
}

func (s *site) deleteJoinToken(r *request) error {
	if s.store.Snapshot().JoinToken(r.id) == nil {
		return auth.NotFound(auth.ObjectJoinToken, r.id)
	}
	return s.change(r, structs.CommandJoinTokenDelete, structs.JoinTokenDelete{ID: r.id})
}
