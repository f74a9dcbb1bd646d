package agent

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/notify/send"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of the work on deliveries.
const (
	notifyBatch = 64 // messages that one look begins to deliver
	notifySlots = 16 // deliveries at once
	notifyHolds = 10 * time.Minute
)

// deliverer sends the messages that the log holds to channels, while this server leads,
// and whatever a person tries out. Its methods may be called from any goroutine;
// beginDue and settle alone from that of notifier.run.
type deliverer struct {
	id       string // of this server
	store    *state.Store
	proposer *atomic.Pointer[server.Server]
	open     func(structs.SecretRef) ([]byte, error)
	audit    func(audit.Record) error
	allowed  []string
	base     string // address of the pages
	poster   *send.Poster
	mailer   *send.Mailer // nil: there is no mail server
	now      func() time.Time
	log      *slog.Logger

	slots chan struct{}

	mu struct {
		sync.Mutex
		sending map[string]bool             // deliveries under way, or whose result is not in the log
		settled []structs.NotifySettled     // results that are not in the log yet
		paces   notify.Paces                // by the hash of a robot's address
		held    map[string]structs.UnixNano // until when a channel takes nothing, by person and channel
	}
}

// openDeliverer makes a deliverer. It begins nothing by itself.
func openDeliverer(a *Agent) (*deliverer, error) {
	c := a.config.Server.Notify
	d := &deliverer{
		id: a.ID(), store: a.store, proposer: &a.proposer, open: a.vault.channel, audit: a.journal.Append,
		allowed: c.Allow, base: c.URL, now: time.Now, log: a.log, slots: make(chan struct{}, notifySlots),
	}
	d.mu.sending, d.mu.held = make(map[string]bool), make(map[string]structs.UnixNano)
	if d.base == "" {
		d.base = "https://" + a.addr
	}
	gossip := uint16(a.config.Gossip)
	d.poster = send.NewPoster(func(to netip.AddrPort) bool {
		if a.options.reaches != nil && a.options.reaches(to) {
			return false
		}
		return notify.Forbidden(to.Addr()) || ownPort(a.store.Snapshot(), a.servers.addresses(), gossip, to)
	})
	if c.SMTP.Address == "" {
		return d, nil
	}
	var err error
	d.mailer, err = send.NewMailer(send.MailConfig{
		Address: c.SMTP.Address, Implicit: c.SMTP.TLS == "tls", CA: c.SMTP.CA,
		User: c.SMTP.User, PasswordFile: c.SMTP.PasswordFile, From: c.SMTP.From,
	})
	return d, err
}

// ownPort reports whether an address is one at which an agent of the cluster listens: a
// port that servers use, on whichever machine, since one machine has many addresses; or
// the very port of a node.
func ownPort(snapshot *state.Snapshot, servers []string, gossip uint16, to netip.AddrPort) bool {
	if gossip != 0 && to.Port() == gossip {
		return true
	}
	port := strconv.Itoa(int(to.Port()))
	for _, address := range servers {
		if _, p, err := net.SplitHostPort(address); err == nil && p == port {
			return true
		}
	}
	for node := range snapshot.Nodes() {
		if host, p, err := net.SplitHostPort(node.RPCAddr); err == nil && p == port && host == to.Addr().String() {
			return true
		}
	}
	return false
}

// delivery is what goes to one channel of one person at once: a message, or several that
// are sent as one.
type delivery struct {
	user, channel string
	messages      []*structs.Notification
	parts         []structs.NotifyDelivery // of the messages
}

func channelKey(user, channel string) string { return user + "\x00" + channel }

func (d *delivery) key(i int) string {
	return channelKey(d.user, d.channel) + "\x00" + d.messages[i].ID
}

// beginDue begins the deliveries that are due, by begin.
func (d *deliverer) beginDue(ctx context.Context, begin func(func())) {
	for _, one := range d.due(structs.At(d.now())) {
		select {
		case d.slots <- struct{}{}:
		default:
			return // the next look begins it
		}
		d.claim(one)
		begin(func() {
			defer func() { <-d.slots }()
			d.deliver(ctx, one)
		})
	}
}

