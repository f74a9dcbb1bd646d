package objects

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// Answer answers a server. What takes long goes on after the answer: the same question,
// asked again, tells how far it is, and in the end what came of it. Errors are
// *structs.Error.
func (s *Store) Answer(ctx context.Context, ask *structs.DataAsk) (*structs.DataReply, error) {
	if len(ask.Chunks) > structs.DataAskChunksMax || len(ask.Data) > structs.DataAskBytesMax {
		return nil, structs.NewError(structs.CodeTooLarge, "code.body_too_large", "chunks", structs.DataAskChunksMax, "max", structs.DataAskBytesMax)
	}
	switch ask.What {
	case structs.DataAskManifest:
		return &structs.DataReply{}, s.begin(ask)
	case structs.DataAskMissing, structs.DataAskPut:
		u, err := s.upload(ctx, &ask.Place, ask.Upload)
		if err != nil {
			return nil, err
		}
		defer s.release(u)
		if ask.What == structs.DataAskPut {
			return &structs.DataReply{}, s.put(u, ask.Chunks, ask.Data)
		}
		missing, err := u.missing(ask.Chunks)
		return &structs.DataReply{Missing: missing}, err
	case structs.DataAskFinish:
		return s.work(ctx, ask, s.finish)
	case structs.DataAskVerify:
		return s.work(ctx, ask, func(ctx context.Context, p *structs.DataPlace, _ string, done, all *atomic.Int64) (*structs.DataReply, error) {
			return s.verify(ctx, p, done, all)
		})
	case structs.DataAskTake:
		return s.work(ctx, ask, func(ctx context.Context, _ *structs.DataPlace, _ string, done, all *atomic.Int64) (*structs.DataReply, error) {
			return take(ctx, s, ask, done, all)
		})
	case structs.DataAskAbort:
		return &structs.DataReply{Done: true}, s.abort(&ask.Place, ask.Upload)
	case structs.DataAskList:
		return s.list(&ask.Place, ask.Offset)
	case structs.DataAskRead:
		return s.read(&ask.Place, ask.Chunks)
	case structs.DataAskOpen:
		return &structs.DataReply{}, singles{s}.openFilesUpload(ask)
	case structs.DataAskFile, structs.DataAskOffset, structs.DataAskWrite, structs.DataAskDrop, structs.DataAskFiles:
		return singles{s}.answerFile(ask)
	case structs.DataAskNames:
		return &structs.DataReply{}, singles{s}.takeNames(ask)
	case structs.DataAskGather:
		files, bytes := ask.Files, ask.Bytes
		return s.work(ctx, ask, func(ctx context.Context, p *structs.DataPlace, id string, done, all *atomic.Int64) (*structs.DataReply, error) {
			return singles{s}.gather(ctx, p, id, announced{files, bytes}, done, all)
		})
	case structs.DataAskLeft:
		return s.work(ctx, ask, func(ctx context.Context, p *structs.DataPlace, _ string, done, _ *atomic.Int64) (*structs.DataReply, error) {
			return leavings{s}.left(ctx, p, done)
		})
	case structs.DataAskClear:
		return leavings{s}.clear(ctx, ask)
	case structs.DataAskRemove:
		return &structs.DataReply{Done: true}, s.remove(&ask.Place)
	}
	return nil, structs.NewError(structs.CodeInvalid, "objects.question", "what", clip(ask.What))
}

// work is something that takes long.
type work struct {
	upload    string
	cancel    context.CancelFunc
	ended     chan struct{} // closed at its end
	at        time.Time     // of its end, once ended is closed
	done, all atomic.Int64  // bytes
	told      atomic.Bool   // somebody was told the end
	reply     *structs.DataReply
	err       error
}

type doing func(ctx context.Context, p *structs.DataPlace, id string, done, all *atomic.Int64) (*structs.DataReply, error)

