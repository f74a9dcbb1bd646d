package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// errSilent is returned when a server answers no heartbeat any more.
var errSilent = errors.New("the server is silent")

// link is one welcomed stream. write runs in the session's goroutine and is
// the only sender; read runs in one of its own.
type link struct {
	session  *Session
	stream   Stream
	cancel   context.CancelCauseFunc
	done     <-chan struct{} // the stream is cancelled
	every    time.Duration   // between heartbeats; write's own once it runs
	interval chan time.Duration
	heard    chan struct{} // something came

	beatsSent struct {
		sync.Mutex
		at  map[uint64]int64 // Seq -> SentAt
		seq uint64
	}
}

// write sends heartbeats, reports and registrations until ctx is cancelled
// or the stream fails.
func (l *link) write(ctx context.Context) error {
	beat := time.NewTicker(l.every)
	defer beat.Stop()
	silence := time.NewTimer(l.silentAfter())
	defer silence.Stop()
	flush := time.NewTimer(0)
	defer flush.Stop()
	var flushedAt time.Time

	if err := l.beat(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return l.farewell()
		case <-l.done:
			return nil // the reader knows why
		case <-beat.C:
			if err := l.beat(); err != nil {
				return err
			}
		case l.every = <-l.interval:
			beat.Reset(l.every)
			silence.Reset(l.silentAfter())
		case <-silence.C:
			return errSilent
		case <-l.heard:
			silence.Reset(l.silentAfter())
		case <-l.session.refresh:
			if err := l.stream.Send(&structs.SessionUp{Hello: l.session.config.Owner.Hello()}); err != nil {
				return err
			}
		case <-l.session.wake:
			// At once when the servers have all that was sent, else together
			// with what comes until they have it, or a little later.
			flush.Reset(l.flushAfter(time.Since(flushedAt)))
		case <-flush.C:
			sent, err := l.flush()
			if err != nil {
				return err
			}
			if sent {
				flushedAt = time.Now()
			}
		}
	}
}

// flushAfter is how long reports wait for company, the last batch having been
// sent so long ago.
func (l *link) flushAfter(ago time.Duration) time.Duration {
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	if l.session.mu.outbox.InFlight() == 0 {
		return 0
	}
	return max(FlushEvery-ago, 0)
}

// flush sends the reports that wait. What is left over because too many
// batches are on their way goes out when one is acknowledged.
func (l *link) flush() (sent bool, err error) {
	s := l.session
	for {
		s.mu.Lock()
		batch := s.mu.outbox.Next()
		s.mu.Unlock()
		if batch == nil {
			return sent, nil
		}
		if err := l.stream.Send(&structs.SessionUp{Reports: batch}); err != nil {
			return sent, err
		}
		sent = true
	}
}

// farewell sends what waits, then Bye, and lets the server end the stream.
// Acknowledgements that come too late do no harm: the local store keeps what
// nobody has acknowledged.
func (l *link) farewell() error {
	if _, err := l.flush(); err != nil {
		return err
	}
	if err := l.stream.Send(&structs.SessionUp{Bye: true}); err != nil {
		return err
	}
	if err := l.stream.CloseSend(); err != nil {
		return err
	}
	<-l.done // cancelled by the reader at the end, or after ByeTimeout
	return context.Canceled
}

func (l *link) beat() error {
	l.beatsSent.Lock()
	if l.beatsSent.at == nil {
		l.beatsSent.at = make(map[uint64]int64)
	}
	l.beatsSent.seq++
	h := structs.Heartbeat{Seq: l.beatsSent.seq, SentAt: int64(l.session.config.Boottime())}
	l.beatsSent.at[h.Seq] = h.SentAt
	delete(l.beatsSent.at, h.Seq-min(h.Seq, sentBeatsMax))
	l.beatsSent.Unlock()
	return l.stream.Send(&structs.SessionUp{Heartbeat: &h})
}

// read takes what the server says until the stream ends.
func (l *link) read() {
	for {
		down, err := l.stream.Recv()
		if err != nil {
			l.cancel(err)
			return
		}
		poke(l.heard)
		l.take(down)
	}
}

func (l *link) take(down *structs.SessionDown) {
	s := l.session
	switch {
	case down.Assignments != nil:
		s.config.Owner.Assignments(down.Assignments)
	case down.HeartbeatAck != nil:
		l.renew(down.HeartbeatAck)
		if every := down.HeartbeatAck.Every.Std(); every > 0 {
			l.setInterval(max(every, heartbeatMin))
		}
	case down.ReportAck != nil:
		s.mu.Lock()
		done := s.mu.outbox.Ack(*down.ReportAck)
		more := s.mu.outbox.Waiting()
		s.mu.Unlock()
		if len(down.ReportAck.Refused) > 0 {
			s.config.Logger.Info("reports refused", logkey.Count, len(down.ReportAck.Refused), logkey.AllocID, down.ReportAck.Refused)
		}
		if len(done) > 0 {
			s.config.Owner.Delivered(done)
		}
		if more {
			poke(s.wake)
		}
	case down.Welcome != nil:
		s.adopt(down.Welcome)
	}
}

// setInterval lets write send heartbeats at another interval; the newest word counts.
func (l *link) setInterval(every time.Duration) {
	for {
		select {
		case l.interval <- every:
			return
		default:
		}
		select {
		case <-l.interval:
		default:
		}
	}
}

// renew counts an answered heartbeat, if it is one of ours and unchanged.
func (l *link) renew(ack *structs.HeartbeatAck) {
	l.beatsSent.Lock()
	sentAt, ours := l.beatsSent.at[ack.Seq]
	delete(l.beatsSent.at, ack.Seq)
	l.beatsSent.Unlock()
	if !ours || sentAt != ack.SentAt {
		return
	}
	s := l.session
	s.mu.Lock()
	s.mu.lease = s.mu.lease.Renew(time.Duration(sentAt))
	s.mu.Unlock()
}

func (l *link) silentAfter() time.Duration { return max(silentBeats*l.every, silentMin) }
