package httpapi

import (
	"context"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// commitPatience is how long an image may take: gigabytes are written.
const commitPatience = 15 * time.Minute

// commit answers allocations.commit: the node of a task keeps its
// container as an image, under a name of the job's project.
func (h *allocationHandlers) commit(r *front.Request, alloc *structs.Allocation, body *api.CommitRequest) (*structs.Committed, error) {
	if !alloc.Enterable() {
		return nil, structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	if body.Name == "" || len(body.Name) > structs.CommitNameMax || strings.ContainsAny(body.Name, "/@ ") || len(body.Comment) > structs.CommitCommentMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.commit_name", "name", body.Name, "max", structs.CommitNameMax)
	}
	conn, err := h.calls.ofAllocation(alloc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), commitPatience)
	defer cancel()
	made, err := rpc.Call[structs.CommitOrder, structs.Committed](ctx, conn, structs.MethodAllocCommit, &structs.CommitOrder{
		AllocID: alloc.ID, Attempt: alloc.Attempt, Image: structs.CommitPrefix + "/" + alloc.Project + "/" + body.Name,
		Author: r.Caller.Principal.ID, Comment: body.Comment,
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}
