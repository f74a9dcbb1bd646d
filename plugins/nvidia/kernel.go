package nvidia

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nomadlike/plugins/device/pcie"
)

// kernelLineMax bounds one record of the kernel's messages; the kernel's own
// limit is below it.
const kernelLineMax = 16 << 10

// KernelRecord reads one record of /dev/kmsg: "priority,number,microseconds,
// flags;message", with lines of properties after it. The time is since the
// machine started.
func KernelRecord(record string) (at time.Duration, message string, ok bool) {
	head, message, found := strings.Cut(record, ";")
	if !found {
		return 0, "", false
	}
	message, _, _ = strings.Cut(message, "\n")
	fields := strings.Split(head, ",")
	if len(fields) < 3 {
		return 0, "", false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || micros < 0 || micros > int64(time.Duration(1<<63-1)/time.Microsecond) {
		return 0, "", false
	}
	return time.Duration(micros) * time.Microsecond, message, true
}

// KernelXID reads what the driver writes about an error, for instance
//
//	NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
//	NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 31, pid=77, name=python, Ch 00000008, …
//
// The Happening has no time yet.
func KernelXID(message string) (Happening, bool) {
	_, rest, found := strings.Cut(message, "NVRM: Xid (")
	if !found {
		return Happening{}, false
	}
	where, rest, found := strings.Cut(rest, "): ")
	if !found {
		return Happening{}, false
	}
	e := Happening{GPU: -1, Compute: -1, Source: FromKernel}
	for _, word := range strings.Fields(where) {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "PCI":
			e.Bus = kernelBus(value)
		case "GPU-I":
			e.GPU = smallNumber(value)
		case "GPU-CI":
			e.Compute = smallNumber(value)
		}
	}
	digits, rest, _ := strings.Cut(rest, ",")
	number, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil || number <= 0 || number > 1<<20 || !pcie.Valid(e.Bus) {
		return Happening{}, false
	}
	e.XID = number
	for {
		word, after, more := strings.Cut(strings.TrimLeft(rest, " "), ",")
		name, value, isPair := strings.Cut(word, "=")
		if !isPair || name != "pid" && name != "name" {
			break
		}
		value = strings.Trim(value, "'")
		if pid, err := strconv.Atoi(value); name == "pid" && err == nil && pid > 0 {
			e.PID = pid
		} else if name == "name" && value != "<unknown>" {
			e.Process = value
		}
		if rest = after; !more {
			break
		}
	}
	e.Text = strings.TrimSpace(rest)
	return e, true
}

// kernelBus completes the driver's "0000:3b:00", which has no function.
func kernelBus(text string) string {
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return pcie.Normal(text)
}

// smallNumber reads a number of an instance; -1: none.
func smallNumber(text string) int {
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return -1
	}
	return int(number)
}

// kernelLog follows the kernel's messages.
type kernelLog struct {
	file *os.File
}

// openKernelLog opens the messages; those of the past come first.
func openKernelLog(path string) (*kernelLog, error) {
	// Non-blocking, so that reads wait in the runtime and Close ends them.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open kernel messages: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	return &kernelLog{file: os.NewFile(uintptr(fd), path)}, nil
}

// follow hands on every error that the driver reports, with its time, until
// ctx ends or the messages do. booted is when the machine started.
func (l *kernelLog) follow(ctx context.Context, booted time.Time, tell func(Happening)) error {
	stop := context.AfterFunc(ctx, func() { l.file.Close() })
	defer stop()
	defer l.file.Close()
	buffer := make([]byte, kernelLineMax)
	var pending []byte // of a source that does not give one record at a time
	for {
		n, err := l.file.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, syscall.EPIPE):
			continue // the kernel has overwritten what was not read yet
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read kernel messages: %w", err)
		}
		pending = append(pending, buffer[:n]...)
		for {
			line, rest, whole := bytes.Cut(pending, []byte("\n"))
			if !whole {
				break
			}
			pending = rest
			at, message, ok := KernelRecord(string(line))
			if !ok {
				continue // a property of the record before
			}
			if e, is := KernelXID(message); is {
				e.At, e.Uptime = booted.Add(at), at
				tell(e)
			}
		}
		if len(pending) > kernelLineMax {
			pending = nil
		}
		pending = append([]byte(nil), pending...) // let the read part go
	}
}
