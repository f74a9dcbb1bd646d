package consensus

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// hclogBridge writes what raft and raft-wal log through hclog into slog. The
// library calls an unreachable peer an error and each election step news; here
// a person reads Warn and Info, so levels are mapped by what they mean to one.
type hclogBridge struct {
	log  *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = (*hclogBridge)(nil)

func newHclog(log *slog.Logger, name string) hclog.Logger {
	return &hclogBridge{log: log.With("part", name), name: name}
}

// slogLevel maps a library record to the level at which a person wants it.
func slogLevel(level hclog.Level, msg string) slog.Level {
	switch {
	case level <= hclog.Debug:
		return slog.LevelDebug
	case level == hclog.Info:
		switch msg {
		case "election won", "Installed remote snapshot", "restored user snapshot":
			return slog.LevelInfo
		}
		return slog.LevelDebug
	case level == hclog.Warn:
		// Normal during each election and each catching up.
		for _, prefix := range []string{
			"rejecting ", "heartbeat timeout", "Election timeout", "failed to get previous log",
			"previous log term", "appendEntries rejected", "no known peers", "not part of stable",
		} {
			if strings.HasPrefix(msg, prefix) {
				return slog.LevelDebug
			}
		}
		return slog.LevelWarn
	default:
		// A peer that is down is told once by the health watch; here it would
		// be a line for each retry.
		for _, prefix := range []string{
			"failed to heartbeat", "failed to appendEntries", "failed to make requestVote",
			"failed to pipeline", "failed to accept connection", "failed to decode incoming command",
			"failed to flush response",
		} {
			if strings.HasPrefix(msg, prefix) {
				return slog.LevelDebug
			}
		}
		if strings.HasPrefix(msg, "peer has newer term") {
			return slog.LevelInfo
		}
		return slog.LevelError
	}
}

func (b *hclogBridge) Log(level hclog.Level, msg string, args ...any) {
	to := slogLevel(level, msg)
	if !b.log.Enabled(context.Background(), to) {
		return
	}
	for i, arg := range args {
		if format, ok := arg.(hclog.Format); ok && len(format) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(format[0]), format[1:]...)
		}
	}
	b.log.Log(context.Background(), to, msg, args...)
}

func (b *hclogBridge) Trace(msg string, args ...any) { b.Log(hclog.Trace, msg, args...) }
func (b *hclogBridge) Debug(msg string, args ...any) { b.Log(hclog.Debug, msg, args...) }
func (b *hclogBridge) Info(msg string, args ...any)  { b.Log(hclog.Info, msg, args...) }
func (b *hclogBridge) Warn(msg string, args ...any)  { b.Log(hclog.Warn, msg, args...) }
func (b *hclogBridge) Error(msg string, args ...any) { b.Log(hclog.Error, msg, args...) }

func (b *hclogBridge) enabled(level slog.Level) bool {
	return b.log.Enabled(context.Background(), level)
}

func (b *hclogBridge) IsTrace() bool { return b.enabled(slog.LevelDebug) }
func (b *hclogBridge) IsDebug() bool { return b.enabled(slog.LevelDebug) }
func (b *hclogBridge) IsInfo() bool  { return b.enabled(slog.LevelInfo) }
func (b *hclogBridge) IsWarn() bool  { return b.enabled(slog.LevelWarn) }
func (b *hclogBridge) IsError() bool { return b.enabled(slog.LevelError) }

func (b *hclogBridge) ImpliedArgs() []any { return b.args }

func (b *hclogBridge) With(args ...any) hclog.Logger {
	all := append(append([]any(nil), b.args...), args...)
	return &hclogBridge{log: b.log.With(args...), name: b.name, args: all}
}

func (b *hclogBridge) Name() string { return b.name }

func (b *hclogBridge) Named(name string) hclog.Logger {
	return &hclogBridge{log: b.log, name: b.name + "." + name, args: b.args}
}

func (b *hclogBridge) ResetNamed(name string) hclog.Logger {
	return &hclogBridge{log: b.log, name: name, args: b.args}
}

// SetLevel does nothing: the slog handler decides.
func (b *hclogBridge) SetLevel(hclog.Level) {}

func (b *hclogBridge) GetLevel() hclog.Level {
	switch {
	case b.enabled(slog.LevelDebug):
		return hclog.Debug
	case b.enabled(slog.LevelInfo):
		return hclog.Info
	case b.enabled(slog.LevelWarn):
		return hclog.Warn
	default:
		return hclog.Error
	}
}

func (b *hclogBridge) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(b.log.Handler(), slog.LevelInfo)
}

func (b *hclogBridge) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	return b.StandardLogger(opts).Writer()
}
