package supervisor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecord(t *testing.T) {
	const state = `{"state":{"version":1,"task_id":"a","marker":"a:x","boot_id":"b","supervisor":{"pid":100,"start_ticks":7},"started_ns":5}}` + "\n"
	const exit = `{"exit":{"version":1,"code":3,"started_ns":5,"finished_ns":6}}` + "\n"
	cases := []struct {
		name, text  string
		state, exit bool
		bad         bool
	}{
		{"nothing", "", false, false, false},
		{"running", "\n" + state, true, false, false},
		{"ended", "\n" + state + "\n" + exit, true, true, false},
		{"exit cut short", "\n" + state + "\n" + exit[:30], true, false, false},
		{"exit after one cut short", "\n" + state + "\n" + exit[:30] + "\n" + exit, true, true, false},
		{"exit without its end", state + strings.TrimSuffix(exit, "\n"), true, false, false},
		{"exit alone", exit, false, true, false},
		{"garbage between", state + "\x00\xff[]{}\n" + exit, true, true, false},
		{"from the future", `{"exit":{"version":2}}` + "\n", false, false, true},
		{"pid of init", strings.Replace(state, `"pid":100`, `"pid":1`, 1), false, false, true},
		{"negative command", strings.Replace(state, `"started_ns"`, `"command":{"pid":-9},"started_ns"`, 1), false, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			record, err := DecodeRecord([]byte(c.text))
			if errors.Is(err, ErrBadRecord) != c.bad || (err != nil) != c.bad {
				t.Fatalf("error is %v", err)
			}
			if (record.State != nil) != c.state || (record.Exit != nil) != c.exit {
				t.Errorf("record is %+v", record)
			}
		})
	}
}

func TestRecordFile(t *testing.T) {
	dir := t.TempDir()
	file, err := createRecord(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer file.close()
	if _, err := createRecord(dir, "a"); err == nil {
		t.Error("a record can be made twice")
	}
	state := &State{Version: 1, TaskID: "a", Marker: "a:x", Supervisor: Identity{PID: 44, StartTicks: 9}, Command: Identity{PID: 45, StartTicks: 10}}
	exit := &Exit{Version: 1, TaskID: "a", Code: 137, Signal: 9, FinishedNS: 12}
	if err := file.writeState(state); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRecord(dir, "a"); err != nil || got.Exit != nil {
		t.Errorf("record is %+v, %v", got, err)
	}
	if err := file.writeExit(exit); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Record{State: state, Exit: exit}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStartOfAnotherBuild(t *testing.T) {
	const spec = `"spec":{"task_id":"a","command":["x"],"dir":"/","log_dir":"/l","log_files":2,"log_bytes":1}}`
	if _, err := DecodeRequest([]byte(`{"op":"start","protocol":4,` + spec)); err != nil {
		t.Error(err)
	}
	if _, err := DecodeRequest([]byte(`{"op":"start","protocol":99,` + spec)); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("error is %v", err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte("\n{\"state\":{\"version\":1,\"supervisor\":{\"pid\":2}}}\n"))
	f.Add([]byte("{\"exit\":{\"version\":1}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := DecodeRecord(data)
		if err != nil {
			return
		}
		// Whatever is accepted must never lead to signals for init, for a
		// group, or for everybody.
		if s := record.State; s != nil && (s.Supervisor.PID < 2 || s.Command.PID < 0 || s.Command.PID == 1) {
			t.Errorf("accepted %+v", s)
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"op":"start","protocol":4,"spec":{"task_id":"a","command":["x"],"dir":"/","log_dir":"/l","log_files":2,"log_bytes":1}}`))
	f.Add([]byte(`{"op":"stop","signal":15,"grace_ms":1000}`))
	f.Add([]byte(`{"op":"exec","exec":{"command":["sh"],"tty":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		request, err := DecodeRequest(data)
		if err != nil {
			return
		}
		if request.Op == OpStart && request.Spec.Validate() != nil {
			t.Errorf("accepted a bad spec: %s", data)
		}
		again, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeRequest(again); err != nil {
			t.Errorf("%s is accepted, %s is not: %v", data, again, err)
		}
	})
}
