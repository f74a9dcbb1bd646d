package state

import (
	"cmp"
	"strings"

	"nomadlike/nomadlike/structs"
)

// serviceAccount returns a service account by what it is called where names of users
// stand, nil when there is none.
func (tx *txn) serviceAccount(id string) *structs.ServiceAccount {
	key, ok := serviceKey(id)
	if !ok {
		return nil
	}
	account, _ := get[*structs.ServiceAccount](tx, tableServices, key)
	return account
}

// serviceKey is the key of a service account in its table.
func serviceKey(id string) (key []byte, ok bool) {
	if !structs.IsServiceAccount(id) {
		return nil, false
	}
	parts := strings.Split(id, "+")
	switch len(parts) {
	case 2:
		return nameKey("", parts[1]), true
	case 3:
		return nameKey(parts[1], parts[2]), true
	}
	return nil, false
}

// serviceAccountsOf returns the service accounts of a project, or of the cluster where
// project is "", by name.
func (tx *txn) serviceAccountsOf(project string) []*structs.ServiceAccount {
	return listRows[*structs.ServiceAccount](tx, tableServices, indexID, idKey(project))
}

func (tx *txn) putServiceAccount(account *structs.ServiceAccount) {
	account.ModifyIndex = tx.index()
	tx.put(tableServices, nameKey(account.Project, account.Name), account)
}

// tellService tells of a service account: in its project, or to those who see the
// accounts of the cluster.
func (tx *txn) tellService(id string, account *structs.ServiceAccount, params ...string) {
	event := structs.Event{Topic: topicUser, ID: id}
	if account.Project != "" {
		event.Topic, event.Project = topicProject, account.Project
	}
	tx.tell(event, append([]string{"account", account.ID(), "by", tx.by}, params...)...)
}

// applyServiceAccountPut makes a service account, or replaces what it says. What the
// name had before is not the new one's.
func applyServiceAccountPut(tx *txn, body *structs.ServiceAccountPut) (structs.ApplyResult, *structs.Error) {
	account := body.Account
	if problems := account.Validate(); len(problems) > 0 {
		return refuse(structs.CodeInvalid, "state.service_malformed", "account", account.ID(), "field", problems[0].Path)
	}
	id, known := "event.service.changed", tx.serviceAccount(account.ID())
	if known == nil {
		if len(tx.serviceAccountsOf(account.Project)) >= structs.ServiceAccountsPerProject {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "service accounts", "max", structs.ServiceAccountsPerProject)
		}
		id, known = "event.service.created", &structs.ServiceAccount{CreatedAt: tx.now, CreatedBy: tx.by, CreateIndex: tx.index()}
		tx.revokeTokensOf(account.ID())
	}
	account.Disabled, account.DisabledAt, account.DisabledBy = known.Disabled, known.DisabledAt, known.DisabledBy
	account.CreatedAt, account.CreatedBy, account.CreateIndex = known.CreatedAt, known.CreatedBy, known.CreateIndex
	tx.putServiceAccount(&account)
	tx.tellService(id, &account, "role", account.Role)
	return accepted()
}

// applyServiceAccountState disables a service account, or enables it. One that is
// disabled loses its tokens in the same step, and with them everything that they opened.
func applyServiceAccountState(tx *txn, body *structs.ServiceAccountState) (structs.ApplyResult, *structs.Error) {
	known := tx.serviceAccount(body.ID)
	switch {
	case known == nil:
		return refuse(structs.CodeNotFound, "state.service_unknown", "account", body.ID)
	case known.Disabled == body.Disabled:
		return accepted()
	}
	account := *known
	if !body.Disabled {
		account.Disabled, account.DisabledAt, account.DisabledBy = false, 0, ""
		tx.putServiceAccount(&account)
		tx.tellService("event.service.enabled", &account)
		return accepted()
	}
	jobs := &structs.UserState{Name: body.ID, Jobs: body.Jobs, To: body.To}
	if refusal := tx.heirProblem(jobs); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	account.Disabled, account.DisabledAt, account.DisabledBy = true, tx.now, tx.by
	tx.putServiceAccount(&account)
	tx.tellService("event.service.disabled."+cmp.Or(body.Jobs, structs.JobsRunOn), &account, "to", body.To)
	tx.revokeTokensOf(body.ID)
	tx.endJobsOf(jobs, structs.NewReason("reason.service_disabled", "account", body.ID, "by", tx.by))
	return accepted()
}

