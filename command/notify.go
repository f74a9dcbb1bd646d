package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func notifyVerbs() []verb {
	return []verb{
		{path: "notify status", setup: notifyStatus},
		{path: "notify set", setup: notifySet},
		{path: "notify list", setup: notifyList},
		{path: "notify test", args: "CHANNEL", setup: notifyTest},
		{path: "notify channel set", args: "CHANNEL", setup: notifyChannelSet},
		{path: "notify channel delete", args: "CHANNEL", setup: notifyChannelDelete},
	}
}

func notifyStatus(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.NotifyStatus, error) {
		return client.NotifyStatus(env.Context)
	}, (*Env).printNotify)(set)
}

func (env *Env) printNotify(status *api.NotifyStatus) {
	if !status.Chosen {
		fmt.Fprintln(env.Stdout, env.text("cli.notify.default"))
	}
	table := newTable(env.Stdout, env.text("cli.col.notify_kind"), env.text("cli.col.notify_where"), env.text("cli.col.notify_what"))
	for _, kind := range status.Kinds {
		where := "-"
		for _, rule := range status.On {
			if rule.Kind == kind {
				where = safe(strings.Join(rule.Channels, ", "))
			}
		}
		table.row(kind, where, env.text("notify.kind."+kind))
	}
	table.print()
	fmt.Fprintln(env.Stdout, env.text("cli.notify.spans", "wait", structs.FormatDuration(status.WaitLonger), "expire", structs.FormatDuration(status.ExpireIn)))
	if q := status.Quiet; q != nil {
		fmt.Fprintln(env.Stdout, env.text("cli.notify.quiet", "from", structs.NotifyTime(q.From), "to", structs.NotifyTime(q.To), "zone", safe(q.Zone)))
	}
	if len(status.Channels) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	channels := newTable(env.Stdout, env.text("cli.col.notify_channel"), env.text("cli.col.notify_sort"), env.text("cli.col.notify_host"), env.text("cli.col.notify_last"))
	for i := range status.Channels {
		c := &status.Channels[i]
		host := c.Host
		if c.Kind == structs.ChannelEmail {
			host = status.Email
		}
		channels.row(safe(c.Name), c.Kind, safe(firstOf(host, "-")), env.deliveryText(c.Last))
	}
	channels.print()
}

// deliveryText says how a delivery stands.
func (env *Env) deliveryText(d *structs.NotifyDelivery) string {
	switch {
	case d == nil:
		return "-"
	case d.SentAt != 0:
		return env.text("cli.notify.sent", "at", when(d.SentAt))
	case d.NextAt != 0:
		return env.text("cli.notify.retried", "problem", safe(d.Problem), "at", when(d.NextAt))
	}
	return env.text("cli.notify.given_up", "problem", safe(d.Problem))
}

// notifySet changes some of what the caller chose; the rest stays.
func notifySet(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	on := set.String("on", "", "cli.flag.notify_on")
	to := set.String("to", structs.ChannelBell, "cli.flag.notify_to")
	off := set.String("off", "", "cli.flag.notify_off")
	wait := set.String("wait-longer", "", "cli.flag.notify_wait")
	expire := set.String("expire-in", "", "cli.flag.notify_expire")
	quiet := set.String("quiet", "", "cli.flag.notify_quiet")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		status, err := client.NotifyStatus(env.Context)
		if err != nil {
			return err
		}
		request := api.NotifyRequest{On: status.On, Quiet: status.Quiet, WaitLonger: status.WaitLonger, ExpireIn: status.ExpireIn}
		for _, kind := range append(listed(*on), listed(*off)...) {
			if !slices.Contains(status.Kinds, kind) {
				return structs.NewError(structs.CodeInvalid, "cli.notify.kind", "kind", safe(kind), "kinds", strings.Join(status.Kinds, ", "))
			}
			request.On = slices.DeleteFunc(request.On, func(rule structs.NotifyRule) bool { return rule.Kind == kind })
		}
		for _, kind := range listed(*on) {
			request.On = append(request.On, structs.NotifyRule{Kind: kind, Channels: listed(*to)})
		}
		for _, span := range []struct {
			text string
			into *structs.Duration
		}{{*wait, &request.WaitLonger}, {*expire, &request.ExpireIn}} {
			if span.text == "" {
				continue
			}
			if *span.into, err = structs.ParseDuration(span.text); err != nil {
				return err
			}
		}
		if *quiet != "" {
			if request.Quiet, err = quietHours(*quiet); err != nil {
				return err
			}
		}
		if _, err := client.SetNotify(env.Context, request); err != nil {
			return err
		}
		if status, err = client.NotifyStatus(env.Context); err != nil {
			return err
		}
		return env.show(output, status, func() { env.printNotify(status) })
	}
}

