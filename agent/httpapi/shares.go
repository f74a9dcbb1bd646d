package httpapi

import (
	"io"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// A share link is a token that speaks for nobody: whoever has it may read the
// one thing that it names, until it expires or is deleted like any token. Its
// user is who made it, and may delete it.

// shareHandlers makes share links, and lists them.
type shareHandlers struct {
	*core
	rand io.Reader
}

// job makes a link that shows a job.
func (h *shareHandlers) job(r *front.Request, job *structs.Job, body *api.ShareRequest) (*api.NewShare, error) {
	token := structs.Token{Role: string(auth.KindGuest), Project: job.Project, JobID: job.ID}
	return h.make(r, body, token, "/jobs/"+job.ID+"#share=")
}

// wall makes a link that shows the wall of cards.
func (h *shareHandlers) wall(r *front.Request, body *api.ShareRequest) (*api.NewShare, error) {
	return h.make(r, body, structs.Token{Role: string(auth.KindBoard)}, "/cluster?board#share=")
}

func (h *shareHandlers) make(r *front.Request, asked *api.ShareRequest, token structs.Token, path string) (*api.NewShare, error) {
	ttl := asked.TTL.Std()
	if ttl == 0 {
		ttl = api.ShareTTLDefault
	}
	switch {
	case ttl < 0 || ttl > api.ShareTTLMax:
		return nil, structs.NewError(structs.CodeInvalid, "agent.share_ttl", "ttl", asked.TTL, "max", structs.Duration(api.ShareTTLMax))
	case !structs.PlainText(asked.Name, labelLengthMax):
		return nil, structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "name", "max", labelLengthMax)
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	known, err := sharesOf(h.store.Snapshot(), token, h.now())
	if err != nil {
		return nil, err
	}
	if len(known) >= api.SharesMax {
		return nil, structs.NewError(structs.CodeConflict, "agent.shares_many", "max", api.SharesMax)
	}
	secret, drawn, err := NewToken(h.rand, h.now(), auth.TokenShare, api.TokenRequest{Name: asked.Name, User: r.Caller.Principal.ID, TTL: structs.Duration(ttl)}, r.Caller.Principal.ID)
	if err != nil {
		return nil, err
	}
	drawn.Role, drawn.Project, drawn.JobID = token.Role, token.Project, token.JobID
	index, err := h.propose(r, structs.CommandTokenPut, structs.TokenPut{Token: drawn})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	r.Made(drawn.ID)
	return &api.NewShare{Token: front.WithoutHash(drawn), Secret: secret, Path: path + secret}, nil
}

// sharesOf lists the links that show the same as like and are not over.
func sharesOf(snapshot *state.Snapshot, like structs.Token, now time.Time) ([]structs.Token, error) {
	found := []structs.Token{}
	page := state.Page{Limit: api.PageSizeMax}
	for {
		tokens, next, refusal := snapshot.ListTokens(page)
		if refusal != nil {
			return nil, refusal
		}
		for _, token := range tokens {
			if token.Role == like.Role && token.Project == like.Project && token.JobID == like.JobID && structs.At(now) < token.ExpiresAt {
				found = append(found, front.WithoutHash(*token))
			}
		}
		if next == "" {
			return found, nil
		}
		page.After = next
	}
}

func (h *shareHandlers) listJob(r *front.Request, job *structs.Job) (*api.ShareList, error) {
	return h.list(r, structs.Token{Role: string(auth.KindGuest), Project: job.Project, JobID: job.ID})
}

func (h *shareHandlers) listWall(r *front.Request) (*api.ShareList, error) {
	return h.list(r, structs.Token{Role: string(auth.KindBoard)})
}

func (h *shareHandlers) list(r *front.Request, like structs.Token) (*api.ShareList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	shares, err := sharesOf(h.store.Snapshot(), like, h.now())
	if err != nil {
		return nil, err
	}
	return &api.ShareList{Shares: shares}, nil
}
