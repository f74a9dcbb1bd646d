package prepare

import (
	"context"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/structs"
)

// masks reports whether a driver of this node masks in logs what it is told to. A leader
// of before places jobs without asking.
func masks(node structs.Node, driver string) bool { return node.Masks(driver) }

// secretsFor gets the secrets of an allocation, and writes those that are files.
func secretsFor(ctx context.Context, from *secrets.Keeper, a *structs.Assignment, owner account.Owner) (given []structs.SecretValue, dir string, failure *alloc.PrepareFailed) {
	if len(a.Job.Task.Secrets) == 0 {
		return nil, "", nil
	}
	given, err := from.Get(ctx, a.Alloc.ID)
	switch structs.CodeOf(err) {
	case structs.CodeForbidden, structs.CodeNotFound:
		return nil, "", alloc.ByJob(err)
	}
	if err != nil {
		return nil, "", alloc.ByNode("client.secrets_unreachable", "cause", err)
	}
	container := a.Job.Task.Driver == structs.DriverDocker
	if dir, err = from.Files(a.Alloc.ID, given, owner.Give, container && !owner.Change); err != nil {
		return nil, "", alloc.ByNode("client.secrets_no_memory", "cause", err)
	}
	return given, dir, nil
}
