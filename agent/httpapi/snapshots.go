package httpapi

import (
	"context"
	"io"
	"os"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// snapshotSizeMax bounds an uploaded snapshot.
const snapshotSizeMax = 64 << 30 // bytes

// snapshotHandlers saves the whole state, and replaces it.
type snapshotHandlers struct {
	*core
	archives Archives
	applied  func() uint64 // the newest index of the log that this server has applied
	spoolDir string        // for snapshots on their way out
}

// Archives makes and takes snapshots of the whole state. Its errors are answers.
type Archives interface {
	// Roomless is the refusal of a snapshot where there is no room for one, or nil.
	Roomless() error
	// SaveSnapshot writes an archive, and returns its index.
	SaveSnapshot(ctx context.Context, to io.Writer) (index uint64, err error)
	// RestoreSnapshot replaces the state by an archive, of another cluster only
	// when foreign is set, and returns the archive's index.
	RestoreSnapshot(ctx context.Context, from io.Reader, foreign bool, revive func(from io.Reader, to io.Writer, until time.Time) error) (index uint64, err error)
	// InspectSnapshot reads an archive through.
	InspectSnapshot(from io.Reader) (api.SnapshotMeta, error)
}

// save writes an archive to a file first, so that its length is known
// and a reader can tell a whole one from a part.
func (h *snapshotHandlers) save(r *front.Request) error {
	if err := h.archives.Roomless(); err != nil {
		return err
	}
	spool, err := os.CreateTemp(h.spoolDir, "snapshot-")
	if err != nil {
		return err
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	index, err := h.archives.SaveSnapshot(r.Context(), spool)
	if err != nil {
		return err
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h.log.Info("snapshot saved by request", logkey.Index, index, logkey.User, r.Caller.Principal.ID)
	head := r.Writer.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", `attachment; filename="nomadlike.snapshot"`)
	head.Set("Content-Length", formatInt(size))
	r.SetIndex(index)
	_, _ = io.Copy(r.Writer, spool) // a reader that goes away misses bytes of Content-Length
	return nil
}

func (h *snapshotHandlers) restore(r *front.Request) (*api.Changed, error) {
	q := front.Query{R: r}
	foreign := q.Bool("foreign")
	if q.Err != nil {
		return nil, q.Err
	}
	archived, err := h.archives.RestoreSnapshot(r.Context(), io.LimitReader(r.Body, snapshotSizeMax), foreign, h.revive)
	if err != nil {
		return nil, err
	}
	h.log.Warn("state was replaced by request", logkey.Index, archived, logkey.User, r.Caller.Principal.ID, logkey.TokenID, r.Caller.Token.ID)
	index := h.applied()
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

// revive makes the state of an archive fit for this cluster, of whichever it
// was.
func (h *snapshotHandlers) revive(from io.Reader, to io.Writer, until time.Time) error {
	now := h.store.Snapshot()
	revival := structs.Revival{Now: structs.At(h.now()), Until: structs.At(until), Cluster: now.Cluster()}
	for token := range now.JoinTokens() {
		revival.JoinTokens = append(revival.JoinTokens, *token)
	}
	if err := state.Revive(from, to, revival); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return nil
}

func (h *snapshotHandlers) inspect(r *front.Request) (*api.SnapshotMeta, error) {
	meta, err := h.archives.InspectSnapshot(io.LimitReader(r.Body, snapshotSizeMax))
	if err != nil {
		return nil, err
	}
	return &meta, nil
}