// due lists the deliveries that are due, those first that have been due longest. What
// waits for a robot that takes no more is not among them; it goes there as one message
// when the wait is over, as does what is more than a storm.
func (d *deliverer) due(now structs.UnixNano) []*delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, until := range d.mu.held {
		if now.Sub(until) > notifyHolds {
			delete(d.mu.held, key)
		}
	}
	snapshot := d.store.Snapshot()
	var channels []*delivery
	byKey := make(map[string]*delivery)
	for _, message := range snapshot.DueNotifications(now, notifyBatch+structs.NotifyKeptPerUser*len(d.mu.held)) {
		for _, part := range message.Deliveries {
			key := channelKey(message.User, part.Channel)
			if part.NextAt == 0 || part.NextAt > now || d.mu.held[key] > now || d.mu.sending[key+"\x00"+message.ID] {
				continue
			}
			if byKey[key] == nil {
				byKey[key] = &delivery{user: message.User, channel: part.Channel}
				channels = append(channels, byKey[key])
			}
			byKey[key].add(message, part)
		}
	}
	var list []*delivery
	for _, all := range channels {
		_, held := d.mu.held[channelKey(all.user, all.channel)]
		if (held || len(all.messages) > notify.StormAfter) && paced(snapshot, all) {
			list = append(list, all)
			continue
		}
		for i := range all.messages {
			one := &delivery{user: all.user, channel: all.channel}
			one.add(all.messages[i], all.parts[i])
			list = append(list, one)
		}
	}
	return list
}

func (d *delivery) add(message *structs.Notification, part structs.NotifyDelivery) {
	d.messages, d.parts = append(d.messages, message), append(d.parts, part)
}

// paced reports whether the channel of a delivery takes only so many messages.
func paced(snapshot *state.Snapshot, one *delivery) bool {
	settings := snapshot.NotifySettings(one.user)
	if settings == nil {
		return false
	}
	channel := settings.Channel(one.channel)
	return channel != nil && notify.Paced(channel.Kind)
}

// claim notes that a delivery is under way.
func (d *deliverer) claim(one *delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range one.messages {
		d.mu.sending[one.key(i)] = true
	}
}

