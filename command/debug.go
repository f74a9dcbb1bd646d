package command

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// debugPatience is how long one part may take, beside the look at the processor.
const debugPatience = 20 * time.Second

// operatorDebug writes what helps to find out what is wrong with a cluster into one
// archive. A part that cannot be had is noted in the archive.
func operatorDebug(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	out := set.String("o", "", "cli.flag.debug_out")
	span := set.Duration("duration", api.DebugSpanDefault, "cli.flag.debug_duration")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if *span < 0 || *span > api.DebugSpanMax {
			return usagef("cli.bad_span", "value", span.String())
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		// Whoever may not have it is told at once, and no file is begun.
		if err := client.Debug(env.Context, new(bytes.Buffer), "", api.DebugAgent, 0); err != nil {
			return err
		}
		now := time.Now().UTC()
		name := cmp.Or(*out, "nomadlike-debug-"+now.Format("20060102T150405Z")+".tar.gz")
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return structs.NewError(structs.CodeConflict, "cli.init.exists", "path", name)
		}
		if err != nil {
			return fmt.Errorf("create archive: %w", err)
		}
		packed := gzip.NewWriter(file)
		d := &debugArchive{env: env, client: client, at: now, dir: strings.TrimSuffix(filepath.Base(name), ".tar.gz"), tar: tar.NewWriter(packed)}
		err = d.fill(*span)
		for _, closing := range []func() error{d.tar.Close, packed.Close, file.Sync} {
			err = errors.Join(err, closing())
		}
		length, seeking := file.Seek(0, 1)
		if err = errors.Join(err, seeking, file.Close()); err != nil {
			os.Remove(name)
			return fmt.Errorf("write archive: %w", err)
		}
		fmt.Fprintln(env.Stdout, env.text("cli.debug.written", "path", safe(name), "count", d.files, "size", size(length)))
		return nil
	}
}

// debugArchive is an archive that is being written.
type debugArchive struct {
	env    *Env
	client *api.Client
	at     time.Time
	dir    string
	tar    *tar.Writer
	files  int
	index  []debugEntry
}

// debugEntry says in index.json what became of a part.
type debugEntry struct {
	Part  string `json:"part"`
	Bytes int    `json:"bytes"`
	Error string `json:"error,omitempty"`
}

// fill writes all parts; it fails only when the archive cannot be written.
func (d *debugArchive) fill(span time.Duration) error {
	ctx := d.env.Context
	asJSON := func(ask func(context.Context) (any, error)) func(context.Context, *bytes.Buffer) error {
		return func(ctx context.Context, to *bytes.Buffer) error {
			value, err := ask(ctx)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(to)
			encoder.SetIndent("", "  ")
			return encoder.Encode(value)
		}
	}
	var peers []api.RaftPeer
	query := &api.Query{}
	for _, part := range []struct {
		name string
		ask  func(context.Context) (any, error)
	}{
		{"members.json", func(ctx context.Context) (any, error) { return d.client.Members(ctx) }},
		{"raft-peers.json", func(ctx context.Context) (any, error) {
			list, err := d.client.RaftPeers(ctx)
			if err == nil {
				peers = list.Peers
			}
			return list, err
		}},
		{"health.json", func(ctx context.Context) (any, error) { return d.client.Autopilot(ctx) }},
		{"settings.json", func(ctx context.Context) (any, error) { return d.client.Settings(ctx, "") }},
		{"nodes.json", func(ctx context.Context) (any, error) { return first(d.client.Nodes(ctx, query)) }},
		{"pools.json", func(ctx context.Context) (any, error) { return first(d.client.Pools(ctx, query)) }},
		{"queue.json", func(ctx context.Context) (any, error) { return first(d.client.Queue(ctx, query)) }},
	} {
		if _, err := d.add(part.name, 0, asJSON(part.ask)); err != nil {
			return err
		}
	}
	if len(peers) == 0 { // without a leader, perhaps: the server that answers is better than none
		peers = []api.RaftPeer{{Name: "server"}}
	}
	for _, peer := range peers {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done, all := 0, 0
		for _, part := range api.DebugParts() {
			if part == api.DebugCPU && span == 0 {
				continue
			}
			all++
			ok, err := d.add(path.Join("servers", safeName(cmp.Or(peer.Name, peer.ID)), part), span, func(ctx context.Context, to *bytes.Buffer) error {
				return d.client.Debug(ctx, to, peer.ID, part, span)
			})
			if err != nil {
				return err
			}
			if ok {
				done++
			}
		}
		fmt.Fprintln(d.env.Stderr, d.env.text("cli.debug.server", "server", safe(cmp.Or(peer.Name, peer.ID)), "done", done, "all", all))
	}
	text, err := json.MarshalIndent(map[string]any{"made_at": d.at.Format(time.RFC3339), "version": Version, "parts": d.index}, "", "  ")
	if err != nil {
		return err
	}
	return d.put("index.json", append(text, '\n'))
}

// add asks for a part and writes it, or notes why there is none. ok reports whether it
// was had.
func (d *debugArchive) add(name string, span time.Duration, ask func(context.Context, *bytes.Buffer) error) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(d.env.Context, debugPatience+span)
	defer cancel()
	var data bytes.Buffer
	entry := debugEntry{Part: name}
	if err := ask(ctx, &data); err != nil {
		entry.Error = d.env.problemText(err)
		fmt.Fprintln(d.env.Stderr, d.env.text("cli.debug.failed", "part", safe(name), "problem", safe(entry.Error)))
	}
	entry.Bytes = data.Len()
	d.index = append(d.index, entry)
	if data.Len() == 0 {
		return entry.Error == "", nil
	}
	return entry.Error == "", d.put(name, data.Bytes())
}

func (d *debugArchive) put(name string, data []byte) error {
	d.files++
	if err := d.tar.WriteHeader(&tar.Header{Name: path.Join(d.dir, name), Mode: 0o600, Size: int64(len(data)), ModTime: d.at, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := d.tar.Write(data)
	return err
}

// problemText is an error in one line.
func (env *Env) problemText(err error) string {
	var e *structs.Error
	if errors.As(err, &e) {
		return env.errorText(*e)
	}
	return safeText(err.Error())
}

func first[T, M any](value T, _ M, err error) (T, error) { return value, err }

// safeName is a name of a machine as a directory.
func safeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.TrimLeft(name, "."))
}
