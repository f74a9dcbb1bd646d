package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// notifyHandlers keeps what people chose to be told, and shows them what they were.
type notifyHandlers struct {
	*core
	vault   Vault
	members Membership
	tell    Tell
	rand    io.Reader
}

// Tell is what the doors of notifications need of a server.
type Tell interface {
	// Hosts lists the hosts that the administrator allowed messages to be sent to, and
	// whether there is a mail server.
	Hosts() (allowed []string, mail bool)
	// Try sends one message to a channel of its person's, as it would any.
	Try(ctx context.Context, channel structs.NotifyChannel, n *structs.Notification) notify.Result
}

// person is the name under which the caller is told things: that of a user, never that
// of a guest or a machine.
func (h *notifyHandlers) person(r *front.Request) (string, *state.Snapshot, error) {
	if r.Caller.Principal.Kind != auth.KindUser {
		return "", nil, structs.NewError(structs.CodeForbidden, "agent.notify_nobody")
	}
	if err := h.refresh(r); err != nil {
		return "", nil, err
	}
	return r.Caller.Principal.ID, h.store.Snapshot(), nil
}

// operates reports whether the caller is told what happens to the cluster.
func operates(p auth.Principal) bool {
	wide := []auth.UserRole{auth.RoleOperator, auth.RoleAdmin}
	return slices.Contains(wide, p.Role) || slices.Contains(wide, p.Cluster)
}

func kindsFor(p auth.Principal) []string {
	return slices.DeleteFunc(structs.NotifyKinds(), func(kind string) bool { return structs.NotifyOperators(kind) && !operates(p) })
}

// read answers notify.read.
func (h *notifyHandlers) read(r *front.Request, _ *structs.Token) (*api.NotifyStatus, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return nil, err
	}
	out := &api.NotifyStatus{
		User: person, On: []structs.NotifyRule{}, Channels: []api.NotifyChannelInfo{}, Kinds: kindsFor(r.Caller.Principal),
		WaitLonger: notify.WaitLonger, ExpireIn: notify.ExpireIn,
	}
	if out.Allowed, out.Mail = h.tell.Hosts(); out.Allowed == nil {
		out.Allowed = []string{}
	}
	if account := snapshot.User(person); account != nil {
		out.Email = account.Email
	}
	settings := snapshot.NotifySettings(person)
	if settings == nil {
		return out, nil
	}
	out.Chosen, out.Version, out.Quiet = settings.ModifyIndex != 0, settings.ModifyIndex, settings.Quiet
	out.WaitLonger, out.ExpireIn = notify.Spans(settings)
	for _, rule := range settings.On {
		if len(rule.Channels) > 0 && slices.Contains(out.Kinds, rule.Kind) {
			out.On = append(out.On, rule)
		}
	}
	told, language := snapshot.Notifications(person), front.AcceptedLanguage(r.Header.Get("Accept-Language"))
	for _, channel := range settings.Channels {
		out.Channels = append(out.Channels, api.NotifyChannelInfo{Name: channel.Name, Kind: channel.Kind, Host: channel.Host, Last: lastDelivery(language, told, channel.Name)})
	}
	return out, nil
}

// lastDelivery is how the newest message fared that was tried at a channel.
func lastDelivery(language messages.Language, told []*structs.Notification, channel string) *structs.NotifyDelivery {
	for _, n := range told {
		for _, d := range inWords(language, n.Deliveries) {
			if d.Channel == channel && d.Tries > 0 {
				return &d
			}
		}
	}
	return nil
}

// inWords is deliveries with what went wrong in somebody's language.
func inWords(language messages.Language, deliveries []structs.NotifyDelivery) []structs.NotifyDelivery {
	out := make([]structs.NotifyDelivery, len(deliveries))
	for i, d := range deliveries {
		d.Problem = notify.ProblemOf(language, d.Problem)
		out[i] = d
	}
	return out
}

// choiceOf is a copy of what a person chose, to be changed.
func choiceOf(snapshot *state.Snapshot, person string) structs.NotifySettings {
	settings := snapshot.NotifySettings(person)
	if settings == nil {
		return structs.NotifySettings{User: person}
	}
	copied := *settings
	copied.On, copied.Channels = slices.Clone(settings.On), slices.Clone(settings.Channels)
	return copied
}

// keep puts what a person chose into the log.
func (h *notifyHandlers) keep(r *front.Request, settings *structs.NotifySettings) (uint64, error) {
	if err := structs.InvalidJob(structs.CodeInvalid, settings.Validate()); err != nil {
		return 0, err
	}
	return h.propose(r, structs.CommandNotifySet, structs.NotifySet{Settings: settings, Before: settings.ModifyIndex})
}