// deliver tries one delivery, and keeps what became of it for the next look.
func (d *deliverer) deliver(ctx context.Context, one *delivery) {
	result := notify.Result{Final: true, Problem: "notify.problem.gone"}
	wait := time.Duration(0)
	if settings := d.store.Snapshot().NotifySettings(one.user); settings != nil {
		if channel := settings.Channel(one.channel); channel != nil {
			result, wait = d.try(ctx, *channel, notify.Merged(one.messages))
		}
	}
	if ctx.Err() != nil && !result.Sent {
		return // another server tries it
	}
	now := structs.At(d.now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if wait > 0 { // nothing was tried
		d.mu.held[channelKey(one.user, one.channel)] = now.Add(wait)
		for i := range one.messages {
			delete(d.mu.sending, one.key(i))
		}
		return
	}
	delete(d.mu.held, channelKey(one.user, one.channel))
	if !result.Sent {
		d.log.Info("a notification was not delivered", logkey.User, one.user, "channel", one.channel, "problem", result.Problem)
		if result.Wait > 0 { // nor does it take the next ones
			d.mu.held[channelKey(one.user, one.channel)] = now.Add(result.Wait)
		}
	}
	for i, message := range one.messages {
		d.mu.settled = append(d.mu.settled, structs.NotifySettled{
			User: one.user, ID: message.ID, Delivery: notify.After(message, one.parts[i], result, now),
		})
	}
}

// settle puts results into the log.
func (d *deliverer) settle(ctx context.Context) {
	d.mu.Lock()
	settled := d.mu.settled
	d.mu.Unlock()
	if settled = settled[:min(len(settled), structs.NotifySettledMax)]; len(settled) == 0 {
		return
	}
	if _, _, err := d.proposer.Load().Submit(ctx, structs.CommandNotifyStep, "", &structs.NotifyStep{Settled: settled}); err != nil {
		if ctx.Err() == nil {
			d.log.Warn("results of notifications are not in the log yet", logkey.Error, err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.settled = d.mu.settled[len(settled):]
	for i := range settled {
		delete(d.mu.sending, channelKey(settled[i].User, settled[i].Delivery.Channel)+"\x00"+settled[i].ID)
	}
}

// Hosts implements httpapi.Tell.
func (d *deliverer) Hosts() (allowed []string, mail bool) { return d.allowed, d.mailer != nil }

// Try implements httpapi.Tell.
func (d *deliverer) Try(ctx context.Context, channel structs.NotifyChannel, message *structs.Notification) notify.Result {
	result, wait := d.try(ctx, channel, message)
	if wait > 0 {
		return notify.Result{Problem: "notify.problem.paced", Wait: wait}
	}
	return result
}

// try sends one message, in the language of the person; or nothing, where the channel
// takes nothing for a while.
func (d *deliverer) try(ctx context.Context, channel structs.NotifyChannel, message *structs.Notification) (result notify.Result, wait time.Duration) {
	snapshot := d.store.Snapshot()
	account := snapshot.User(message.User)
	language := messages.English
	if account != nil && account.Language == string(messages.Chinese) {
		language = messages.Chinese
	}
	text := notify.TextOf(language, message, d.base)
	if channel.Kind == structs.ChannelEmail {
		switch {
		case d.mailer == nil:
			return notify.Result{Problem: "notify.problem.no_mail"}, 0
		case account == nil || account.Email == "":
			return notify.Result{Final: true, Problem: "notify.problem.no_address"}, 0
		}
		return d.mailer.Mail(ctx, account.Email, message, text), 0
	}
	value, err := d.open(structs.SecretRef{User: message.User, Name: channel.SecretName()})
	if err != nil {
		d.log.Warn("the address of a channel cannot be opened", logkey.User, message.User, logkey.Error, err)
		result = notify.Result{Problem: "notify.problem.sealed"}
	} else {
		result, wait = d.post(ctx, channel.Kind, value, message, text)
		clear(value)
	}
	d.record(channel, message, result, wait)
	return result, wait
}

// post sends a message to the address that was opened.
func (d *deliverer) post(ctx context.Context, kind string, value []byte, message *structs.Notification, text notify.Text) (result notify.Result, wait time.Duration) {
	var target notify.Target
	if err := json.Unmarshal(value, &target); err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.url"}, 0
	}
	if _, err := notify.CheckAddress(target.URL, d.allowed); err != nil { // the administrator may have changed their mind
		return notify.Result{Problem: "notify.problem.host"}, 0
	}
	now := structs.At(d.now())
	request, err := notify.RequestFor(kind, target, message, text, now)
	if err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.secret"}, 0
	}
	robot := sha256.Sum256([]byte(target.URL))
	d.mu.Lock()
	wait = d.mu.paces.Take(kind, string(robot[:]), now)
	d.mu.Unlock()
	if wait > 0 {
		return notify.Result{}, wait
	}
	return d.poster.Post(ctx, kind, request), 0
}

// record puts into the audit record that this server opened the address of a channel, for
// which message, and what became of it.
func (d *deliverer) record(channel structs.NotifyChannel, message *structs.Notification, result notify.Result, wait time.Duration) {
	record := audit.Record{
		Actor: audit.Actor{Kind: string(auth.KindServer), User: d.id}, Action: audit.ActionChannelUse,
		Object:  audit.Object{Kind: string(auth.ObjectSecret), ID: channel.SecretName(), Part: message.ID, Owner: message.User},
		Outcome: audit.Allowed,
	}
	switch {
	case wait > 0:
		record.Outcome, record.Reason = audit.Failed, "notify.problem.paced"
	case !result.Sent:
		record.Outcome = audit.Failed
		if strings.HasPrefix(result.Problem, "notify.problem.") { // else it is the channel's own word
			record.Reason = result.Problem
		}
	}
	if err := d.audit(record); err != nil {
		d.log.Error("a use of a channel's address is not in the audit record", logkey.User, message.User, logkey.Error, err)
	}
}
