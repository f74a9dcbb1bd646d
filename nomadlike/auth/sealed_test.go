package auth

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"nomadlike/nomadlike/structs"
)

// What is sealed opens for its own scope, name and version alone, and with its own
// key alone; any changed byte is found.
func TestSealedValuesAreBound(t *testing.T) {
	value := []byte("hunter2-and-more")
	key, other := NewSealKey(), NewSealKey()
	secret := structs.Secret{Project: "vision", Name: "wandb", Version: 3}
	sealed := key.Seal(value, secret.Binding())
	if bytes.Contains(sealed, value) {
		t.Fatal("the sealed value holds the value")
	}
	if got, err := key.Open(sealed, secret.Binding()); err != nil || !bytes.Equal(got, value) {
		t.Fatalf("open: %q, %v", got, err)
	}
	if extra := len(sealed) - len(value); extra > structs.SealedOverhead {
		t.Errorf("sealing adds %d bytes, more than the %d that the state allows", extra, structs.SealedOverhead)
	}
	for name, elsewhere := range map[string]structs.Secret{
		"another project":    {Project: "speech", Name: "wandb", Version: 3},
		"a user of its name": {User: "vision", Name: "wandb", Version: 3},
		"another name":       {Project: "vision", Name: "wandb2", Version: 3},
		"another version":    {Project: "vision", Name: "wandb", Version: 4},
		"parts moved":        {Project: "visionwandb", Name: "", Version: 3},
	} {
		if _, err := key.Open(sealed, elsewhere.Binding()); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: opened, or %v", name, err)
		}
	}
	if _, err := other.Open(sealed, secret.Binding()); !errors.Is(err, ErrSealed) {
		t.Errorf("another key: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := key.Open(changed, secret.Binding()); !errors.Is(err, ErrSealed) {
			t.Fatalf("byte %d changed: opened, or %v", i, err)
		}
	}
	if again := key.Seal(value, secret.Binding()); bytes.Equal(again, sealed) {
		t.Error("the same value sealed twice is the same")
	}
}

func TestDataKeysAreSealedWithTheServersKey(t *testing.T) {
	server, data := NewSealKey(), NewSealKey()
	record := SealDataKey(server, data, "d1")
	if bytes.Contains(record.Sealed, data.Bytes()) || record.ServerKey != server.Fingerprint() {
		t.Fatalf("record %+v", record)
	}
	got, err := OpenDataKey(server, &record)
	if err != nil || !bytes.Equal(got.Bytes(), data.Bytes()) {
		t.Fatalf("open: %v, %v", got, err)
	}
	record.ID = "d2"
	if _, err := OpenDataKey(server, &record); !errors.Is(err, ErrSealed) {
		t.Errorf("a record under another id: %v", err)
	}
	if _, err := OpenDataKey(NewSealKey(), &record); !errors.Is(err, ErrSealed) {
		t.Errorf("another key of the servers: %v", err)
	}
}

// Keys and values print as nothing, however they are printed.
func TestKeysDoNotPrint(t *testing.T) {
	key := NewSealKey()
	value := structs.SecretValue{Value: structs.SecretBytes("hunter2")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, key) + fmt.Sprintf(verb, value) + fmt.Sprintf(verb, &value); bytes.Contains([]byte(text), []byte("hunter2")) || bytes.Contains([]byte(text), key.Bytes()) {
			t.Errorf("%s prints %q", verb, text)
		}
	}
}
