package config

import (
	"math"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// StorageBlock names a place for data, labelled with its name. Jobs of all
// people read and write there as their users may.
type StorageBlock struct {
	Name     string
	Path     string // template with {user}, {project}, {kind}, {from}, {name}, {version}
	Serves   []string
	ReadOnly *bool
	HTTP     *StorageHTTPBlock // instead of path: on a web server
	S3       *StorageS3Block   // instead of path: in an object store
}

// walkStorage goes over a block; what it comes to depends on all of it.
func walkStorage(v visitor, b *StorageBlock) {
	v.label(&b.Name)
	v.setting("path", plain(&b.Path))
	v.setting("serves", list(&b.Serves, new([]string)))
	v.setting("read_only", toggle(&b.ReadOnly, new(bool), false))
	one(v, "http", &b.HTTP, func(v visitor, b *StorageHTTPBlock) { walkStorageHTTP(v, b, &remote.Server{}) })
	one(v, "s3", &b.S3, func(v visitor, b *StorageS3Block) { walkStorageS3(v, b, &remote.Server{S3: &remote.S3{}}) })
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
		kinds, template, far := structs.StorageKinds(), block.Path, block.HTTP != nil || block.S3 != nil
		switch {
		case far:
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
			Name: block.Name, Path: template, Serves: block.Serves, ReadOnly: get(block.ReadOnly, false) || far, Remote: far,
		})
	}
	return storages
}

// DataBlock says where copies of datasets are kept.
type DataBlock struct {
	Path      *string
	Retention *string
	FreeMin   *float64
	Share     *bool
	ShareRate *string
}

// Data is the part of data; zero values mean the store's own defaults.
type Data struct {
	Path      string
	Retention time.Duration
	FreeMin   float64
	Share     bool
	ShareRate int64 // bytes per second
}

func walkData(v visitor, b *DataBlock, c *Data) {
	v.setting("path", text(&b.Path, &c.Path, "").unset())
	v.rule(func(r *resolver) {
		if c.Path != "" && (!filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path) {
			r.refuse("client.data.path", "agent.config.data_path", "value", c.Path)
		}
	})
	v.setting("retention", span(&b.Retention, &c.Retention, 0).aboveZero().orBlank().refused("agent.config.retention").knownAs(data.RetentionDefault))
	v.setting("free_min", decimal(&b.FreeMin, &c.FreeMin, 0).from(0, 1).aboveZero().under(1).refused("agent.config.free_min").knownAs(data.FreeMinDefault))
	v.setting("share", toggle(&b.Share, &c.Share, true))
	v.setting("share_rate", size(&b.ShareRate, &c.ShareRate, 0).from(shareRateMin, math.Inf(1)).orBlank().refused("agent.config.share_rate").unset())
}

// shareRateMin is less than any network, and enough for a piece in a few seconds.
const shareRateMin = 1 << 20
