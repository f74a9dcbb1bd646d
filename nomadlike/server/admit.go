package server

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"nomadlike/nomadlike/structs"
)

// idBytes is the randomness of an id.
const idBytes = 16

// randomID draws an id, in hexadecimal.
func (s *Server) randomID() (string, error) {
	id := make([]byte, idBytes)
	if _, err := io.ReadFull(s.config.Rand, id); err != nil {
		return "", fmt.Errorf("draw id: %w", err)
	}
	return hex.EncodeToString(id), nil
}

// CheckJob fills the defaults of a copy of job and tells everything that is
// wrong with it, or not available yet; nil when it may be admitted.
func CheckJob(job *structs.Job) (*structs.Job, *structs.Error) {
	checked := job.Copy()
	checked.SetDefaults()
	if err := structs.InvalidJob(structs.CodeInvalid, checked.Validate()); err != nil {
		return checked, err
	}
	return checked, structs.InvalidJob(structs.CodeNotAvailable, checked.NotAvailable())
}

// SubmitJob admits a job: it fills defaults, validates, fixes id, user and
// time, and queues it. The caller's job is not changed. Key, if not empty,
// makes a repeated submission by the same user the same submission; the id is
// then that of the first one's job.
func (s *Server) SubmitJob(ctx context.Context, user, key string, job *structs.Job) (jobID string, index uint64, err error) {
	admitted, problem := CheckJob(job)
	if problem != nil {
		return "", 0, problem
	}
	if admitted.ID, err = s.randomID(); err != nil {
		return "", 0, err
	}
	admitted.User, admitted.IdempotencyKey = user, key
	admitted.SubmittedAt = s.now()
	result, index, err := s.Submit(ctx, structs.CommandJobSubmit, user, &structs.JobSubmit{Job: admitted})
	return result.JobID, index, err
}
