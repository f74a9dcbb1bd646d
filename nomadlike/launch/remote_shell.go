package launch

import (
	"strings"

	"nomadlike/nomadlike/structs"
)

// Options of ssh and rsh, as ORTE, PRRTE and Hydra and their users write them.
const (
	shellFlags       = "46AaCfGgKkMNnqsTtVvXxYy" // stand alone
	shellValueLetter = "BbcDEeFIiJLlmOopQRSWw"   // take a value, joined or as the next argument
)

// ParseRemoteShell reads the arguments of a remote shell as ssh takes them,
//
//	[-x] [-l user] [-p port] [-o option]… [user@]host command…
//
// and returns the host and the command as one line for the far shell: the words
// joined by blanks, nothing quoted or unquoted, which is what ssh does. Options
// are read and ignored, because the agent decides who runs where. The error is
// a *structs.Error: an option that ssh does not know, no host, or no command.
func ParseRemoteShell(args []string) (host, command string, err error) {
	i := 0
	for ; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			i++
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		takesNext, ok := readShellOption(arg[1:])
		if !ok {
			return "", "", structs.NewError(structs.CodeInvalid, "launch.shell_option", "option", arg)
		}
		if takesNext {
			if i++; i == len(args) {
				return "", "", structs.NewError(structs.CodeInvalid, "launch.shell_option_value", "option", arg)
			}
		}
	}
	if i == len(args) || args[i] == "" || args[i] == "-" {
		return "", "", structs.NewError(structs.CodeInvalid, "launch.shell_no_host")
	}
	host = args[i]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if problem := hostProblem(host); problem {
		return "", "", structs.NewError(structs.CodeInvalid, "launch.shell_host", "host", args[i])
	}
	command = strings.TrimSpace(strings.Join(args[i+1:], " "))
	if command == "" {
		return "", "", structs.NewError(structs.CodeInvalid, "launch.shell_no_command", "host", host)
	}
	return host, command, nil
}

// readShellOption reads joined letters such as xq or p22; takesNext when the
// last one takes its value from the next argument.
func readShellOption(letters string) (takesNext, ok bool) {
	for i := 0; i < len(letters); i++ {
		switch {
		case strings.IndexByte(shellValueLetter, letters[i]) >= 0:
			return i == len(letters)-1, true
		case strings.IndexByte(shellFlags, letters[i]) < 0:
			return false, false
		}
	}
	return false, true
}

// hostProblem reports whether host can be no rank name: those are made of
// letters, digits, '-' and '.', and do not look like an option.
func hostProblem(host string) bool {
	if host == "" || host[0] == '-' {
		return true
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == ':') {
			return true
		}
	}
	return false
}
