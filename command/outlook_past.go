package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// pastOf asks which job held each card over the last day, or with a span at the
// moment so long ago.
func pastOf(env *Env, client *api.Client, pool string, ago structs.Duration) (*outlook.Past, error) {
	found, err := client.Past(env.Context, pool)
	if err != nil || ago == 0 {
		return found, err
	}
	at := found.To.Add(-ago.Std())
	if at < found.From {
		return nil, usagef("cli.outlook.too_long_ago", "ago", structs.FormatDuration(ago),
			"most", structs.FormatDuration(structs.Duration(found.To.Sub(found.From))))
	}
	return found.At(at), nil
}

// printPast lists what held cards, node by node, and below it what is not known.
func (env *Env) printPast(found *outlook.Past) {
	if found.From == found.To {
		env.printMoment(found)
	}
	table := newTable(env.Stdout, env.text("cli.col.node"), env.text("cli.col.cards"), env.text("cli.col.job"), env.text("cli.col.project"),
		env.text("cli.col.user"), env.text("cli.outlook.from"), env.text("cli.outlook.to"))
	for i := range found.Nodes {
		node := &found.Nodes[i]
		name := safe(node.Node)
		if node.Removed {
			name = env.text("cli.outlook.removed", "node", name)
		}
		for k := range node.Spans {
			span := &node.Spans[k]
			table.row(name, cardsText(node, span), env.pastJob(span), cmp.Or(safe(span.Project), "-"), cmp.Or(safe(span.User), "-"), minute(span.From), minute(span.To))
		}
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.outlook.past_none"))
	} else {
		table.print()
	}
	env.printUnknown(found)
}

// printMoment says how many cards were held at a moment; of nodes without cards, how
// many nodes.
func (env *Env) printMoment(found *outlook.Past) {
	cards, held, nodes, busy := 0, 0, 0, 0
	for i := range found.Nodes {
		node := &found.Nodes[i]
		if !node.Removed && node.JoinedAt <= found.To {
			nodes++
		}
		for _, card := range node.Cards {
			if !card.Gone && node.JoinedAt <= found.To {
				cards++
			}
		}
		if len(node.Spans) > 0 {
			busy++
		}
		for _, span := range node.Spans {
			held += len(span.Cards) + span.UnknownCards
		}
	}
	if cards == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.outlook.past_nodes_at", "time", minute(found.To), "used", busy, "total", nodes))
		return
	}
	for _, use := range found.Forgotten {
		held += use.Cards
	}
	fmt.Fprintln(env.Stdout, env.text("cli.outlook.past_at", "time", minute(found.To), "used", held, "total", cards))
}

// pastJob names the job of a span, as far as the caller may know it.
func (env *Env) pastJob(span *outlook.PastSpan) string {
	if span.JobID == "" {
		return env.text("cli.device.hidden")
	}
	name := safe(span.Job)
	if span.Subjob > 0 {
		name += fmt.Sprintf(" s%d", span.Subjob)
	}
	if span.Held {
		name = env.text("cli.outlook.past_held", "job", name)
	}
	return name
}

// cardsText is which cards of a node a span held, as in 0-3,6. Cards that the node has
// no more, and those of which nobody knows which they were, are counted: 0-3 +2?.
func cardsText(node *outlook.PastNode, span *outlook.PastSpan) string {
	var numbers []int
	unknown := span.UnknownCards
	for _, place := range span.Cards {
		if place < 0 || place >= len(node.Cards) || node.Cards[place].Gone {
			unknown++
			continue
		}
		numbers = append(numbers, node.Cards[place].Index)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers) // parts of one card
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := strconv.Itoa(numbers[i])
		if last > i {
			part += "-" + strconv.Itoa(numbers[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	text := strings.Join(parts, ",")
	if unknown > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s +%d?", text, unknown))
	}
	return cmp.Or(text, "-")
}

// printUnknown says what of a past nobody knows.
func (env *Env) printUnknown(found *outlook.Past) {
	say := func(id string, params ...any) { fmt.Fprintln(env.Stdout, env.text(id, params...)) }
	for i := range found.Nodes {
		node := &found.Nodes[i]
		if node.JoinedAt > found.From {
			say("cli.outlook.past_joined", "node", safe(node.Node), "time", minute(node.JoinedAt))
		}
		if node.CompleteSince > found.From {
			say("cli.outlook.past_cut", "node", safe(node.Node), "time", minute(node.CompleteSince))
		}
	}
	runs, cards := map[string]int{}, map[string]int{}
	for _, use := range found.Forgotten {
		runs[use.Pool]++
		cards[use.Pool] += use.Cards
	}
	for _, pool := range slices.Sorted(maps.Keys(runs)) {
		if found.From == found.To {
			say("cli.outlook.past_forgotten_at", "pool", safe(pool), "cards", cards[pool])
		} else {
			say("cli.outlook.past_forgotten", "pool", safe(pool), "attempts", runs[pool])
		}
	}
	if found.More > 0 {
		say("cli.outlook.past_more", "nodes", found.More)
	}
}
