package agent

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// A gossip key that is read is one of 32 bytes, and what is written of it is
// read as the same key; of another length nothing is made.
func FuzzGossipKey(f *testing.F) {
	key := bytes.Repeat([]byte{7}, gossipKeySize)
	for _, seed := range []string{
		base64.StdEncoding.EncodeToString(key), base64.StdEncoding.EncodeToString(key[1:]), base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, gossipKeySize)),
		base64.RawStdEncoding.EncodeToString(key), string(key), "", "====", "\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseGossipKey(text)
		if err != nil {
			return
		}
		written := base64.StdEncoding.EncodeToString(key)
		again, err := parseGossipKey(written)
		if err != nil || len(key) != gossipKeySize || !bytes.Equal(key, again) {
			t.Fatalf("%q is read as %x, and written as %q, which gives %x, %v", text, key, written, again, err)
		}
	})
}
