package taskssh

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"nomadlike/plugins/driver"
)

// This file reads what clients send, which is hostile.

// parseText reads a payload of one text.
func parseText(payload []byte) (string, bool) {
	var p struct{ Text string }
	if ssh.Unmarshal(payload, &p) != nil || len(p.Text) > wordsMax || strings.IndexByte(p.Text, 0) >= 0 {
		return "", false
	}
	return p.Text, true
}

var (
	termName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$`)
	// What a client may set: how text looks, and where.
	envName = regexp.MustCompile(`^(LANG|LANGUAGE|LC_[A-Z0-9_]{1,60}|COLORTERM|TZ|NO_COLOR)$`)
)

// parseEnv reads a variable that a client may set.
func parseEnv(payload []byte) (name, value string, ok bool) {
	var p struct{ Name, Value string }
	if ssh.Unmarshal(payload, &p) != nil || !envName.MatchString(p.Name) || len(p.Value) > envBytesMax || strings.IndexByte(p.Value, 0) >= 0 {
		return "", "", false
	}
	return p.Name, p.Value, true
}

// parseTerminal reads a pty-req. A name of a terminal that is none is left out.
func parseTerminal(payload []byte) (term string, size driver.WindowSize, ok bool) {
	var p struct {
		Term                    string
		Cols, Rows, Width, High uint32
		Modes                   string
	}
	if ssh.Unmarshal(payload, &p) != nil {
		return "", size, false
	}
	if termName.MatchString(p.Term) {
		term = p.Term
	}
	return term, sizeOf(p.Cols, p.Rows), true
}

// parseSize reads a window-change.
func parseSize(payload []byte) (size driver.WindowSize, ok bool) {
	var p struct{ Cols, Rows, Width, High uint32 }
	if ssh.Unmarshal(payload, &p) != nil {
		return size, false
	}
	return sizeOf(p.Cols, p.Rows), true
}

func sizeOf(cols, rows uint32) driver.WindowSize {
	const most = 10_000
	return driver.WindowSize{Rows: uint16(min(rows, most)), Cols: uint16(min(cols, most))}
}

// parseTCP reads the goal of a direct-tcpip: network and address.
func parseTCP(payload []byte) (network, address string, ok bool) {
	var p struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if ssh.Unmarshal(payload, &p) != nil || !hostName.MatchString(p.Host) || p.Port < 1 || p.Port > 65535 {
		return "", "", false
	}
	return "tcp", net.JoinHostPort(p.Host, strconv.FormatUint(uint64(p.Port), 10)), true
}

// hostName bounds what a task is asked to look up; addresses of IPv6 have colons.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_.:%-]{1,253}$`)

// parseSocket reads the goal of a direct-streamlocal: a path of the task's view.
func parseSocket(payload []byte) (network, address string, ok bool) {
	var p struct {
		Path     string
		Reserved string
		Port     uint32
	}
	if ssh.Unmarshal(payload, &p) != nil || !strings.HasPrefix(p.Path, "/") || len(p.Path) > 107 || strings.IndexByte(p.Path, 0) >= 0 {
		return "", "", false
	}
	return "unix", p.Path, true
}
