package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/plugins/driver/taskside"
)

// Limit is one of the limits of each of the task's processes. The supervisor
// itself keeps its own, since with those of some tasks it could not work.
type Limit struct {
	Resource int   `json:"resource"` // number of the kernel's
	Soft     int64 `json:"soft"`     // -1: without a limit
	Hard     int64 `json:"hard"`
}

const (
	// limitsArgument makes a supervisor's program the first of a task's
	// process: it takes on limits and executes the command. A process can have
	// limits set only by itself or, too late, from outside.
	limitsArgument = "limits"

	limitsMost   = 16
	resourceMost = 15

	codeNotExecuted = 126
)

func validLimits(limits []Limit) error {
	if len(limits) > limitsMost {
		return errors.New("spec: too many limits")
	}
	for _, limit := range limits {
		if limit.Resource < 0 || limit.Resource > resourceMost || limit.Soft < -1 || limit.Hard < -1 ||
			limit.Hard >= 0 && (limit.Soft < 0 || limit.Soft > limit.Hard) {
			return fmt.Errorf("spec: bad limit %+v", limit)
		}
	}
	return nil
}

// limited returns path and arguments of a program with limits: this one, in
// another role. It is found where no view of the task can hide it.
func limited(limits []Limit, path string, command []string) (string, []string) {
	if len(limits) == 0 {
		return path, command
	}
	var words []string
	for _, limit := range limits {
		words = append(words, fmt.Sprintf("%d:%d:%d", limit.Resource, limit.Soft, limit.Hard))
	}
	argv := append(append([]string(nil), os.Args...), limitsArgument, strings.Join(words, ","), path)
	return "/proc/self/exe", append(argv, command...)
}

// sideCommand is this program in a role of package taskside, found where no view of
// the task can hide it.
func sideCommand(words []string) []string {
	command := append([]string{"/proc/self/exe"}, os.Args[1:]...)
	return append(append(command, taskside.Argument), words...)
}

// ownLimits has children inherit the limits for files that this process has.
// Package syscall sets for them those it was started with otherwise, which the
// agent may have raised since.
func ownLimits() error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read limits: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("keep limits: %w", err)
	}
	return nil
}

// runLimited takes on limits, the first argument, and executes a program, the
// second, with the others for its own. It returns only when it cannot.
func runLimited(args []string) int {
	err := errors.New("limits: want limits, a path and a command")
	if len(args) >= 3 {
		if err = takeLimits(args[0]); err == nil {
			err = syscall.Exec(args[1], args[2:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "nomadlike: start the command with its limits:", err)
	return codeNotExecuted
}

func takeLimits(text string) error {
	limits, err := decodeLimits(text)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		// What is without a limit is all ones for the kernel too.
		if err := syscall.Setrlimit(limit.Resource, &syscall.Rlimit{Cur: uint64(limit.Soft), Max: uint64(limit.Hard)}); err != nil {
			return fmt.Errorf("limit %d: %w", limit.Resource, err)
		}
	}
	return nil
}

func decodeLimits(text string) ([]Limit, error) {
	var limits []Limit
	for word := range strings.SplitSeq(text, ",") {
		parts := strings.Split(word, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("bad limit %q", word)
		}
		resource, err := strconv.Atoi(parts[0])
		if err != nil {
			return nil, fmt.Errorf("bad limit %q", word)
		}
		var values [2]int64
		for i, part := range parts[1:] {
			if values[i], err = strconv.ParseInt(part, 10, 64); err != nil {
				return nil, fmt.Errorf("bad limit %q", word)
			}
		}
		limits = append(limits, Limit{Resource: resource, Soft: values[0], Hard: values[1]})
	}
	return limits, validLimits(limits)
}
