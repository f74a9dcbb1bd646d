package service

import (
	"context"
	"errors"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Commit answers Alloc.Commit: it keeps a task's container as an image of this
// node. Errors are *structs.Error.
func (s *Service) Commit(ctx context.Context, caller Caller, order *structs.CommitOrder) (*structs.Committed, error) {
	t, err := s.execTarget(ctx, caller, &structs.ExecStart{AllocID: order.AllocID, Attempt: order.Attempt})
	if err != nil {
		return nil, err
	}
	committer, able := t.driver.(driver.Committer)
	if !able {
		return nil, structs.NewError(structs.CodeConflict, "client.commit_unable", "alloc", order.AllocID)
	}
	s.Log.Info("container of task is kept as image", logkey.AllocID, order.AllocID, logkey.User, order.Author, "image", order.Image)
	made, err := committer.Commit(ctx, t.task, order.Image, driver.CommitNote{Author: order.Author, Comment: order.Comment})
	var told *structs.Error
	switch {
	case err == nil:
		return &structs.Committed{Image: made.Image, ID: made.ID, Bytes: made.Bytes}, nil
	case errors.As(err, &told):
		return nil, err
	}
	return nil, structs.NewError(structs.CodeUnavailable, "client.commit_failed", "alloc", order.AllocID, "cause", err)
}
