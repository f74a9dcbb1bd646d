package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const (
	fetchPart  = 8 << 20 // bytes of a file that are asked for, and verified, at a time
	fetchAhead = 4       // parts that are under way before they are needed
	fetchTries = 5       // times that a part is asked for without a byte of progress
	fetchWrong = 3       // times that a part comes with other bytes than its node says
	fetchWait  = 500 * time.Millisecond
	checkPart  = structs.FileDigestMax // bytes of a file that are compared at a time, without moving them
)

// remoteFile is a file that a job wrote, on its node.
type remoteFile struct {
	client *api.Client
	job    string
	path   string
	filter api.FileFilter
	size   int64
	at     structs.UnixNano
}

// fetched is a part of something, or why it could not be had.
type fetched struct {
	data     []byte
	offset   int64
	verified bool // its node said which digest it has
	err      error
	of       any // what the asker put there
}

// fetchTask gets one part.
type fetchTask func(context.Context) fetched

// partStream gets parts in order, several of them at once. One goroutine asks it; close
// ends it.
type partStream struct {
	queue chan chan fetched
	stop  context.CancelFunc
	busy  sync.WaitGroup
}

// fetchAll begins to get parts.
func fetchAll(ctx context.Context, tasks iter.Seq[fetchTask]) *partStream {
	ctx, stop := context.WithCancel(ctx)
	s := &partStream{queue: make(chan chan fetched, fetchAhead), stop: stop}
	s.busy.Go(func() {
		defer close(s.queue)
		for task := range tasks {
			answer := make(chan fetched, 1)
			select {
			case s.queue <- answer:
			case <-ctx.Done():
				return
			}
			s.busy.Go(func() { answer <- task(ctx) })
		}
	})
	return s
}

// next waits for the next part; false when there are no more.
func (s *partStream) next() (fetched, bool) {
	answer, more := <-s.queue
	if !more {
		return fetched{}, false
	}
	return <-answer, true
}

func (s *partStream) close() {
	s.stop()
	for range s.queue { // what is under way is given up
	}
	s.busy.Wait()
}

// parts are the tasks that get a file from an offset on. An empty file has none.
func (f *remoteFile) parts(offset int64, of any) iter.Seq[fetchTask] {
	return func(yield func(fetchTask) bool) {
		for at := offset; at < f.size; at += fetchPart {
			want := min(fetchPart, f.size-at)
			if !yield(func(ctx context.Context) fetched {
				data, verified, err := f.part(ctx, at, want)
				return fetched{data: data, offset: at, verified: verified, err: err, of: of}
			}) {
				return
			}
		}
	}
}

// part gets some bytes of the file and compares them with the digest that its node
// says. What breaks off is gone on with; what differs is asked for again.
func (f *remoteFile) part(ctx context.Context, offset, want int64) (data []byte, verified bool, err error) {
	for wrong := 1; ; wrong++ {
		var digest string
		if data, digest, err = f.bytes(ctx, offset, want); err != nil {
			return nil, false, err
		}
		if digest == "" { // in pieces, or of an older agent
			if digest, err = f.digest(ctx, offset, want); err != nil {
				return nil, false, err
			}
		}
		switch {
		case digest == "":
			return data, false, nil
		case digest == sumOf(data):
			return data, true, nil
		case wrong == fetchWrong:
			return nil, false, structs.NewError(structs.CodeUnavailable, "cli.files.wrong_bytes", "path", f.path, "offset", offset)
		}
	}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// bytes gets bytes, and their digest where one answer has all of them.
func (f *remoteFile) bytes(ctx context.Context, offset, want int64) (data []byte, digest string, err error) {
	data = make([]byte, 0, want)
	for tries := 1; ; tries++ {
		had := len(data)
		var told string
		data, told, err = f.some(ctx, offset, want, data)
		if int64(len(data)) == want {
			if had > 0 {
				told = ""
			}
			return data, told, nil
		}
		if len(data) > had {
			tries = 0
		}
		var refused *structs.Error
		code := structs.CodeOf(err)
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case errors.As(err, &refused) && refused.ID == "agent.range": // it has become shorter
			return nil, "", structs.NewError(structs.CodeConflict, "cli.files.changed", "path", f.path)
		case tries == fetchTries || code != structs.CodeUnavailable && code != structs.CodeInternal:
			return nil, "", err
		}
		if !pause(ctx, fetchWait<<max(tries-1, 0)) {
			return nil, "", ctx.Err()
		}
	}
}

// some asks once for what is missing behind data.
func (f *remoteFile) some(ctx context.Context, offset, want int64, data []byte) ([]byte, string, error) {
	had := int64(len(data))
	body, digest, err := f.client.OpenFilePart(ctx, f.job, f.path, f.filter, offset+had, want-had)
	if err != nil {
		return data, "", err
	}
	defer body.Close()
	n, err := io.ReadFull(body, data[had:want])
	data = data[:had+int64(n)]
	if err != nil {
		err = structs.NewError(structs.CodeUnavailable, "cli.files.broke_off", "path", f.path).Because(err)
	}
	return data, digest, err
}

// digest asks the node which digest some bytes have; "" of an agent that cannot tell. A
// file that is another one now is an error.
func (f *remoteFile) digest(ctx context.Context, offset, want int64) (string, error) {
	list, err := f.client.FileDigest(ctx, f.job, f.path, f.filter, offset, want)
	if err != nil {
		return "", err
	}
	if list.SHA256 != "" && list.Entry.Size < offset+want {
		return "", structs.NewError(structs.CodeConflict, "cli.files.changed", "path", f.path)
	}
	return list.SHA256, nil
}

// agrees reports how many bytes at the beginning of a file here are those of the job's
// file, up to most. Known is false when no agent tells digests.
func (f *remoteFile) agrees(ctx context.Context, name string, most int64) (same int64, known bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	for same < most {
		want := min(checkPart, most-same)
		sum := sha256.New()
		if _, err := io.CopyN(sum, file, want); err != nil {
			return same, true, err
		}
		digest, err := f.digest(ctx, same, want)
		var refused *structs.Error
		if errors.As(err, &refused) && refused.ID == "cli.files.changed" {
			return same, true, nil
		}
		if err != nil || digest == "" {
			return 0, false, err
		}
		if digest != hex.EncodeToString(sum.Sum(nil)) {
			return same, true, nil
		}
		same += want
	}
	return same, true, nil
}

// partsReader is one file out of a stream of parts, whose next parts are its own.
type partsReader struct {
	stream     *partStream
	left       int64 // bytes of the file that have not been read
	data       []byte
	unverified *int // counts parts that nobody vouches for
}

// Read reads bytes of the file.
func (r *partsReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		part, more := r.stream.next()
		if !more {
			return 0, io.ErrUnexpectedEOF
		}
		if part.err != nil {
			return 0, part.err
		}
		if !part.verified {
			*r.unverified++
		}
		r.data = part.data
		r.left -= int64(len(part.data))
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}
