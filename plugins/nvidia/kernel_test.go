package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKernelXID(t *testing.T) {
	for message, want := range map[string]string{
		"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.":               "0000:3b:00.0 79 -1/-1 0 \"\" \"GPU has fallen off the bus.\"",
		"NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, Ch 00000008, intr 10000000. MMU Fault":              "0000:3b:00.0 31 -1/-1 1234 \"python3\" \"Ch 00000008, intr 10000000. MMU Fault\"",
		"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=77, name=python, Ch 1":                               "0000:01:00.0 31 5/0 77 \"python\" \"Ch 1\"",
		"NVRM: Xid (PCI:0000:C1:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": "0000:c1:00.0 154 -1/-1 0 \"\" \"GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\"",
		"[ 12.3] NVRM: Xid (PCI:0000:3b:00): 48, pid=9":                                                              "0000:3b:00.0 48 -1/-1 9 \"\" \"\"",
		"NVRM: Xid (PCI:0000:3b:00): 13, pid='77', name=my name, Graphics SM Warp Exception on (GPC 0, TPC 1)":       "0000:3b:00.0 13 -1/-1 77 \"my name\" \"Graphics SM Warp Exception on (GPC 0, TPC 1)\"",
		"NVRM: GPU at PCI:0000:3b:00: GPU-e1f9":                                                                      "",
		"NVRM: Xid (PCI:nonsense): 79, x":                                                                            "",
		"NVRM: Xid (PCI:0000:3b:00): x":                                                                              "",
		"NVRM: Xid (PCI:0000:3b:00): -3":                                                                             "",
		"something else":                                                                                             "",
	} {
		e, ok := KernelXID(message)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %d %d/%d %d %q %q", e.Bus, e.XID, e.GPU, e.Compute, e.PID, e.Process, e.Text)
		}
		if got != want {
			t.Errorf("%s:\n  got  %s\n  want %s", message, got, want)
		}
	}
}

func FuzzKernel(f *testing.F) {
	f.Add("4,1234,56789012,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus.")
	f.Add("6,1,2;x\n SUBSYSTEM=pci")
	f.Add("4,1,9223372036854775807,-;NVRM: Xid (PCI:0000:3b:00): 99999999999")
	f.Fuzz(func(t *testing.T, record string) {
		at, message, ok := KernelRecord(record)
		if !ok {
			return
		}
		if at < 0 || strings.Contains(message, "\n") {
			t.Errorf("record at %s: %q", at, message)
		}
		if e, ok := KernelXID(message); ok && (e.XID <= 0 || e.PID < 0 || e.Bus == "" || e.GPU < -1) {
			t.Errorf("event %+v", e)
		}
	})
}

// TestFollow reads a pipe, as the kernel's messages come while one listens.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openKernelLog(path)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan Happening, 10)
	done := make(chan error, 1)
	booted := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	go func() { done <- log.follow(ctx, booted, func(e Happening) { heard <- e }) }()
	if _, err := writer.WriteString("6,1,1000000,-;usb 1-1: new device\n SUBSYSTEM=usb\n4,2,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=5, name=x, GPU has "); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("fallen off the bus.\n4,3,3000000,-;" + strings.Repeat("x", 3*kernelLineMax) + "\n4,4,4000000,-;NVRM: Xid (PCI:0000:3b:00): 48\n"); err != nil {
		t.Fatal(err)
	}
	first, second := <-heard, <-heard
	if first.XID != 79 || !first.At.Equal(booted.Add(2*time.Second)) || first.Uptime != 2*time.Second || second.XID != 48 {
		t.Errorf("heard %+v and %+v", first, second)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("follow gives %v", err)
	}
	writer.Close()
	if _, err := openKernelLog(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing file can be followed")
	}
}
