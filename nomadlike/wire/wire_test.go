package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

func TestCommandRoundTripIsCanonical(t *testing.T) {
	body := &structs.JobStop{JobID: "j1", Reason: "wrong data"}
	first, err := EncodeCommand(structs.CommandJobStop, 42, "li", body)
	if err != nil {
		t.Fatal(err)
	}
	command, err := DecodeCommand(first)
	if err != nil {
		t.Fatal(err)
	}
	if command.Kind != structs.CommandJobStop || command.Now != 42 || command.By != "li" {
		t.Fatalf("envelope changed on the way: %+v", command)
	}
	got := new(structs.JobStop)
	if err := Unmarshal(command.Body, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(body, got); diff != "" {
		t.Fatal(diff)
	}
	again, err := EncodeCommand(command.Kind, command.Now, command.By, got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Fatal("the same command has two encodings")
	}
}

func TestMapOrderDoesNotShow(t *testing.T) {
	first, err := Marshal(map[string]int{"b": 1, "a": 2, "c": 3})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := Marshal(map[string]int{"c": 3, "a": 2, "b": 1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("map order shows in the bytes")
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	cases := map[string][]byte{
		"empty":          {},
		"truncated":      {0xa1, 0x61},
		"trailing bytes": {0x01, 0x02},
		"duplicate key":  {0xa2, 0x61, 'k', 0x01, 0x61, 'k', 0x02},
		"indefinite":     {0x9f, 0x01, 0xff},
		"tag":            {0xc1, 0x01},
		"deep nesting":   bytes.Repeat([]byte{0x81}, 1000),
		"huge array":     {0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := Unmarshal(data, &v); err == nil {
				t.Fatalf("accepted as %v", v)
			}
		})
	}
}

func FuzzDecodeCommand(f *testing.F) {
	seed, err := EncodeCommand(structs.CommandJobDelete, 7, "li", &structs.JobDelete{JobID: "j"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0xa1})
	f.Fuzz(func(t *testing.T, data []byte) {
		command, err := DecodeCommand(data)
		if err != nil {
			return
		}
		again, err := Marshal(command)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		second, err := DecodeCommand(again)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if diff := cmp.Diff(command, second); diff != "" {
			t.Fatal(diff)
		}
	})
}
