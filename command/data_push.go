package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	dataSenders = 4                // bodies of data that are under way at once
	dataRounds  = 3                // times that a version may be found to lack chunks, of which the disk has changed bytes
	dataPatient = 60 * time.Second // for which one body is sent again while nobody takes it
)

// pushed says what became of a directory that was sent.
type pushed struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version int    `json:"version"`
	Tag     string `json:"tag,omitempty"`
	Storage string `json:"storage"`
	Digest  string `json:"digest"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Sent    int64  `json:"sent"`  // bytes: the others were there
	Known   bool   `json:"known"` // the newest version was this one already
	LeftOut int    `json:"left_out"`
}

func dataBytesVerbs() []verb {
	return []verb{
		{path: "data push", args: "DIR NAME[@TAG]", setup: dataPush},
		{path: "data pull", args: "NAME[@VERSION] DIR", setup: dataPull},
		{path: "data verify", args: "NAME[@VERSION]", setup: dataVerify},
	}
}

// dataPush sends a directory as the next version of named data.
func dataPush(set *flag.FlagSet) func(*Env, []string) error {
	var request api.DataUploadRequest
	set.StringVar(&request.Storage, "storage", "", "cli.flag.data_push_storage")
	set.StringVar(&request.Access, "access", "", "cli.flag.data_access")
	set.StringVar(&request.Description, "description", "", "cli.flag.data_description")
	return dataVerb(set, "DIR NAME[@TAG]", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[1])
		if of.version > 0 {
			return usagef("cli.data.push_number", "name", safe(of.Name))
		}
		if request.Tag = of.tag; strings.HasSuffix(args[1], "@"+structs.DataTagLatest) {
			request.Tag = structs.DataTagLatest // refused by whoever knows what it means
		}
		show := env.meter("cli.data.reading")
		manifest, left, err := tree.Scan(env.Context, args[0], tree.Options{Data: true, Progress: show.step})
		show.done()
		if err != nil {
			return err
		}
		if manifest.Files() == 0 {
			return structs.NewError(structs.CodeInvalid, "cli.data.push_empty", "dir", args[0], "count", len(left))
		}
		request.Digest, request.Files, request.Bytes = string(manifest.Digest()), manifest.Files(), manifest.Bytes()
		out := pushed{
			Kind: of.Kind, Name: of.Name, Tag: request.Tag, Digest: request.Digest, Files: request.Files, Bytes: request.Bytes, LeftOut: len(left),
		}
		source, err := tree.OpenSource(args[0], manifest)
		if err != nil {
			return err
		}
		defer source.Close() // it was only read
		push := &push{env: env, client: client, of: of.DataName, manifest: manifest, source: source, quiet: *flags.output.json}
		if err := push.run(request, &out); err != nil {
			return err
		}
		return env.show(flags.output, out, func() { env.printPushed(&out) })
	})
}

func (env *Env) printPushed(out *pushed) {
	params := []any{
		"kind", out.Kind, "name", safe(out.Name), "version", out.Version, "files", out.Files, "size", size(out.Bytes),
		"sent", size(out.Sent), "storage", safe(out.Storage), "left", out.LeftOut,
	}
	if out.Known {
		fmt.Fprintln(env.Stdout, env.text("cli.data.push_known", params...))
		return
	}
	fmt.Fprintln(env.Stdout, env.text("cli.data.pushed", params...))
	if out.LeftOut > 0 {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.data.push_left", params...))
	}
}

// push is a directory on its way.
type push struct {
	env      *Env
	client   *api.Client
	of       api.DataName
	manifest tree.Manifest
	source   *tree.Source
	quiet    bool
}

// run sends what is missing, and has the version made. What was sent stays when the rest
// cannot be: to push the same directory again goes on from there.
func (p *push) run(request api.DataUploadRequest, out *pushed) error {
	begun, err := p.client.BeginDataUpload(p.env.Context, p.of, request)
	if err != nil {
		return err
	}
	out.Version, out.Storage, out.Known = begun.Version, begun.Storage, begun.Known
	if begun.Known {
		return nil
	}
	if begun.Begun && !p.quiet {
		fmt.Fprintf(p.env.Stdout, "  %s\n", p.env.text("cli.data.push_goes_on"))
	}
	sender := p.client.DataSender(p.of, begun.Upload, p.manifest.Digest())
	err = p.patiently(p.env.Context, func(ctx context.Context) error { return sender.Manifest(ctx, p.manifest.Encode()) })
	if err != nil {
		return err
	}
	for round := 1; ; round++ {
		missing, err := p.missing(sender)
		if err != nil {
			return err
		}
		if !p.quiet && round == 1 {
			id := "cli.data.push_sending"
			if bytesOf(missing) == request.Bytes {
				id = "cli.data.push_sending_all"
			}
			fmt.Fprintf(p.env.Stdout, "  %s\n", p.env.text(id, "size", size(bytesOf(missing)), "all", size(request.Bytes)))
		}
		if err := p.send(sender, missing); err != nil {
			return err
		}
		out.Sent += bytesOf(missing)
		err = p.finish(sender)
		var refused *structs.Error
		if errors.As(err, &refused) && refused.ID == "code.incomplete" && round < dataRounds {
			continue
		}
		return err
	}
}

func (p *push) missing(sender *api.DataSender) (lacking []tree.Chunk, err error) {
	for asked := range slices.Chunk(p.manifest.Chunks(), structs.DataAskChunksMax) {
		some, err := sender.Missing(p.env.Context, asked)
		if err != nil {
			return nil, err
		}
		lacking = append(lacking, some...)
	}
	return lacking, nil
}

// finish waits until the version is made.
func (p *push) finish(sender *api.DataSender) error {
	show := p.env.meter("cli.data.finishing")
	defer show.done()
	for {
		told, err := sender.Finish(p.env.Context)
		if err != nil || told.Done {
			return err
		}
		show.step(told.Bytes, told.All)
	}
}

// send sends chunks, several bodies at once. The first failure ends it.
func (p *push) send(sender *api.DataSender, chunks []tree.Chunk) error {
	show := p.env.meter("cli.data.sent")
	defer show.done()
	return inParallel(p.env.Context, bodies(chunks), func(ctx context.Context, body []tree.Chunk) error {
		pieces := make([]api.CodePiece, len(body))
		for i, chunk := range body {
			data, err := p.source.Read(chunk)
			if err != nil {
				return err
			}
			pieces[i] = api.CodePiece{Chunk: chunk, Data: data}
		}
		return p.patiently(ctx, func(ctx context.Context) error { return sender.Chunks(ctx, pieces) })
	}, func(done int64) { show.step(done, bytesOf(chunks)) })
}

// patiently sends a body again for a while where nobody took it: a server or a node may
// have been restarted. It does no harm when it has arrived already.
func (p *push) patiently(ctx context.Context, send func(context.Context) error) error {
	until := time.Now().Add(dataPatient)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 3*time.Second) {
		err := send(ctx)
		if err == nil || ctx.Err() != nil || !passes(err) || time.Now().After(until) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// passes reports whether a failure may pass by itself: of a connection, of an agent that
// starts anew or has much to do. That a storage is full, or not mounted, does not.
func passes(err error) bool {
	var told *structs.Error
	if !errors.As(err, &told) || told.Code != structs.CodeUnavailable && told.Code != structs.CodeTimeout || structs.IsLasting(err) {
		return false
	}
	area, _, _ := strings.Cut(told.ID, ".")
	return told.ID == "objects.busy" || told.ID == "objects.stopping" || area != "objects" && area != "client"
}

// inParallel does something with each body of chunks, several at once, and tells how
// many bytes are done. The first failure ends it.
func inParallel(ctx context.Context, all [][]tree.Chunk, do func(context.Context, []tree.Chunk) error, told func(done int64)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	waiting, ended := make(chan []tree.Chunk), make(chan int64)
	var workers sync.WaitGroup
	for range dataSenders {
		workers.Go(func() {
			for body := range waiting {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, body); err != nil {
					stop(err)
					return
				}
				ended <- bytesOf(body)
			}
		})
	}
	go func() {
		defer close(ended)
		defer workers.Wait()
		defer close(waiting)
		for _, body := range all {
			select {
			case waiting <- body:
			case <-ctx.Done():
				return
			}
		}
	}()
	done := int64(0)
	for bytes := range ended {
		done += bytes
		told(done)
	}
	return context.Cause(ctx)
}

// meter shows on a terminal how far something is, how fast it goes and how long it takes
// still.
type meter struct {
	counter
	begun time.Time
	first int64 // bytes at the first step
}

func (env *Env) meter(id string) *meter {
	return &meter{counter: *env.codeProgress(id), begun: time.Now(), first: -1}
}

func (m *meter) step(done, all int64) {
	now := time.Now()
	if m.first < 0 {
		m.first, m.begun = done, now
	}
	if !m.env.Stderr.Terminal || now.Sub(m.shown) <= progressEvery {
		return
	}
	m.shown, m.any = now, true
	rate, left := speedOf(done-m.first, all-done, now.Sub(m.begun))
	fmt.Fprintf(m.env.Stderr, "\r\x1b[K%s", m.env.text(m.id, "done", size(done), "all", size(all), "rate", size(rate), "left", left))
}

// speedOf returns how many bytes went by in a second, and how long the rest takes at that: "-"
// where nobody can tell. Pure.
func speedOf(done, rest int64, took time.Duration) (rate int64, left string) {
	if took <= 0 || done <= 0 {
		return 0, "-"
	}
	rate = int64(float64(done) / took.Seconds())
	if rate <= 0 {
		return 0, "-"
	}
	return rate, (time.Duration(float64(rest)/float64(rate)*float64(time.Second)) + time.Second).Truncate(time.Second).String()
}