// put answers notify.put.
func (h *notifyHandlers) put(r *front.Request, _ *structs.Token, body *api.NotifyRequest) (*api.Changed, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return nil, err
	}
	allowed := kindsFor(r.Caller.Principal)
	for _, rule := range body.On {
		if structs.NotifyOperators(rule.Kind) && !slices.Contains(allowed, rule.Kind) {
			return nil, structs.NewError(structs.CodeForbidden, "agent.notify_operators", "kind", rule.Kind)
		}
	}
	if slices.ContainsFunc(body.On, func(rule structs.NotifyRule) bool { return rule.Kind == structs.NotifyQuota }) {
		if protocol, name := h.members.Lowest(); protocol < wire.ProtocolHolds {
			return nil, structs.NewError(structs.CodeConflict, "agent.notify_old_kind", "name", name, "kind", structs.NotifyQuota)
		}
	}
	settings := choiceOf(snapshot, person)
	settings.On = slices.DeleteFunc(slices.Clone(body.On), func(rule structs.NotifyRule) bool { return len(rule.Channels) == 0 })
	settings.WaitLonger, settings.ExpireIn, settings.Quiet = body.WaitLonger, body.ExpireIn, body.Quiet
	index, err := h.keep(r, &settings)
	if err != nil {
		return nil, err
	}
	return h.changed(r, index)
}

// putChannel answers notify.channel_put. Address and secret are sealed as an own secret
// of the person; no other record has them.
func (h *notifyHandlers) putChannel(r *front.Request, _ *structs.Token, body *api.NotifyChannelRequest) (*api.NotifyChannelChanged, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return nil, err
	}
	if id := structs.NotifyChannelProblem(r.ID); id != "" {
		return nil, structs.NewError(structs.CodeInvalid, id, "name", r.ID, "max", structs.NotifyChannelNameMax)
	}
	channel := structs.NotifyChannel{Name: r.ID, Kind: body.Kind}
	out := &api.NotifyChannelChanged{}
	target := notify.Target{URL: body.URL, Secret: body.Secret}
	if err := h.complete(snapshot, person, &channel, &target, out); err != nil {
		return nil, err
	}
	settings := choiceOf(snapshot, person)
	if known := settings.Channel(r.ID); known != nil {
		*known = channel
	} else {
		settings.Channels = append(settings.Channels, channel)
	}
	if err := structs.InvalidJob(structs.CodeInvalid, settings.Validate()); err != nil {
		return nil, err
	}
	if channel.Kind != structs.ChannelEmail {
		if err := h.seal(r, snapshot, person, &channel, target); err != nil {
			return nil, err
		}
	}
	if out.Index, err = h.keep(r, &settings); err != nil {
		return nil, err
	}
	r.SetIndex(out.Index)
	return out, nil
}

// complete checks where a channel leads, and draws the secret of a webhook that has none.
func (h *notifyHandlers) complete(snapshot *state.Snapshot, person string, channel *structs.NotifyChannel, target *notify.Target, out *api.NotifyChannelChanged) (err error) {
	allowed, mail := h.tell.Hosts()
	switch channel.Kind {
	case structs.ChannelEmail:
		account := snapshot.User(person)
		switch {
		case !mail:
			return structs.NewError(structs.CodeConflict, "agent.notify_no_mail")
		case account == nil || account.Email == "":
			return structs.NewError(structs.CodeConflict, "agent.notify_no_address", "user", person)
		case target.URL != "" || target.Secret != "":
			return structs.NewError(structs.CodeInvalid, "agent.notify_mail_url")
		}
		return nil
	case structs.ChannelWebhook:
		if target.Secret == "" {
			key := make([]byte, 32)
			if _, err := io.ReadFull(h.rand, key); err != nil {
				return err
			}
			target.Secret = notify.WebhookSecret(key)
			out.Secret = target.Secret
		}
		if _, err := notify.WebhookKey(target.Secret); err != nil {
			return err
		}
	case structs.ChannelDingTalk, structs.ChannelFeishu, structs.ChannelWeCom:
		if len(target.Secret) > structs.NotifyAddressMax {
			return structs.NewError(structs.CodeInvalid, "notify.webhook_secret")
		}
	default:
		return nil // refused with the settings
	}
	channel.Host, err = notify.CheckAddress(target.URL, allowed)
	return err
}

// seal keeps where a channel leads as a secret of the person's own.
func (h *notifyHandlers) seal(r *front.Request, snapshot *state.Snapshot, person string, channel *structs.NotifyChannel, target notify.Target) error {
	if err := knownToAll(snapshot, h.members, wire.ProtocolNotify, "agent.notify_old"); err != nil {
		return err
	}
	value, err := json.Marshal(target)
	if err != nil {
		return err
	}
	defer clear(value)
	secret := structs.Secret{User: person, Name: channel.SecretName(), Version: 1}
	if known := snapshot.Secret(secret.Ref()); known != nil {
		secret.Version = known.Version + 1
	}
	if err := h.vault.Seal(r.Context(), person, &secret, value); err != nil {
		return err
	}
	_, err = h.propose(r, structs.CommandSecretSet, structs.SecretSet{Secret: secret})
	return err
}

