package state

import (
	"maps"
	"slices"
	"unique"

	"nomadlike/nomadlike/structs"
)

// Decoding makes every row strings of its own. A hundred thousand jobs say the
// same few words, so those are kept once: this changes no row, only where its
// bytes are.

func intern[T ~string](words ...*T) {
	for _, word := range words {
		if *word != "" {
			*word = unique.Make(*word).Value()
		}
	}
}

// internJob shares the words of a job that nobody else has yet.
func internJob(job *structs.Job) {
	intern(&job.Project, &job.Category, &job.Access, &job.User, &job.Description, &job.Fencing, &job.Distributed.WorldSize,
		&job.Distributed.Rewrite, &job.Distributed.Launcher, &job.Placement.Pool, &job.Placement.SpreadOrPack, &job.Task.Driver,
		&job.Task.Image, &job.Task.Pull, &job.Task.Command, &job.Task.Dir, &job.Task.User)
	intern(&job.Type)
	intern(&job.Priority)
	intern(&job.Distributed.Mode)
	for i := range job.Resources {
		intern(&job.Resources[i].Label)
		for k := range job.Resources[i].Devices {
			intern(&job.Resources[i].Devices[k].Kind, &job.Resources[i].Devices[k].Model)
		}
	}
}

// internNode shares the words of a node that nobody else has yet.
func internNode(node *structs.Node) {
	intern(&node.Version, &node.Pool, &node.OwnPool)
	for i := range node.Drivers {
		intern(&node.Drivers[i])
	}
	for i := range node.Storages {
		intern(&node.Storages[i])
	}
	for i := range node.Topology {
		intern(&node.Topology[i])
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		intern(&d.Kind, &d.Model, &d.PCIBus, &d.LinkGroup, &d.Driver)
	}
}

// sameWait reports whether two explanations say the same.
func sameWait(a, b *structs.WaitReason) bool {
	return a != nil && b != nil && a.ID == b.ID && a.Position == b.Position && a.Never == b.Never &&
		maps.Equal(a.Params, b.Params) && slices.Equal(a.Holders, b.Holders)
}
