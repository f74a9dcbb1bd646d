package state

import (
	"errors"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// readGuarded reads a command with its guard. The guard is judged before the
// command and refuses it as a whole. A command that counts once and was applied
// already changes nothing; one that was refused may be tried again.
func readGuarded(decode wire.Decoder, body []byte) (judge, error) {
	guarded := new(structs.Guarded)
	if err := decode(body, guarded); err != nil {
		return nil, err
	}
	if guarded.Kind == structs.CommandGuarded {
		return nil, errors.New("a guarded command guards another")
	}
	if len(guarded.Once) > structs.OnceMax {
		return nil, errors.New("the name of a command that counts once is too long")
	}
	read, known := judgeOf(guarded.Kind)
	if !known {
		return nil, &UnknownCommandError{Kind: guarded.Kind}
	}
	inner, err := read(decode, guarded.Body)
	if err != nil {
		return nil, err
	}
	return func(tx *txn) (structs.ApplyResult, *structs.Error) {
		if guarded.Once == "" {
			return tx.guard(guarded.Guard, inner)
		}
		key := onceKey(guarded.Once)
		if _, seen := get[*keyRow](tx, tableIdempotency, []byte(key)); seen {
			return structs.ApplyResult{}, nil
		}
		result, refusal := tx.guard(guarded.Guard, inner)
		if refusal == nil {
			tx.remember(key, "")
		}
		return result, refusal
	}, nil
}

// guard applies a command if its guard stands.
func (tx *txn) guard(guard structs.Guard, inner judge) (structs.ApplyResult, *structs.Error) {
	if refusal := tx.stands(guard); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	return inner(tx)
}

// stands reports what of a guard stands no more, nil when all of it does.
func (tx *txn) stands(guard structs.Guard) *structs.Error {
	if guard.TokenID != "" {
		token, ok := get[*structs.Token](tx, tableTokens, idKey(guard.TokenID))
		if !ok || token.ExpiresAt != 0 && tx.now >= token.ExpiresAt {
			return structs.NewError(structs.CodeUnauthorized, "state.token_over")
		}
	}
	for _, rest := range guard.Rests {
		if version, known := tx.version(rest.Kind, rest.ID); !known || version != rest.Index {
			return structs.NewError(structs.CodeConflict, structs.RestChanged, "kind", string(rest.Kind), "id", rest.ID)
		}
	}
	return nil
}

// version is that of a record as the commands before this one left it, 0 where
// there is none.
func (tx *txn) version(kind structs.RestKind, id string) (version uint64, known bool) {
	switch kind {
	case structs.RestJob:
		if row, ok := tx.jobRow(id); ok {
			version = row.CreateIndex
		}
	case structs.RestPool:
		if pool, ok := get[*structs.Pool](tx, tablePools, idKey(id)); ok {
			version = pool.ModifyIndex
		}
	case structs.RestProject:
		if project, ok := get[*structs.Project](tx, tableProjects, idKey(id)); ok {
			version = project.ModifyIndex
		}
	case structs.RestToken:
		if token, ok := get[*structs.Token](tx, tableTokens, idKey(id)); ok {
			version = token.ModifyIndex
		}
	case structs.RestUser:
		if user, ok := get[*structs.User](tx, tableUsers, idKey(id)); ok {
			version = user.ModifyIndex
		}
	case structs.RestSecret:
		ref, ok := structs.ParseSecretID(id)
		if !ok {
			return 0, false
		}
		if secret, ok := get[*structs.Secret](tx, tableSecrets, secretKey(ref)); ok {
			version = secret.ModifyIndex
		}
	case structs.RestService:
		if account := tx.serviceAccount(id); account != nil {
			version = account.ModifyIndex
		}
	case structs.RestData:
		ref, ok := structs.ParseDataID(id)
		if !ok {
			return 0, false
		}
		if object := tx.dataObject(ref); object != nil {
			version = object.ModifyIndex
		}
	case structs.RestTemplate:
		ref, ok := structs.ParseTemplateID(id)
		if !ok {
			return 0, false
		}
		if template, ok := get[*structs.Template](tx, tableTemplates, templateKey(ref)); ok {
			version = template.ModifyIndex
		}
	case structs.RestSettings:
		version = tx.settings().Version()
	default:
		return 0, false
	}
	return version, true
}