// work begins something that takes long, unless it goes on already, and waits for its
// end for a while.
func (s *Store) work(ctx context.Context, ask *structs.DataAsk, do doing) (*structs.DataReply, error) {
	if !uploadID.MatchString(ask.Upload) {
		return nil, unknownUpload(ask.Upload)
	}
	w, err := s.begun(ask, do)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(workWait)
	defer timer.Stop()
	select {
	case <-w.ended:
		w.told.Store(true)
		return w.reply, w.err
	case <-timer.C:
	case <-ctx.Done():
	}
	return &structs.DataReply{Bytes: w.done.Load(), All: w.all.Load()}, nil
}

func (s *Store) begun(ask *structs.DataAsk, do doing) (*work, error) {
	key := strings.Join([]string{ask.What, ask.Upload, ask.Place.Digest}, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	going := 0
	for key, w := range s.mu.works {
		select {
		case <-w.ended:
			if w.err != nil && w.told.Load() || s.config.Now().Sub(w.at) > workKept {
				delete(s.mu.works, key)
			}
		default:
			going++
		}
	}
	if w := s.mu.works[key]; w != nil {
		return w, nil
	}
	if going >= worksMax || s.running.Err() != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "objects.busy", "max", worksMax)
	}
	doing, cancel := context.WithCancel(s.running)
	w := &work{upload: ask.Upload, cancel: cancel, ended: make(chan struct{})}
	s.mu.works[key] = w
	place := ask.Place
	s.working.Go(func() {
		defer cancel()
		reply, err := do(doing, &place, ask.Upload, &w.done, &w.all)
		switch {
		case err == nil:
		case s.running.Err() != nil:
			err = structs.NewError(structs.CodeUnavailable, "objects.stopping")
		case doing.Err() != nil:
			err = unknownUpload(ask.Upload) // it was given up
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w.reply, w.err, w.at = reply, err, s.config.Now()
		close(w.ended)
	})
	return w, nil
}

// abort forgets an upload. What was made of it stays.
func (s *Store) abort(p *structs.DataPlace, id string) error {
	if !uploadID.MatchString(id) {
		return unknownUpload(id)
	}
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return err
	}
	d, err := s.open(v, false)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	s.mu.Lock()
	delete(s.mu.tallies, v.place.Path+" "+id)
	s.mu.Unlock()
	if err := errors.Join(removeTree(d.own, uploadPrefix+id), d.unmark(id)); err != nil {
		return v.failed(err)
	}
	return nil
}

// remove removes a version that was made here. What was registered, and not made, has
// no manifest here and stays.
func (s *Store) remove(p *structs.DataPlace) error {
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return err
	}
	d, err := s.open(v, false)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	defer d.sweep(s.config.Now(), "", s.config.Log)
	if err := d.removeVersion(); err != nil {
		return v.failed(err)
	}
	return nil
}

// removeVersion removes a directory that was made here, and its list of files.
func (d *door) removeVersion() error {
	if _, err := d.own.Lstat(d.name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	there, err := d.there()
	if err == nil && there {
		err = d.setAside()
	}
	if err == nil {
		err = d.own.Remove(d.name)
	}
	if err == nil {
		if err = d.own.Remove(d.name + madeSuffix); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// sweep removes beside a version what nobody goes on with: uploads whose record is gone
// by now, and what a removal left when it was cut off. One upload is not looked at.
func (d *door) sweep(now time.Time, but string, log *slog.Logger) {
	dir, err := d.own.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		old := strings.HasPrefix(name, gonePrefix)
		if strings.HasPrefix(name, uploadPrefix) && name != uploadPrefix+but {
			last := lastChange(d, name)
			old = !last.IsZero() && now.Sub(last) > uploadOld
		}
		if !old {
			continue
		}
		if err := removeTree(d.own, name); err != nil {
			log.Warn("what is left of an upload was not removed", logkey.Path, d.place.Path, logkey.Error, err)
		}
	}
}

// lastChange is when something came for an upload: its journal has grown then.
func lastChange(d *door, name string) (last time.Time) {
	at, err := d.own.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return last
	}
	defer at.Close()
	names, err := at.Readdirnames(-1)
	if err != nil && !errors.Is(err, unix.ENOTDIR) { // of a mark
		return last
	}
	for _, below := range append(names, ".") {
		if info, err := d.own.Lstat(path.Join(name, below)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}
