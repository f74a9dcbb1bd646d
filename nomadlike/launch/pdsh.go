package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Options of pdsh 2.3x, as deepspeed and people write them.
const (
	pdshFlags        = "SNqbdBvi" // stand alone
	pdshValueLetters = "wxRltufoMeD"
	pdshFanout       = 32   // remote commands at a time, as pdsh has it
	pdshFanoutMax    = 4096 // shells that an agent serves one allocation at a time
	pdshHostsMax     = 4096
)

// Pdsh is a call of pdsh.
type Pdsh struct {
	Hosts   []string
	Command string // with %h, %n and %u in it
	Fanout  int    // how many run at a time
	Bare    bool   // -N: lines without the host in front
	Largest bool   // -S: ends with the largest exit code of all
}

// CommandOn is the command line for one of the hosts: %h is the host, %n its
// number, %u the user, %% a per cent sign.
func (p *Pdsh) CommandOn(n int, user string) string {
	return strings.NewReplacer("%%", "%", "%h", p.Hosts[n], "%n", strconv.Itoa(n), "%u", user).Replace(p.Command)
}

// ParsePdsh reads the arguments of pdsh,
//
//	[-S] [-N] [-R ssh] [-f N] [-l user] -w host,… [-x host,…] command…
//
// where a host may have a range: node[0-3,7]. Which user and remote shell run it
// is the agent's to decide. The error is a *structs.Error that names the option,
// the host, or what is missing.
func ParsePdsh(args []string) (*Pdsh, error) {
	p := &Pdsh{Fanout: pdshFanout}
	var but []string
	i := 0
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		letters := args[i][1:]
		for k := 0; k < len(letters); k++ {
			letter := letters[k]
			switch {
			case letter == 'S':
				p.Largest = true
			case letter == 'N':
				p.Bare = true
			case strings.IndexByte(pdshFlags, letter) >= 0:
			case strings.IndexByte(pdshValueLetters, letter) >= 0:
				value := letters[k+1:]
				if value == "" {
					if i++; i == len(args) {
						return nil, structs.NewError(structs.CodeInvalid, "launch.shell_option_value", "option", "-"+string(letter))
					}
					value = args[i]
				}
				if err := p.option(letter, value, &but); err != nil {
					return nil, err
				}
				k = len(letters)
			default:
				return nil, structs.NewError(structs.CodeInvalid, "launch.shell_option", "option", args[i])
			}
		}
	}
	p.Hosts = slices.DeleteFunc(p.Hosts, func(host string) bool { return slices.Contains(but, host) })
	if p.Command = strings.TrimSpace(strings.Join(args[i:], " ")); len(p.Hosts) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "launch.shell_no_host")
	}
	if p.Command == "" {
		return nil, structs.NewError(structs.CodeInvalid, "launch.shell_no_command", "host", p.Hosts[0])
	}
	return p, nil
}

func (p *Pdsh) option(letter byte, value string, but *[]string) error {
	switch letter {
	case 'f':
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return structs.NewError(structs.CodeInvalid, "launch.pdsh_fanout", "value", value)
		}
		p.Fanout = min(n, pdshFanoutMax)
	case 'w', 'x':
		hosts, err := pdshHosts(value)
		if err != nil {
			return err
		}
		if letter == 'x' {
			*but = append(*but, hosts...)
			break
		}
		for _, host := range hosts {
			if !slices.Contains(p.Hosts, host) {
				p.Hosts = append(p.Hosts, host)
			}
		}
		if len(p.Hosts) > pdshHostsMax {
			return structs.NewError(structs.CodeInvalid, "launch.pdsh_hosts", "max", pdshHostsMax)
		}
	}
	return nil
}

// pdshHosts lists the hosts of an option, ranges spread out.
func pdshHosts(list string) ([]string, error) {
	var hosts []string
	for list != "" {
		end := strings.IndexByte(list, ',')
		if open := strings.IndexByte(list, '['); open >= 0 && (end < 0 || open < end) {
			shut := strings.IndexByte(list, ']')
			if shut < open {
				return nil, structs.NewError(structs.CodeInvalid, "launch.shell_host", "host", list)
			}
			if end = strings.IndexByte(list[shut:], ','); end >= 0 {
				end += shut
			}
		}
		one := list
		if list = ""; end >= 0 {
			one, list = one[:end], one[end+1:]
		}
		if at := strings.LastIndexByte(one, '@'); at >= 0 {
			one = one[at+1:]
		}
		spread, err := spreadHosts(one)
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, spread...); len(hosts) > pdshHostsMax {
			return nil, structs.NewError(structs.CodeInvalid, "launch.pdsh_hosts", "max", pdshHostsMax)
		}
	}
	return hosts, nil
}

// spreadHosts names the hosts of node[0-3,7]; a name without a range is one.
func spreadHosts(one string) ([]string, error) {
	unfit := func() error { return structs.NewError(structs.CodeInvalid, "launch.shell_host", "host", one) }
	prefix, rest, ranged := strings.Cut(one, "[")
	if !ranged {
		if hostProblem(one) {
			return nil, unfit()
		}
		return []string{one}, nil
	}
	inside, suffix, _ := strings.Cut(rest, "]")
	var hosts []string
	for part := range strings.SplitSeq(inside, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		if err != nil || err2 != nil || to < from || to-from >= pdshHostsMax {
			return nil, unfit()
		}
		for n := from; n <= to; n++ {
			host := fmt.Sprintf("%s%0*d%s", prefix, len(low), n, suffix)
			if hostProblem(host) {
				return nil, unfit()
			}
			if hosts = append(hosts, host); len(hosts) > pdshHostsMax {
				return nil, structs.NewError(structs.CodeInvalid, "launch.pdsh_hosts", "max", pdshHostsMax)
			}
		}
	}
	return hosts, nil
}
