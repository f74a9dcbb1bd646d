package store

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzDecode: a damaged record is an error, never a state made up.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"{}", `{"id":"a"}`, "null", "[", `{"assignment":{"job":null}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decode(text); err == nil && crc32.ChecksumIEEE(text[4:]) != binary.BigEndian.Uint32(text) {
			t.Error("a record with a wrong checksum is taken")
		}
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text))
		_, _ = decode(append(sum, text...)) // must only end
	})
}

// FuzzParseIdentity: an identity that is taken is a legal one.
func FuzzParseIdentity(f *testing.F) {
	for _, text := range []string{`{"node_id":"0a-1"}`, `{"node_id":"../x"}`, `{"node_id":""}`, "[]", "{"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if identity, err := parseIdentity(text); err == nil && !validID(identity.NodeID) {
			t.Errorf("%q is a node's id", identity.NodeID)
		}
	})
}
