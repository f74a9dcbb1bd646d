package agent

import (
	"slices"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// StorageBlock names a place for data, labelled with its name. Jobs of all
// people read and write there as their users may.
type StorageBlock struct {
	Name     string   `hcl:"name,label"`
	Path     string   `hcl:"path"`               // template with {user}, {project}, {kind}, {from}, {name}, {version}
	Serves   []string `hcl:"serves,optional"`    // algorithm | dataset | model | volume | output | mount; all unless told
	ReadOnly *bool    `hcl:"read_only,optional"` // whatever jobs ask for
}

// storages checks the places for data that a configuration names.
func (r *resolver) storages(blocks []StorageBlock) []workspace.Storage {
	if len(blocks) > workspace.StoragesMax {
		r.refuse("client.storage", "agent.config.storage_count", "max", workspace.StoragesMax)
		return nil
	}
	var storages []workspace.Storage
	for i := range blocks {
		block, path := &blocks[i], structs.IndexedPath("client.storage", i)
		if id := structs.NameProblem(block.Name); id != "" {
			r.refuse(path, id)
		}
		if slices.ContainsFunc(storages, func(s workspace.Storage) bool { return s.Name == block.Name }) {
			r.refuse(path, "agent.config.storage_twice", "name", block.Name)
		}
		if id, part := workspace.TemplateProblem(block.Path); id != "" {
			r.refuse(path+".path", id, "value", part)
		}
		for _, kind := range block.Serves {
			r.word(path+".serves", kind, structs.StorageKinds()...)
		}
		storages = append(storages, workspace.Storage{
			Name: block.Name, Path: block.Path, Serves: block.Serves, ReadOnly: get(block.ReadOnly, false),
		})
	}
	return storages
}
