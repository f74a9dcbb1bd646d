package config

import (
	"path/filepath"
	"slices"
	"time"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// StorageBlock names a place for data, labelled with its name. Jobs of all
// people read and write there as their users may.
type StorageBlock struct {
	Name     string            `hcl:"name,label"`
	Path     string            `hcl:"path,optional"`      // template with {user}, {project}, {kind}, {from}, {name}, {version}
	Serves   []string          `hcl:"serves,optional"`    // algorithm | dataset | model | volume | output | mount; all unless told
	ReadOnly *bool             `hcl:"read_only,optional"` // whatever jobs ask for
	HTTP     *StorageHTTPBlock `hcl:"http,block"`         // instead of path: on a web server
	S3       *StorageS3Block   `hcl:"s3,block"`           // instead of path: in an object store
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
		kinds, template, remote := structs.StorageKinds(), block.Path, block.HTTP != nil || block.S3 != nil
		switch {
		case remote:
			kinds = workspace.RemoteKinds()
			template = r.remote(path, block)
		default:
			if id, part := workspace.TemplateProblem(template); id != "" {
				r.refuse(path+".path", id, "value", part)
			}
		}
		for _, kind := range block.Serves {
			r.word(path+".serves", kind, kinds...)
		}
		storages = append(storages, workspace.Storage{
			Name: block.Name, Path: template, Serves: block.Serves, ReadOnly: get(block.ReadOnly, false) || remote, Remote: remote,
		})
	}
	return storages
}

// DataBlock says where copies of datasets are kept.
type DataBlock struct {
	Path      *string  `hcl:"path,optional"`      // on fast storage; a directory of the data directory unless told
	Retention *string  `hcl:"retention,optional"` // since a copy was last used; "7d" unless told
	FreeMin   *float64 `hcl:"free_min,optional"`  // share of the file system that stays free; 0.1 unless told
}

// DataConfig is the part of data; zero values mean the store's own defaults.
type Data struct {
	Path      string
	Retention time.Duration
	FreeMin   float64
}

func (b DataBlock) over(top DataBlock) DataBlock {
	return DataBlock{Path: or(top.Path, b.Path), Retention: or(top.Retention, b.Retention), FreeMin: or(top.FreeMin, b.FreeMin)}
}

func (r *resolver) data(block *DataBlock) Data {
	b := blockOf(block)
	c := Data{Path: get(b.Path, ""), FreeMin: get(b.FreeMin, 0)}
	if c.Path != "" && (!filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path) {
		r.refuse("client.data.path", "agent.config.data_path", "value", c.Path)
	}
	if text := get(b.Retention, ""); text != "" {
		retention, err := structs.ParseDuration(text)
		if err != nil || retention <= 0 {
			r.refuse("client.data.retention", "agent.config.retention", "value", text)
		}
		c.Retention = retention.Std()
	}
	if b.FreeMin != nil && !(c.FreeMin > 0 && c.FreeMin < 1) {
		r.refuse("client.data.free_min", "agent.config.free_min", "value", c.FreeMin)
	}
	return c
}