// applyServiceAccountDelete forgets a service account, with its tokens and whatever is
// its own. Its name stays on what it made.
func applyServiceAccountDelete(tx *txn, body *structs.ServiceAccountDelete) (structs.ApplyResult, *structs.Error) {
	account := tx.serviceAccount(body.ID)
	if account == nil {
		return refuse(structs.CodeNotFound, "state.service_unknown", "account", body.ID)
	}
	jobs := &structs.UserState{Name: body.ID, Jobs: body.Jobs, To: body.To}
	if refusal := tx.heirProblem(jobs); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if live := tx.liveJobsOf(body.ID); len(live) > 0 && cmp.Or(body.Jobs, structs.JobsRunOn) == structs.JobsRunOn {
		return refuse(structs.CodeConflict, "state.service_in_use", "account", body.ID, "job", live[0].Name, "count", len(live))
	}
	tx.revokeTokensOf(body.ID)
	tx.removeSecretsOf(body.ID)
	tx.removeTemplates(func(t *structs.Template) bool { return t.User == body.ID })
	tx.removeMarksOf(body.ID)
	tx.removeNotifyOf(body.ID)
	tx.remove(tableServices, nameKey(account.Project, account.Name), account)
	tx.tellService("event.service.deleted."+cmp.Or(body.Jobs, structs.JobsRunOn), account, "to", body.To)
	tx.endJobsOf(jobs, structs.NewReason("reason.service_deleted", "account", body.ID, "by", tx.by))
	return accepted()
}

// applyServiceAccountRevoke revokes all tokens of a service account.
func applyServiceAccountRevoke(tx *txn, body *structs.ServiceAccountRevoke) (structs.ApplyResult, *structs.Error) {
	if tx.serviceAccount(body.ID) == nil {
		return refuse(structs.CodeNotFound, "state.service_unknown", "account", body.ID)
	}
	tx.revokeTokensOf(body.ID)
	return accepted()
}

// serviceTokenProblem reports what keeps a token from being a service account's, nil
// for nothing and for tokens of others. Those that are over make room.
func (tx *txn) serviceTokenProblem(token *structs.Token) *structs.Error {
	account := tx.serviceAccount(token.User)
	switch {
	case account == nil: // by whatever name, it is good for nothing
		return nil
	case account.Disabled:
		return structs.NewError(structs.CodeConflict, "auth.service_disabled", "account", token.User)
	case token.Role != structs.RoleAccount, token.Project != account.Project, token.JobID != "", token.Method != "", token.ExpiresAt == 0:
		return structs.NewError(structs.CodeInvalid, "state.token_malformed")
	}
	live := 0
	for _, other := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		if other.User == token.User && other.ID != token.ID && tx.now < other.ExpiresAt {
			live++
		}
	}
	if live >= structs.ServiceTokensMax {
		return structs.NewError(structs.CodeTooLarge, "state.service_tokens", "account", token.User, "max", structs.ServiceTokensMax)
	}
	return nil
}

// dropServiceTokens forgets the tokens of a service account that are over.
func (tx *txn) dropServiceTokens(id string) {
	if tx.serviceAccount(id) == nil {
		return
	}
	for _, token := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		if token.User == id && token.ExpiresAt <= tx.now {
			tx.revoke(token)
		}
	}
}

// applyTokensUsed notes when tokens of service accounts were used last. Servers tell
// what they saw, in any order; the newest counts. The version of the token stays: what
// it is good for has not changed.
func applyTokensUsed(tx *txn, body *structs.TokensUsed) (structs.ApplyResult, *structs.Error) {
	if len(body.Uses) > structs.TokenUsesMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "uses", "max", structs.TokenUsesMax)
	}
	for _, use := range body.Uses {
		token, ok := get[*structs.Token](tx, tableTokens, idKey(use.TokenID))
		if !ok || use.At <= token.UsedAt || !validText(use.From) || tx.serviceAccount(token.User) == nil {
			continue
		}
		used := *token
		used.UsedAt, used.UsedFrom = use.At, use.From
		tx.put(tableTokens, idKey(token.ID), &used)
	}
	return accepted()
}
