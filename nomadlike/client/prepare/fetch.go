package prepare

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/envcheck"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// How often people are told how far an image is. Every word goes through the
// servers' log.
const (
	fetchEvery      = 2 * time.Second // between two reports
	fetchPercents   = 5               // that a report has to bring
	fetchNoteEvery  = 25              // percents between two events with bytes
	percentsPending = 99              // the most that is told before the end
)

// fetch lets a driver that needs something besides files get it, so that no
// rank starts before every node has its image. It tells the servers what came of
// the image's name, whether it was fetched or lay there: a name may mean one
// content today and another tomorrow, or on another node.
func (r *Preparer) fetch(ctx context.Context, a *structs.Assignment, spec *driver.TaskSpec) (image string, failed *alloc.PrepareFailed) {
	preparer, ok := r.Drivers[a.Job.Task.Driver].(driver.Preparer)
	if !ok {
		return "", nil
	}
	id := a.Alloc.ID
	slow := time.AfterFunc(slowStep, func() { r.Events.Event(id, alloc.Progressed{Step: stepImage}) })
	defer slow.Stop()
	pull := pulling{
		now: r.Now, begun: r.Now(),
		progress: func(percent int) {
			slow.Stop() // what it would say is said, with more
			r.Events.Event(id, alloc.Progressed{Step: stepImage, Percent: percent})
		},
		tell: func(told structs.Told) { r.Notes.Tell(id, a.Alloc.Attempt, told) },
	}
	made, err := preparer.Prepare(ctx, *spec, pull.report)
	if err != nil {
		return "", blame(err)
	}
	r.Log.Info("image is there", logkey.AllocID, id, "image", made.Image, "digest", made.Digest, "pulled", made.Pulled)
	pull.end(&made)
	return imageOf(&made), nil
}

// pulling tells the servers how far an image is: now and then in percent, and
// with bytes at every quarter. It is used by one goroutine.
type pulling struct {
	progress func(percent int)
	tell     func(structs.Told)
	now      func() time.Time
	begun    time.Time

	at      time.Time // of the last report
	percent int       // that it brought
	noted   int       // percents of the last event
}

// report is told by the driver how far it is. The whole may grow while layers
// are found; what was told does not go back.
func (p *pulling) report(progress driver.Progress) {
	if progress.Total <= 0 || progress.Done < 0 {
		return
	}
	percent := int(min(float64(progress.Done)/float64(progress.Total)*100, percentsPending))
	now := p.now()
	if percent >= p.percent+fetchPercents && now.Sub(p.at) >= fetchEvery {
		p.at, p.percent = now, percent
		p.progress(percent)
	}
	if quarter := percent / fetchNoteEvery * fetchNoteEvery; quarter > p.noted {
		p.noted = quarter
		p.tell(structs.Told{Event: structs.EventImageComing, Params: map[string]string{
			"image": words.Short(progress.Item), "done": words.Mebibytes(progress.Done), "total": words.Mebibytes(progress.Total), "percent": strconv.Itoa(percent),
		}})
	}
}

// imageOf names the content of an image: by its registry's digest, or by its id
// on this node when it has never been in one.
func imageOf(made *driver.Prepared) string { return cmp.Or(made.Digest, made.ID) }

// end reports the image that is there now.
func (p *pulling) end(made *driver.Prepared) {
	content := imageOf(made)
	if content == "" {
		return
	}
	same := map[string]string{environment.FactImage: content}
	if !made.Pulled {
		facts := envcheck.Facts{environment.FactImage: made.Image, environment.FactImage + ".digest": content}
		p.tell(structs.Told{Event: structs.EventEnvironment, Params: map[string]string{"seen": environment.Seen(facts)}, Seen: same})
		return
	}
	took := p.now().Sub(p.begun).Round(100 * time.Millisecond)
	p.tell(structs.Told{Event: structs.EventImagePulled, Params: map[string]string{
		"image": words.Short(made.Image), "size": words.Mebibytes(made.Bytes), "took": took.String(), "digest": content,
	}, Seen: same})
}
