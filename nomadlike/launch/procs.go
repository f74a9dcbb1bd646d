package launch

import (
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// procsVerb is the agent's program that starts the processes of a rank.
const procsVerb = "task-procs"

// procsEnd parts what the program is told from the command.
const procsEnd = "--"

// Procs is one command that a node runs several times at once, each with variables
// of its own.
type Procs struct {
	Count   int
	Each    []EachProc
	Command []string
}

// EachProc is a variable with a value for each process.
type EachProc struct {
	Name   string
	Values []string
}

// Args are the arguments of the program that starts the processes; ParseProcs
// reads them.
func (p *Procs) Args() []string {
	args := []string{strconv.Itoa(p.Count)}
	for _, each := range p.Each {
		args = append(args, each.Name+"="+strings.Join(each.Values, ";"))
	}
	return append(append(args, procsEnd), p.Command...)
}

// Env is what process i gets beside what all have, as NAME=value.
func (p *Procs) Env(i int) []string {
	var lines []string
	for _, each := range p.Each {
		lines = append(lines, each.Name+"="+each.Values[i])
	}
	return lines
}

// ParseProcs reads what Args wrote.
func ParseProcs(args []string) (Procs, error) {
	bad := structs.NewError(structs.CodeInvalid, "client.procs_usage")
	if len(args) < 1 {
		return Procs{}, bad
	}
	count, err := strconv.Atoi(args[0])
	if err != nil || count < 1 || count > structs.ProcsMax {
		return Procs{}, bad
	}
	p := Procs{Count: count}
	for i, arg := range args[1:] {
		if arg == procsEnd {
			p.Command = args[i+2:]
			break
		}
		name, values, ok := strings.Cut(arg, "=")
		each := EachProc{Name: name, Values: strings.Split(values, ";")}
		if !ok || name == "" || len(each.Values) != count {
			return Procs{}, bad
		}
		p.Each = append(p.Each, each)
	}
	if len(p.Command) == 0 {
		return Procs{}, bad
	}
	return p, nil
}

// spreads reports whether a node starts the command once for each of its processes:
// when the job says so, or names how many and types python without a launcher.
func (b *build) spreads() bool {
	switch b.job.Distributed.Rewrite {
	case structs.RewriteProcs:
		return true
	case structs.RewriteNone:
		return false
	}
	if b.job.Distributed.ProcsPerNode < 2 {
		return false
	}
	words, _, err := b.expanded()
	if err != nil || len(words) == 0 {
		return false
	}
	if found, _ := findLauncher(words, pytorchLaunchers()); found != "" {
		return false // it starts them itself
	}
	if !isPython(words[0]) {
		b.note("launch.procs_as_typed", "procs", b.slots)
		return false
	}
	return true
}

// spread runs the command once for each process of the node.
func (b *build) spread(each ...EachProc) error {
	words, err := b.words()
	if err != nil {
		return err
	}
	if b.node.AgentPath == "" {
		return structs.NewError(structs.CodeInternal, "launch.input", "what", "the path of the agent's program is missing")
	}
	procs := Procs{Count: b.slots, Each: each, Command: words}
	b.out.Command = append([]string{b.node.AgentPath, procsVerb}, procs.Args()...)
	return nil
}

// counted is a variable that counts the node's processes from first on.
func (b *build) counted(name string, first int) EachProc {
	each := EachProc{Name: name}
	for i := range b.slots {
		each.Values = append(each.Values, strconv.Itoa(first+i))
	}
	return each
}

// cardOf numbers the cards among those that the task sees, from 0, and goes round
// where there are more processes than cards.
func (b *build) cardOf(name string) EachProc {
	each := EachProc{Name: name}
	cards := max(1, len(b.alloc.Devices), b.alloc.Spec.DeviceCount())
	for i := range b.slots {
		each.Values = append(each.Values, strconv.Itoa(i%cards))
	}
	return each
}

// cardsOf deals the node's cards out to its processes, each its part; false where
// the parts would not be equal.
func (b *build) cardsOf(name string) (EachProc, bool) {
	cards := strings.Split(b.env.values[name], ",")
	if b.env.values[name] == "" {
		cards = cards[:0]
		for i := range max(len(b.alloc.Devices), b.alloc.Spec.DeviceCount()) {
			cards = append(cards, strconv.Itoa(i))
		}
	}
	each := EachProc{Name: name}
	part := len(cards) / b.slots
	if part == 0 || part*b.slots != len(cards) {
		return each, false
	}
	for i := range b.slots {
		each.Values = append(each.Values, strings.Join(cards[i*part:(i+1)*part], ","))
	}
	return each, true
}
