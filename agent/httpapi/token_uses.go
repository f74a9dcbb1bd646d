package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// When and from where a service account used a token says whether it can be revoked, and
// whether somebody else has it. Each server notes what its door sees, and puts it into
// the log: at most once a minute for a token, those of a second together, so that a
// program that asks a thousand times a second costs an entry a minute.
const (
	usesTogether = time.Second // after the first use, what came meanwhile is told with it
	usesQuiet    = time.Minute // for which a token that was told of is not told of again
	usesPatience = 10 * time.Second
)

// tokenUses are the uses of service accounts' tokens that a server has seen.
type tokenUses struct {
	submit func(ctx context.Context, uses structs.TokensUsed) error
	now    clockFunc
	log    *slog.Logger

	mu struct {
		sync.Mutex
		seen map[string]structs.TokenUse // by token, since the last telling
		told map[string]time.Time        // when this server last told of a token
		due  bool                        // a telling is on its way
	}
}

func newTokenUses(now clockFunc, log *slog.Logger, submit func(context.Context, structs.TokensUsed) error) *tokenUses {
	u := &tokenUses{submit: submit, now: now, log: log}
	u.mu.seen, u.mu.told = map[string]structs.TokenUse{}, map[string]time.Time{}
	return u
}

// note takes down that a token was good for a request from an address.
func (u *tokenUses) note(token *structs.Token, address string) {
	if !structs.IsServiceAccount(token.User) {
		return
	}
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.mu.told[token.ID]) < usesQuiet || len(u.mu.seen) >= structs.TokenUsesMax {
		return
	}
	u.mu.seen[token.ID] = structs.TokenUse{TokenID: token.ID, At: structs.At(now), From: address}
	if !u.mu.due {
		u.mu.due = true
		time.AfterFunc(usesTogether, u.tell)
	}
}

// tell puts what was seen into the log. What does not get there is not kept: the next
// use is as good.
func (u *tokenUses) tell() {
	now := u.now()
	var uses structs.TokensUsed
	u.mu.Lock()
	u.mu.due = false
	for id, use := range u.mu.seen {
		uses.Uses = append(uses.Uses, use)
		u.mu.told[id] = now
	}
	clear(u.mu.seen)
	for id, at := range u.mu.told {
		if now.Sub(at) >= usesQuiet {
			delete(u.mu.told, id)
		}
	}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), usesPatience)
	defer cancel()
	if err := u.submit(ctx, uses); err != nil {
		u.log.Debug("uses of tokens were not stored", logkey.Error, err)
	}
}