// channel finds a channel of the caller's.
func (h *notifyHandlers) channel(r *front.Request) (structs.NotifySettings, *state.Snapshot, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return structs.NotifySettings{}, nil, err
	}
	settings := choiceOf(snapshot, person)
	if settings.Channel(r.ID) == nil {
		return settings, nil, structs.NewError(structs.CodeNotFound, "notify.channel_unknown", "channel", r.ID)
	}
	return settings, snapshot, nil
}

// deleteChannel answers notify.channel_delete.
func (h *notifyHandlers) deleteChannel(r *front.Request, _ *structs.Token) (*api.Changed, error) {
	settings, snapshot, err := h.channel(r)
	if err != nil {
		return nil, err
	}
	secret := structs.SecretRef{User: settings.User, Name: settings.Channel(r.ID).SecretName()}
	settings.Channels = slices.DeleteFunc(settings.Channels, func(c structs.NotifyChannel) bool { return c.Name == r.ID })
	for i := range settings.On {
		settings.On[i].Channels = slices.DeleteFunc(slices.Clone(settings.On[i].Channels), func(name string) bool { return name == r.ID })
	}
	settings.On = slices.DeleteFunc(settings.On, func(rule structs.NotifyRule) bool { return len(rule.Channels) == 0 })
	index, err := h.keep(r, &settings)
	if err != nil {
		return nil, err
	}
	if snapshot.Secret(secret) != nil {
		if index, err = h.propose(r, structs.CommandSecretDelete, structs.SecretDelete{Ref: secret}); err != nil {
			return nil, err
		}
	}
	return h.changed(r, index)
}

// testChannel answers notify.channel_test.
func (h *notifyHandlers) testChannel(r *front.Request, _ *structs.Token) (*api.NotifyTested, error) {
	settings, _, err := h.channel(r)
	if err != nil {
		return nil, err
	}
	id, err := auth.NewTokenID(h.rand)
	if err != nil {
		return nil, err
	}
	message := &structs.Notification{ID: "msg_" + id, User: settings.User, Kind: structs.NotifyTest, Time: structs.At(h.now())}
	result := h.tell.Try(r.Context(), *settings.Channel(r.ID), message)
	problem := notify.ProblemOf(front.AcceptedLanguage(r.Header.Get("Accept-Language")), result.Problem)
	return &api.NotifyTested{Sent: result.Sent, Problem: problem}, nil
}

// list answers notifications.list, in the caller's language.
func (h *notifyHandlers) list(r *front.Request, _ *structs.Token) (*api.NotificationList, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return nil, err
	}
	out := &api.NotificationList{Notifications: []api.NotificationInfo{}}
	seen := uint64(0)
	if settings := snapshot.NotifySettings(person); settings != nil {
		seen = settings.Seen
	}
	language := front.AcceptedLanguage(r.Header.Get("Accept-Language"))
	for _, n := range snapshot.Notifications(person) {
		text := notify.TextOf(language, n, "")
		one := api.NotificationInfo{
			ID: n.ID, Kind: n.Kind, Time: n.Time, Title: text.Title, What: text.What, Do: text.Do, Lines: text.Lines,
			Project: n.Project, JobID: n.JobID, Job: n.Job, Seen: !n.Bell || n.MadeIndex <= seen, Deliveries: inWords(language, n.Deliveries),
		}
		if one.What == nil {
			one.What = []string{}
		}
		if len(one.Lines) > 0 && !readsLines(r, n) {
			one.Lines = nil
		}
		if !one.Seen {
			out.Unseen++
		}
		out.Through = max(out.Through, n.MadeIndex)
		out.Notifications = append(out.Notifications, one)
	}
	return out, nil
}

// readsLines reports whether the caller may read now what a task of theirs said: it is
// shown to nobody who would be refused its log.
func readsLines(r *front.Request, n *structs.Notification) bool {
	there, ok := r.Caller.In(n.Project)
	return ok && auth.Covers(r.Caller.Token, auth.VerbLogs) && auth.Allowed(there, auth.VerbLogs, auth.Object{Kind: auth.ObjectJob, ID: n.JobID, Project: n.Project, Owner: n.User}).Allow
}

// see answers notifications.seen.
func (h *notifyHandlers) see(r *front.Request, _ *structs.Token, body *api.NotificationsSeen) (*api.Changed, error) {
	person, snapshot, err := h.person(r)
	if err != nil {
		return nil, err
	}
	if body.Through == 0 || body.Through > snapshot.Index() {
		return nil, structs.NewError(structs.CodeInvalid, "agent.notify_seen")
	}
	return h.change(r, structs.CommandNotifySet, structs.NotifySet{User: person, Seen: body.Through})
}
