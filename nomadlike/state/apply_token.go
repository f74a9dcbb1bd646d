package state

import (
	"bytes"
	"crypto/sha256"

	"nomadlike/nomadlike/structs"
)

// applyClusterInit makes the cluster's one record, with the join tokens that
// existed before the log did.
func applyClusterInit(tx *txn, body *structs.ClusterInit) (structs.ApplyResult, *structs.Error) {
	if known, ok := tx.cluster(); ok {
		return refuse(structs.CodeConflict, "state.cluster_exists", "cluster", known.ID)
	}
	if !validKey(body.Cluster.ID) {
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "id")
	}
	for i := range body.JoinTokens {
		if !validJoinToken(&body.JoinTokens[i]) {
			return refuse(structs.CodeInvalid, "state.token_malformed")
		}
	}
	cluster := body.Cluster
	tx.putCluster(&cluster)
	for i := range body.JoinTokens {
		token := body.JoinTokens[i]
		token.ModifyIndex = tx.index()
		tx.put(tableJoinTokens, idKey(token.ID), &token)
	}
	tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.initialized"}, "cluster", cluster.ID)
	return accepted()
}

func validJoinToken(token *structs.JoinToken) bool {
	return validKey(token.ID) && len(token.Hash) == sha256.Size && token.UsesLeft >= -1
}

func validToken(token *structs.Token) bool {
	return validKey(token.ID) && len(token.Hash) == sha256.Size
}

// applyTokenPut stores a new token. Its secret's hash must be new too.
func applyTokenPut(tx *txn, body *structs.TokenPut) (structs.ApplyResult, *structs.Error) {
	if err := tx.storeToken(&body.Token); err != nil {
		return structs.ApplyResult{}, err
	}
	return accepted()
}

// tokenProblem reports what keeps a token from being stored, nil for nothing. One that
// is there already is the same command a second time: its proposer could not know the
// outcome.
func (tx *txn) tokenProblem(token *structs.Token) (there bool, refusal *structs.Error) {
	if !validToken(token) {
		return false, structs.NewError(structs.CodeInvalid, "state.token_malformed")
	}
	if user := tx.user(token.User); user != nil && user.Disabled {
		return false, structs.NewError(structs.CodeConflict, "auth.user_disabled", "user", user.Name)
	}
	if refusal := tx.serviceTokenProblem(token); refusal != nil {
		return false, refusal
	}
	if known, ok := get[*structs.Token](tx, tableTokens, idKey(token.ID)); ok {
		if bytes.Equal(known.Hash, token.Hash) {
			return true, nil
		}
		return false, structs.NewError(structs.CodeConflict, "state.token_exists", "token", token.ID)
	}
	if _, ok := lookup[*structs.Token](tx, tableTokens, indexHash, token.Hash); ok {
		return false, structs.NewError(structs.CodeConflict, "state.token_exists", "token", token.ID)
	}
	return false, nil
}

func (tx *txn) storeToken(token *structs.Token) *structs.Error {
	there, refusal := tx.tokenProblem(token)
	if refusal != nil || there {
		return refusal
	}
	if token.Method != "" {
		tx.dropSignIns(token.User)
	}
	tx.dropServiceTokens(token.User)
	stored := *token
	stored.ModifyIndex = tx.index()
	tx.put(tableTokens, idKey(stored.ID), &stored)
	tx.tell(structs.Event{Topic: topicToken, ID: "event.token.created", Project: token.Project},
		"token", token.ID, "name", token.Name, "role", token.Role)
	return nil
}

// applyTokenDelete revokes a token.
func applyTokenDelete(tx *txn, body *structs.TokenDelete) (structs.ApplyResult, *structs.Error) {
	token, ok := get[*structs.Token](tx, tableTokens, idKey(body.ID))
	if !ok {
		return refuse(structs.CodeNotFound, "state.token_unknown", "token", body.ID)
	}
	tx.revoke(token)
	return accepted()
}

