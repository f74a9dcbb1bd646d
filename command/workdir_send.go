package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	codeSenders = 3 // bodies of chunks that are under way at once
	codeRounds  = 3 // times that a commit may find chunks missing, which others removed meanwhile
)

// sendCode brings code to the cluster: only what the job's project does not have yet, and
// nothing where it has all of it. After it the job names the code. What was sent stays
// when the rest cannot be: the next try goes on from there.
func (env *Env) sendCode(client *api.Client, job *structs.Job, c *code, quiet bool) error {
	if c == nil || len(job.NotAvailable()) > 0 { // such a job is refused: nothing is sent for it
		return nil
	}
	if job.Project != "" {
		client = client.In(job.Project)
	}
	digest := c.manifest.Digest()
	known, _, err := client.CodeMissing(env.Context, digest, nil)
	if err != nil {
		return err
	}
	if !known {
		if err := env.sendMissing(client, digest, c, quiet); err != nil {
			return err
		}
	} else if !quiet {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.code.known"))
	}
	record := c.record
	job.Workdir = &record
	return nil
}

// sendMissing sends the chunks that are missing, and then the manifest.
func (env *Env) sendMissing(client *api.Client, digest tree.Digest, c *code, quiet bool) error {
	source, err := tree.OpenSource(c.dir, c.manifest)
	if err != nil {
		return err
	}
	defer source.Close() // it was only read
	for round := 1; ; round++ {
		missing, err := missingChunks(env.Context, client, digest, c.manifest.Chunks())
		if err != nil {
			return err
		}
		if !quiet && round == 1 {
			fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.code.sending", "size", size(bytesOf(missing)), "count", len(missing)))
		}
		if err := env.sendChunks(client, source, missing); err != nil {
			return err
		}
		_, err = client.CommitCode(env.Context, c.manifest.Encode())
		var refused *structs.Error
		if errors.As(err, &refused) && refused.ID == "code.incomplete" && round < codeRounds {
			continue
		}
		return err
	}
}

func bytesOf(chunks []tree.Chunk) (sum int64) {
	for _, chunk := range chunks {
		sum += chunk.Size
	}
	return sum
}

// missingChunks asks which chunks are not there, as many at once as may be asked for.
func missingChunks(ctx context.Context, client *api.Client, digest tree.Digest, chunks []tree.Chunk) ([]tree.Chunk, error) {
	var lacking []tree.Chunk
	for asked := range slices.Chunk(chunks, api.CodeMissingMax) {
		_, answer, err := client.CodeMissing(ctx, digest, asked)
		if err != nil {
			return nil, err
		}
		missing := make(map[tree.Digest]bool, len(answer))
		for _, one := range answer {
			missing[one] = true
		}
		for _, chunk := range asked {
			if missing[chunk.Digest] {
				lacking = append(lacking, chunk)
			}
		}
	}
	return lacking, nil
}

// bodies divides chunks into requests: small ones go together.
func bodies(chunks []tree.Chunk) (all [][]tree.Chunk) {
	sum := int64(0)
	for i, chunk := range chunks {
		last := len(all) - 1
		if i == 0 || sum+chunk.Size > api.CodeBytesMax || len(all[last]) == api.CodeChunksMax {
			all, sum = append(all, nil), 0
			last++
		}
		all[last] = append(all[last], chunk)
		sum += chunk.Size
	}
	return all
}

// sendChunks sends chunks, several bodies at once, and shows on a terminal how far it is.
// The first failure ends it.
func (env *Env) sendChunks(client *api.Client, source *tree.Source, chunks []tree.Chunk) error {
	show, all := env.codeProgress("cli.code.sent"), bytesOf(chunks)
	defer show.done()
	ctx, stop := context.WithCancelCause(env.Context)
	defer stop(nil)
	waiting, sent := make(chan []tree.Chunk), make(chan int64)
	var senders sync.WaitGroup
	for range codeSenders {
		senders.Go(func() {
			for body := range waiting {
				if err := sendBody(ctx, client, source, body); err != nil {
					stop(err)
					return
				}
				sent <- bytesOf(body)
			}
		})
	}
	go func() {
		defer close(sent)
		for _, body := range bodies(chunks) {
			select {
			case waiting <- body:
			case <-ctx.Done():
			}
		}
		close(waiting)
		senders.Wait()
	}()
	done := int64(0)
	for size := range sent {
		done += size
		show.step(done, all)
	}
	return context.Cause(ctx)
}

func sendBody(ctx context.Context, client *api.Client, source *tree.Source, body []tree.Chunk) error {
	pieces := make([]api.CodePiece, len(body))
	for i, chunk := range body {
		data, err := source.Read(chunk)
		if err != nil {
			return err
		}
		pieces[i] = api.CodePiece{Chunk: chunk, Data: data}
	}
	_, err := client.SendCodeChunks(ctx, pieces)
	return err
}