// listed splits a list of names at commas.
func listed(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// quietHours reads 22:00-08:00@Asia/Shanghai, nil of none.
func quietHours(text string) (*structs.NotifyQuiet, error) {
	if text == "none" {
		return nil, nil
	}
	var fromHour, fromMinute, toHour, toMinute int
	hours, zone, found := strings.Cut(text, "@")
	count, err := fmt.Sscanf(hours, "%d:%d-%d:%d", &fromHour, &fromMinute, &toHour, &toMinute)
	within := func(n, most int) bool { return n >= 0 && n <= most }
	if err != nil || count != 4 || !found || !within(fromHour, 23) || !within(toHour, 23) || !within(fromMinute, 59) || !within(toMinute, 59) {
		return nil, structs.NewError(structs.CodeInvalid, "cli.notify.quiet_form", "value", safe(text))
	}
	return &structs.NotifyQuiet{From: 60*fromHour + fromMinute, To: 60*toHour + toMinute, Zone: zone}, nil
}

func notifyList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.NotificationList, error) {
		return client.Notifications(env.Context)
	}, func(env *Env, list *api.NotificationList) {
		if len(list.Notifications) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.notify.list_empty"))
		}
		for i := range list.Notifications {
			n := &list.Notifications[i]
			fmt.Fprintf(env.Stdout, "%s  %s\n", when(n.Time), safe(n.Title))
			for _, what := range n.What {
				fmt.Fprintf(env.Stdout, "  %s\n", safe(what))
			}
			for _, line := range n.Lines {
				fmt.Fprintf(env.Stdout, "    %s\n", safe(line))
			}
			for _, d := range n.Deliveries {
				fmt.Fprintf(env.Stdout, "  %s: %s\n", safe(d.Channel), env.deliveryText(&d))
			}
		}
	})(set)
}

func notifyTest(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		name, err := one(args, "CHANNEL")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		tested, err := client.TestNotifyChannel(env.Context, name)
		if err != nil {
			return err
		}
		if !tested.Sent {
			return structs.NewError(structs.CodeUnavailable, "cli.notify.test_failed", "channel", safe(name), "problem", safe(tested.Problem))
		}
		return env.show(output, tested, func() { fmt.Fprintln(env.Stdout, env.text("cli.notify.test_done", "channel", safe(name))) })
	}
}

// notifyChannelSet makes a channel. Its address comes from a file, a pipe or the keyboard,
// as the value of a secret does: whoever has it can write there.
func notifyChannelSet(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	kind := set.String("kind", structs.ChannelWebhook, "cli.flag.notify_kind")
	file := set.String("file", "", "cli.flag.notify_file")
	return func(env *Env, args []string) error {
		if len(args) > 1 {
			return usagef("cli.notify.argument")
		}
		name, err := one(args, "CHANNEL")
		if err != nil {
			return err
		}
		request := api.NotifyChannelRequest{Kind: *kind}
		if *kind != structs.ChannelEmail {
			value, err := env.secretValue(name, *file)
			if err != nil {
				return err
			}
			address, secret, _ := strings.Cut(strings.TrimSpace(string(value)), "\n")
			request.URL, request.Secret = strings.TrimSpace(address), strings.TrimSpace(secret)
			clear(value)
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		changed, err := client.SetNotifyChannel(env.Context, name, request)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.notify.channel_done", "channel", safe(name)))
			if changed.Secret != "" {
				fmt.Fprintln(env.Stdout, env.text("cli.notify.channel_secret", "secret", changed.Secret))
			}
		})
	}
}

func notifyChannelDelete(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		name, err := one(args, "CHANNEL")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		changed, err := client.DeleteNotifyChannel(env.Context, name)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() { fmt.Fprintln(env.Stdout, env.text("cli.notify.channel_gone", "channel", safe(name))) })
	}
}
