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
func (h *allocationHandlers) commit(r *front.Request, alloc *structs.Allocation, body *api.CommitRequest) (*api.Committed, error) {
	if !alloc.Enterable() {
		return nil, structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	if body.Name == "" || len(body.Name) > structs.CommitNameMax || strings.ContainsAny(body.Name, "/@ ") || len(body.Comment) > structs.CommitCommentMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.commit_name", "name", body.Name, "max", structs.CommitNameMax)
	}
	if body.Push != "" {
		if name, ok := structs.ParseImageName(body.Push); !ok || name.Digest != "" {
			return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", body.Push)
		}
		node := h.store.Snapshot().Node(alloc.NodeID)
		if node == nil {
			return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", alloc.NodeName)
		}
		if err := movesImages(node); err != nil { // before anything is made
			return nil, err
		}
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
	out := &api.Committed{Committed: *made}
	told := structs.ImageTold{Act: structs.ImageSave, NodeID: alloc.NodeID, JobID: alloc.JobID, Image: made.Image, Bytes: made.Bytes}
	index, err := h.propose(r, structs.CommandImageTold, told)
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	if body.Push == "" {
		return out, nil
	}
	if err := h.push(ctx, r, alloc, body, made.Image, out); err != nil {
		return nil, err
	}
	return out, nil
}

// push sends the image that was made of a container to a registry, and waits for it.
func (h *allocationHandlers) push(ctx context.Context, r *front.Request, alloc *structs.Allocation, body *api.CommitRequest, image string, out *api.Committed) error {
	node := h.store.Snapshot().Node(alloc.NodeID)
	order := structs.ImageOrder{Act: structs.ImagePush, Image: image, To: body.Push, By: r.Caller.Principal.ID}
	if body.Secret != "" {
		login, err := h.images.login(r, node, image, alloc.Project, body.Secret, body.Mine)
		if err != nil {
			return err
		}
		defer clear(login)
		order.Login = login
	}
	work, err := h.images.order(ctx, node, &order)
	if err != nil {
		return err
	}
	if work, err = h.images.await(ctx, node, work); err != nil {
		return err
	}
	told := structs.ImageTold{Act: structs.ImagePush, NodeID: alloc.NodeID, JobID: alloc.JobID, Image: image, To: body.Push, Bytes: work.Bytes}
	index, err := h.propose(r, structs.CommandImageTold, told)
	if err != nil {
		return err
	}
	r.SetIndex(index)
	out.Pushed, out.Digest = body.Push, work.Digest
	return nil
}