func (tx *txn) revoke(token *structs.Token) {
	tx.remove(tableTokens, idKey(token.ID), token)
	tx.tell(structs.Event{Topic: topicToken, ID: "event.token.deleted", Project: token.Project},
		"token", token.ID, "name", token.Name)
}

// applyTokenBootstrap makes the first management token, once, for whoever
// holds the setup secret.
func applyTokenBootstrap(tx *txn, body *structs.TokenBootstrap) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if made, ok := get[*structs.Token](tx, tableTokens, idKey(body.Token.ID)); known.Bootstrapped && ok &&
		bytes.Equal(made.Hash, body.Token.Hash) {
		return accepted() // the same command a second time
	}
	if known.Bootstrapped {
		return refuse(structs.CodeConflict, "state.bootstrap_done")
	}
	if len(known.SetupHash) != sha256.Size || !bytes.Equal(known.SetupHash, body.SetupHash) {
		return refuse(structs.CodeUnauthorized, "state.setup_secret_wrong")
	}
	if err := tx.storeToken(&body.Token); err != nil {
		return structs.ApplyResult{}, err
	}
	cluster := *known
	cluster.Bootstrapped, cluster.SetupHash = true, nil
	tx.putCluster(&cluster)
	return accepted()
}

// applyJoinTokenPut stores a join token.
func applyJoinTokenPut(tx *txn, body *structs.JoinTokenPut) (structs.ApplyResult, *structs.Error) {
	if !validJoinToken(&body.Token) {
		return refuse(structs.CodeInvalid, "state.token_malformed")
	}
	if known, ok := get[*structs.JoinToken](tx, tableJoinTokens, idKey(body.Token.ID)); ok {
		if bytes.Equal(known.Hash, body.Token.Hash) {
			return accepted() // the same command a second time
		}
		return refuse(structs.CodeConflict, "state.token_exists", "token", body.Token.ID)
	}
	token := body.Token
	token.ModifyIndex = tx.index()
	tx.put(tableJoinTokens, idKey(token.ID), &token)
	tx.tell(structs.Event{Topic: topicToken, ID: "event.join_token.created"}, "token", token.ID, "role", token.Role)
	return accepted()
}

// applyJoinTokenConsume takes one use of a join token. One whose last use was
// taken stays, with none left, so that its next holder is told why.
func applyJoinTokenConsume(tx *txn, body *structs.JoinTokenConsume) (structs.ApplyResult, *structs.Error) {
	known, ok := get[*structs.JoinToken](tx, tableJoinTokens, idKey(body.ID))
	switch {
	case !ok || !bytes.Equal(known.Hash, body.Hash):
		return refuse(structs.CodeUnauthorized, "auth.join_unknown")
	case tx.now >= known.ExpiresAt:
		return refuse(structs.CodeUnauthorized, "auth.join_expired", "id", known.ID)
	case known.UsesLeft == 0:
		return refuse(structs.CodeUnauthorized, "auth.join_used_up", "id", known.ID)
	case known.Role != body.Role:
		return refuse(structs.CodeForbidden, "auth.join_role", "id", known.ID, "role", body.Role)
	}
	token := *known
	if token.UsesLeft > 0 {
		token.UsesLeft--
	}
	token.ModifyIndex = tx.index()
	tx.put(tableJoinTokens, idKey(token.ID), &token)
	tx.tell(structs.Event{Topic: topicToken, ID: "event.join_token.consumed"},
		"token", token.ID, "role", token.Role, "agent", body.AgentID)
	return accepted()
}

// applyJoinTokenDelete revokes a join token.
func applyJoinTokenDelete(tx *txn, body *structs.JoinTokenDelete) (structs.ApplyResult, *structs.Error) {
	token, ok := get[*structs.JoinToken](tx, tableJoinTokens, idKey(body.ID))
	if !ok {
		return refuse(structs.CodeNotFound, "state.token_unknown", "token", body.ID)
	}
	tx.remove(tableJoinTokens, idKey(token.ID), token)
	tx.tell(structs.Event{Topic: topicToken, ID: "event.join_token.deleted"}, "token", token.ID)
	return accepted()
}
