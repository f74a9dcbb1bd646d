package command

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// pulled says what was brought home.
type pulled struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  int    `json:"version"`
	Digest   string `json:"digest"`
	Dir      string `json:"dir"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
	Received int64  `json:"received"` // bytes: the others were there of a try before
}

// dataPull brings a version of named data to a directory of this machine.
func dataPull(set *flag.FlagSet) func(*Env, []string) error {
	return dataVerb(set, "NAME[@VERSION] DIR", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0])
		version, err := env.wholeVersion(client, of)
		if err != nil {
			return err
		}
		if err := free(args[1]); err != nil {
			return err
		}
		data, err := client.DataManifest(env.Context, of.DataName, version.Number)
		if err != nil {
			return err
		}
		if string(tree.DigestOf(data)) != version.Digest {
			return structs.NewError(structs.CodeUnavailable, "code.broken_answer", "digest", tree.Digest(version.Digest).Short())
		}
		manifest, err := tree.Decode(data)
		if err != nil {
			return err
		}
		p := &pull{env: env, client: client, of: of.DataName, version: version.Number, manifest: manifest, dir: filepath.Clean(args[1])}
		received, err := p.run(version.Digest)
		if err != nil {
			return err
		}
		out := pulled{
			Kind: of.Kind, Name: of.Name, Version: version.Number, Digest: version.Digest, Dir: args[1], Files: manifest.Files(), Bytes: manifest.Bytes(), Received: received,
		}
		return env.show(flags.output, out, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.data.pulled", "kind", out.Kind, "name", safe(out.Name), "version", out.Version,
				"files", out.Files, "size", size(out.Bytes), "received", size(out.Received), "dir", safe(out.Dir)))
		})
	})
}

// wholeVersion is the version that an argument says, which must have a manifest.
func (env *Env) wholeVersion(client *api.Client, of meant) (*structs.DataVersion, error) {
	detail, err := client.DataObject(env.Context, of.DataName)
	if err != nil {
		return nil, err
	}
	version, err := chosenVersion(detail, of)
	if err != nil {
		return nil, err
	}
	if version.State == structs.DataRegistered {
		return nil, structs.NewError(structs.CodeConflict, "agent.data_registered", "kind", of.Kind, "name", of.Name,
			"version", version.Number, "storage", detail.Object.Storage, "source", version.Source)
	}
	return version, nil
}

// free refuses a directory in which something lies.
func free(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err == nil:
		return structs.NewError(structs.CodeConflict, "cli.data.pull_exists", "dir", dir)
	}
	return structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", dir, "problem", rootCause(err))
}

// pull is a version on its way home: to a directory beside the one that was asked for,
// which gets that name when it is whole.
type pull struct {
	env      *Env
	client   *api.Client
	of       api.DataName
	version  int
	manifest tree.Manifest
	dir      string

	root  *os.Root
	spots map[tree.Digest][]pullSpot // where chunks are missing
	got   atomic.Int64
}

// pullSpot is where a chunk belongs.
type pullSpot struct {
	name   string
	offset int64
}

func (p *pull) run(digest string) (received int64, err error) {
	beside := p.dir + ".part-" + tree.Digest(digest).Short()
	if err := os.MkdirAll(beside, 0o755); err != nil {
		return 0, p.failed(beside, err)
	}
	if info, err := os.Lstat(beside); err != nil || !info.IsDir() { // a link of somebody else's
		return 0, p.failed(beside, errors.Join(err, syscall.ENOTDIR))
	}
	if p.root, err = os.OpenRoot(beside); err != nil {
		return 0, p.failed(beside, err)
	}
	defer p.root.Close() // what counts was synced
	if one, other, twins := p.manifest.Twins(); twins && p.foldsCase() {
		return 0, structs.NewError(structs.CodeInvalid, "cli.data.pull_twins", "name", one, "other", other, "dir", p.dir)
	}
	lacking, err := p.prepare()
	if err == nil {
		err = p.receive(lacking)
	}
	if err == nil {
		err = p.settle()
	}
	if err != nil {
		return 0, p.failed(beside, err)
	}
	if err := os.Remove(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one
		return 0, p.failed(p.dir, err)
	}
	if err := os.Rename(beside, p.dir); err != nil {
		return 0, p.failed(p.dir, err)
	}
	return p.got.Load(), nil
}

func (p *pull) failed(path string, err error) error {
	var told *structs.Error
	if errors.As(err, &told) || errors.Is(err, context.Canceled) {
		return err
	}
	return structs.NewError(structs.CodeUnavailable, "cli.data.pull_failed", "path", path, "problem", rootCause(err)).Because(err)
}

// foldsCase reports whether the directory takes names for one that differ in capitals only.
func (p *pull) foldsCase() bool {
	const probe = ".nomadlike-probe"
	if err := p.root.WriteFile(probe, nil, 0o600); err != nil {
		return false // told when the first file is written
	}
	_, err := p.root.Lstat(strings.ToUpper(probe))
	return p.root.Remove(probe) == nil && err == nil
}

// prepare makes directories, and finds the chunks that are not there of a try before:
// each byte that is kept was compared.
func (p *pull) prepare() (lacking []tree.Chunk, err error) {
	p.spots = make(map[tree.Digest][]pullSpot)
	buffer := make([]byte, tree.ChunkSizeMax)
	show, done, all := p.env.meter("cli.data.comparing"), int64(0), p.manifest.Bytes()
	defer show.done()
	for i := range p.manifest.Entries {
		entry := &p.manifest.Entries[i]
		if err := p.env.Context.Err(); err != nil {
			return nil, err
		}
		switch entry.Kind {
		case tree.KindDir:
			if err := p.root.Mkdir(entry.Path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		case tree.KindFile:
			missing, err := p.prepareFile(entry, buffer)
			if err != nil {
				return nil, err
			}
			lacking = append(lacking, missing...)
		case tree.KindLink: // at the end: nothing is written through one
			if err := p.root.Remove(entry.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		done += entry.Size()
		show.step(done, all)
	}
	return lacking, nil
}

func (p *pull) prepareFile(entry *tree.Entry, buffer []byte) (lacking []tree.Chunk, err error) {
	file, err := p.root.OpenFile(entry.Path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > entry.Size() {
		if err := file.Truncate(entry.Size()); err != nil {
			return nil, err
		}
	}
	offset := int64(0)
	for _, chunk := range entry.Chunks {
		there := false
		if offset+chunk.Size <= info.Size() {
			data := buffer[:chunk.Size]
			_, err := file.ReadAt(data, offset)
			there = err == nil && tree.DigestOf(data) == chunk.Digest
		}
		if !there {
			if len(p.spots[chunk.Digest]) == 0 {
				lacking = append(lacking, chunk)
			}
			p.spots[chunk.Digest] = append(p.spots[chunk.Digest], pullSpot{entry.Path, offset})
		}
		offset += chunk.Size
	}
	return lacking, nil
}

// receive fetches chunks, several bodies at once, and writes them where they belong.
func (p *pull) receive(lacking []tree.Chunk) error {
	show := p.env.meter("cli.data.received")
	defer show.done()
	all := bytesOf(lacking)
	return inParallel(p.env.Context, bodies(lacking), func(ctx context.Context, body []tree.Chunk) error {
		data, err := p.client.DataChunks(ctx, p.of, p.version, body)
		if err != nil {
			return err
		}
		for _, chunk := range body {
			if int64(len(data)) < chunk.Size || tree.DigestOf(data[:chunk.Size]) != chunk.Digest {
				return structs.NewError(structs.CodeUnavailable, "code.broken_answer", "digest", chunk.Digest.Short())
			}
			for _, spot := range p.spots[chunk.Digest] {
				if err := p.write(spot, data[:chunk.Size]); err != nil {
					return err
				}
			}
			data = data[chunk.Size:]
			p.got.Add(chunk.Size)
		}
		return nil
	}, func(done int64) { show.step(done, all) })
}

func (p *pull) write(spot pullSpot, data []byte) error {
	file, err := p.root.OpenFile(spot.name, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, spot.offset)
	return errors.Join(err, file.Close())
}

// settle makes links, and gives files the permissions of ordinary ones.
func (p *pull) settle() error {
	for i := range p.manifest.Entries {
		entry := &p.manifest.Entries[i]
		switch {
		case entry.Kind == tree.KindLink:
			if err := p.root.Symlink(entry.Target, entry.Path); err != nil {
				return err
			}
		case entry.Kind == tree.KindFile && entry.Mode&0o100 != 0:
			if err := p.root.Chmod(entry.Path, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// dataVerify has a version compared with its manifest, where it lies.
func dataVerify(set *flag.FlagSet) func(*Env, []string) error {
	return dataVerb(set, "NAME[@VERSION]", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0])
		version, err := env.wholeVersion(client, of)
		if err != nil {
			return err
		}
		run, show := rand.Text(), env.meter("cli.data.verifying")
		var told *api.DataVerified
		for told == nil || !told.Done {
			if told, err = client.VerifyData(env.Context, of.DataName, version.Number, run); err != nil {
				show.done()
				return err
			}
			show.step(told.Bytes, told.All)
		}
		show.done()
		if err := env.show(flags.output, told, func() { env.printVerified(of.DataName, told) }); err != nil {
			return err
		}
		if told.Wrongs > 0 {
			return structs.NewError(structs.CodeConflict, "cli.data.verify_wrong", "kind", of.Kind, "name", of.Name, "version", told.Version, "count", told.Wrongs)
		}
		return nil
	})
}

func (env *Env) printVerified(of api.DataName, told *api.DataVerified) {
	if told.Wrongs == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.data.verified", "kind", of.Kind, "name", safe(of.Name), "version", told.Version, "files", told.Files, "size", size(told.Bytes)))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.path"), env.text("cli.col.problem"))
	for _, wrong := range told.Wrong {
		table.row(safe(wrong.Path), env.text("cli.data.wrong."+wrong.What))
	}
	table.print()
}
