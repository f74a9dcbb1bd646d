package alloc

import (
	"errors"
	"fmt"

	"nomadlike/nomadlike/structs"
)

// ByNode is a preparation that failed for the node's sake: the job comes back.
func ByNode(id string, params ...any) *PrepareFailed {
	return &PrepareFailed{Cause: structs.NewReason(id, params...), Infra: true}
}

// ByJob is a preparation that failed for something that the job brought along.
func ByJob(err error) *PrepareFailed {
	var told *structs.Error
	if errors.As(err, &told) {
		return &PrepareFailed{Cause: &structs.Reason{ID: told.ID, Params: told.Params}}
	}
	return &PrepareFailed{Cause: structs.NewReason("client.launch_failed", "cause", fmt.Sprint(err))}
}
