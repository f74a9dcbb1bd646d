package device

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Bound makes a snapshot of another process fit to be stored and shown: what
// is malformed or above the limits is left out, and told in words. It changes
// s in place.
func (s *Snapshot) Bound() []string {
	var dropped []string
	if over := len(s.Devices) - DevicesMax; over > 0 {
		dropped = append(dropped, fmt.Sprintf("%d devices above %d", over, DevicesMax))
		s.Devices = s.Devices[:DevicesMax]
	}
	seen := make(map[string]bool, len(s.Devices))
	kept := s.Devices[:0]
	for _, d := range s.Devices {
		if problem := deviceProblem(&d); problem != "" || seen[d.ID] {
			if problem == "" {
				problem = "it is there twice"
			}
			dropped = append(dropped, fmt.Sprintf("device %.80q: %s", d.ID, problem))
			continue
		}
		seen[d.ID] = true
		d.Attrs, d.Health = boundTexts(d.Attrs, AttrsMax), boundReason(d.Health)
		kept = append(kept, d)
	}
	s.Devices = kept
	s.Absent, s.Blind = boundReason(s.Absent), boundReason(s.Blind)
	s.Attributes = boundTexts(s.Attributes, AttrsMax)
	if over := len(s.Events) - EventsMax; over > 0 {
		dropped = append(dropped, fmt.Sprintf("%d events above %d", over, EventsMax))
		s.Events = s.Events[over:] // the newest count
	}
	for i := range s.Events {
		e := &s.Events[i]
		e.DeviceID, e.Code, e.Reason = boundText(e.DeviceID), boundText(e.Code), boundReason(e.Reason)
	}
	return dropped
}

// deviceProblem says why a device cannot be taken; "" when it can.
func deviceProblem(d *structs.Device) string {
	vendor, what, both := strings.Cut(d.Kind, "/")
	switch {
	case !ValidID(d.ID):
		return "its id is not 1 to 128 letters, digits and .:_-/ signs"
	case !both || structs.NameProblem(vendor) != "" || structs.NameProblem(what) != "":
		return fmt.Sprintf("its kind %.80q is not vendor/type", d.Kind)
	case d.Model != boundText(d.Model) || d.PCIBus != boundText(d.PCIBus) || d.LinkGroup != boundText(d.LinkGroup) || d.Driver != boundText(d.Driver):
		return "its texts are too long or contain control characters"
	case d.Memory < 0 || d.Index < 0:
		return "its memory or index is negative"
	}
	return ""
}

// idLengthMax bounds the id of a device.
const idLengthMax = 128

// ValidID reports whether id may name a device.
func ValidID(id string) bool {
	if id == "" || len(id) > idLengthMax || strings.Contains(id, "..") || id[0] == '/' || id[0] == '-' {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune(".:_-/", rune(c)) {
			return false
		}
	}
	return true
}

// Bound checks a reservation of another process. Unlike a snapshot it is
// refused as a whole: a task with half of its devices would be no use.
func (r *Reservation) Bound() error {
	if len(r.Nodes) > ReservationsMax || len(r.Mounts) > ReservationsMax || len(r.CDI) > ReservationsMax || len(r.Env)+len(r.ContainerEnv) > EnvMax {
		return fmt.Errorf("reservation is above its limits: %d nodes, %d mounts, %d CDI names, %d variables", len(r.Nodes), len(r.Mounts), len(r.CDI), len(r.Env))
	}
	for _, n := range r.Nodes {
		if !cleanPath(n.HostPath) || !strings.HasPrefix(n.HostPath, "/dev/") || !cleanPath(n.TaskPath) || strings.Trim(n.Access, "rwm") != "" {
			return fmt.Errorf("reservation has a bad device node: %q at %q with %q", n.HostPath, n.TaskPath, n.Access)
		}
	}
	for _, m := range r.Mounts {
		if !cleanPath(m.HostPath) || !cleanPath(m.TaskPath) || m.TaskPath == "/" || m.HostPath == "/" {
			return fmt.Errorf("reservation has a bad mount: %q at %q", m.HostPath, m.TaskPath)
		}
	}
	if err := checkEnv(r.Env); err != nil {
		return err
	}
	if err := checkEnv(r.ContainerEnv); err != nil {
		return err
	}
	if r.Container != nil {
		return checkEnv(r.Container.Env)
	}
	return nil
}

func checkEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00\n") || len(name) > TextMax || strings.ContainsRune(value, 0) || len(value) > envValueMax {
			return fmt.Errorf("reservation has a bad variable %.80q", name)
		}
	}
	return nil
}

// envValueMax leaves room for the identities of DevicesMax devices.
const envValueMax = 128 << 10

func cleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsRune(path, 0) && len(path) < 4096
}

// Bound cuts a measurement of another process, in place.
func (s *Stats) Bound() {
	s.Devices = s.Devices[:min(len(s.Devices), DevicesMax)]
	for i := range s.Devices {
		d := &s.Devices[i]
		d.Processes = BoundProcesses(d.Processes)
		if len(d.Gauges) > GaugesMax {
			d.Gauges = nil
		}
	}
}

// Bound cuts a report of another process, in place.
func (r *ReapReport) Bound() {
	r.Devices = r.Devices[:min(len(r.Devices), DevicesMax)]
	for i := range r.Devices {
		d := &r.Devices[i]
		d.Killed, d.Unkillable, d.Foreign, d.Live = BoundProcesses(d.Killed), BoundProcesses(d.Unkillable), BoundProcesses(d.Foreign), BoundProcesses(d.Live)
		d.Reason = boundReason(d.Reason)
	}
}

// BoundProcesses cuts a list of processes and their names.
func BoundProcesses(processes []Process) []Process {
	processes = processes[:min(len(processes), ProcessesMax)]
	for i := range processes {
		processes[i].Name = boundText(processes[i].Name)
	}
	return processes
}

func boundReason(reason *structs.Reason) *structs.Reason {
	if reason == nil {
		return nil
	}
	return &structs.Reason{ID: boundText(reason.ID), Params: boundTexts(reason.Params, AttrsMax)}
}

// boundTexts keeps the first entries, by name, of a map.
func boundTexts(texts map[string]string, most int) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	bounded := make(map[string]string, len(texts))
	for _, key := range sortedKeys(texts) {
		if len(bounded) == most {
			break
		}
		bounded[boundText(key)] = boundText(texts[key])
	}
	return bounded
}

// boundText cuts a text at TextMax and leaves control characters out.
func boundText(text string) string {
	clean := true
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if !clean {
		text = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == utf8.RuneError {
				return -1
			}
			return r
		}, text)
	}
	if len(text) > TextMax {
		cut := TextMax
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return text
}
