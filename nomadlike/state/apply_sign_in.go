package state

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyPasswordSet makes an account's password another, or takes it away. Whoever
// signed in with the one before has to do so again: it may have been another's.
func applyPasswordSet(tx *txn, body *structs.PasswordSet) (structs.ApplyResult, *structs.Error) {
	password := body.Password
	known := tx.user(password.User)
	switch {
	case known == nil:
		return refuse(structs.CodeNotFound, "state.user_unknown", "user", password.User)
	case !body.Forget && (password.Hash == "" || len(password.Hash) > structs.PasswordHashMax):
		return refuse(structs.CodeInvalid, "state.user_malformed", "user", password.User, "field", "password")
	}
	for _, token := range tx.signInsOf(password.User) {
		if token.Method == structs.MethodPassword && token.ID != body.Keep {
			tx.revoke(token)
		}
	}
	user := *known
	tx.putUser(&user) // what was decided by the password before is decided anew
	event := "event.user.password.set"
	switch {
	case body.Forget:
		event = "event.user.password.forgotten"
		tx.forgetPassword(user.Name)
	default:
		if password.First {
			event = "event.user.password.reset"
		}
		password.SetAt, password.SetBy, password.ModifyIndex = tx.now, tx.by, tx.index()
		tx.put(tablePasswords, idKey(password.User), &password)
	}
	tx.tell(structs.Event{Topic: topicUser, ID: event}, "user", user.Name, "by", tx.by)
	return accepted()
}

func (tx *txn) forgetPassword(user string) {
	if known, ok := get[*structs.Password](tx, tablePasswords, idKey(user)); ok {
		tx.remove(tablePasswords, idKey(user), known)
	}
}

// applyTokenExtend puts off the end of a token that a sign-in made. One that is over,
// or that ends later than asked for, stays as it is.
func applyTokenExtend(tx *txn, body *structs.TokenExtend) (structs.ApplyResult, *structs.Error) {
	token, ok := get[*structs.Token](tx, tableTokens, idKey(body.ID))
	switch {
	case !ok || token.ExpiresAt != 0 && token.ExpiresAt <= tx.now:
		return refuse(structs.CodeNotFound, "state.token_unknown", "token", body.ID)
	case token.Method == "":
		return refuse(structs.CodeConflict, "state.token_fixed", "token", body.ID)
	}
	if expires := min(body.ExpiresAt, token.EndsAt); expires > token.ExpiresAt {
		longer := *token
		longer.ExpiresAt, longer.ModifyIndex = expires, tx.index()
		tx.put(tableTokens, idKey(token.ID), &longer)
	}
	return accepted()
}

// signInsOf returns the tokens that an account has by signing in, the oldest first.
func (tx *txn) signInsOf(user string) (tokens []*structs.Token) {
	for _, token := range listRows[*structs.Token](tx, tableTokens, indexID, nil) {
		if token.User == user && token.Method != "" {
			tokens = append(tokens, token)
		}
	}
	slices.SortFunc(tokens, func(a, b *structs.Token) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return tokens
}

// dropSignIns makes room for one more sign-in of an account: those that are over go,
// and then the oldest.
func (tx *txn) dropSignIns(user string) {
	var live []*structs.Token
	for _, token := range tx.signInsOf(user) {
		if token.ExpiresAt != 0 && token.ExpiresAt <= tx.now {
			tx.revoke(token)
		} else {
			live = append(live, token)
		}
	}
	for _, token := range live[:max(0, len(live)-structs.SignInsMax+1)] {
		tx.revoke(token)
	}
}
