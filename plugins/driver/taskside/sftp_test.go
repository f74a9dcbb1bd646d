//go:build linux

package taskside

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// request builds a packet of words: uint32, uint64 and strings.
func request(kind byte, words ...any) []byte {
	body := []byte{kind}
	for _, word := range words {
		switch word := word.(type) {
		case int:
			body = binary.BigEndian.AppendUint32(body, uint32(word))
		case uint64:
			body = binary.BigEndian.AppendUint64(body, word)
		case string:
			body = append(body, binaryString(word)...)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// converse sends packets, one after the other, and returns the answers' types, with
// the code of a status after a dot.
func converse(t *testing.T, packets ...[]byte) (answers []string, err error) {
	t.Helper()
	var in, out bytes.Buffer
	in.Write(request(packetInit, 3))
	for _, packet := range packets {
		in.Write(packet)
	}
	err = ServeFiles(struct {
		io.Reader
		io.Writer
	}{&in, &out})
	for data := out.Bytes(); len(data) > 4; {
		n := binary.BigEndian.Uint32(data)
		packet := data[4 : 4+n]
		data = data[4+n:]
		name := map[byte]string{packetVersion: "version", packetStatus: "status", packetHandle: "handle", packetData: "data", packetName: "name", packetAttrs: "attrs", packetReplied: "reply"}[packet[0]]
		if packet[0] == packetStatus {
			name += "." + string(rune('0'+binary.BigEndian.Uint32(packet[5:])))
		}
		answers = append(answers, name)
	}
	return answers, err
}

func TestFilesAreServed(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("read-only", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := converse(t,
		request(packetOpen, 1, "new", openWrite|openCreate|openExcl, attrMode, 0o640),
		request(packetWrite, 2, "1", uint64(3), "content"),
		request(packetFsetstat, 3, "1", attrTimes, 1000, 2000),
		request(packetClose, 4, "1"),
		request(packetOpen, 5, "new", openRead, 0),
		request(packetRead, 6, "2", uint64(3), 100),
		request(packetRead, 7, "2", uint64(10), 100),
		request(packetOpen, 8, "new", openWrite|openCreate|openExcl, 0),
		request(packetRename, 9, "new", "read-only"),
		request(packetExtended, 10, "posix-rename@openssh.com", "new", "read-only"),
		request(packetSymlink, 11, "read-only", "link"),
		request(packetReadlink, 12, "link"),
		request(packetMkdir, 13, "dir", 0),
		request(packetOpendir, 14, "."),
		request(packetReaddir, 15, "3"),
		request(packetReaddir, 16, "3"),
		request(packetRemove, 17, "dir"),
		request(packetRmdir, 18, "dir"),
		request(packetRealpath, 19, "nowhere/yet"),
		request(packetExtended, 20, "limits@openssh.com"),
		request(packetExtended, 21, "no such thing"),
	)
	want := "version handle status.0 status.0 status.0 handle data status.1 status.4 status.4 status.0 status.0 name status.0 handle name status.1 status.4 status.0 name reply status.8"
	if text := strings.Join(got, " "); text != want || err != nil {
		t.Errorf("the answers are\n%s, want\n%s; %v", text, want, err)
	}
	content, err := os.ReadFile("read-only")
	info, statErr := os.Stat("read-only")
	if err != nil || statErr != nil || string(content) != "\x00\x00\x00content" || info.Mode().Perm() != 0o640 || info.ModTime().Unix() != 2000 {
		t.Errorf("written: %q, %v, %v %v", content, info, err, statErr)
	}
}

func TestHostilePackets(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, packet := range map[string][]byte{
		"no length":     {0},
		"empty":         {0, 0, 0, 0},
		"too large":     binary.BigEndian.AppendUint32(nil, packetMax+1),
		"broken off":    request(packetStat, 1, "x")[:8],
		"without an id": request(packetStat),
	} {
		if got, err := converse(t, packet); err == nil {
			t.Errorf("%s: answered by %v", name, got)
		}
	}
	var many [][]byte
	for i := range handlesMax + 1 {
		many = append(many, request(packetOpendir, i, "."))
	}
	got, err := converse(t, many...)
	if err != nil || got[len(got)-1] != "status.4" || got[len(got)-2] != "handle" {
		t.Errorf("too many files are open: %v, %v", got[len(got)-2:], err)
	}
	for name, packet := range map[string][]byte{
		"NUL":              request(packetRemove, 1, "a\x00b"),
		"long":             request(packetRemove, 1, strings.Repeat("a", pathMax+1)),
		"handle":           request(packetRead, 1, "7", uint64(0), 1),
		"far offset":       request(packetWrite, 1, "7", uint64(1<<63), "x"),
		"length that lies": append(request(packetRemove, 1)[:0:0], 0, 0, 0, 9, packetRemove, 0, 0, 0, 1, 255, 255, 255, 255),
		"many attributes":  request(packetSetstat, 1, "x", attrExtended, 1<<30),
		"no directory":     request(packetReaddir, 1, "1"),
	} {
		if got, err := converse(t, packet); err != nil || len(got) != 2 || got[1] != "status.5" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("hostile packets left %v, %v", left, err)
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add(request(packetSetstat, 1, "x", attrSize|attrOwner|attrMode|attrTimes, uint64(1), 1, 1, 0o644, 1, 1)[5:])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{rest: data}
		r.uint32()
		path, a := r.path(), r.attributes()
		if !r.bad && (path == "" || strings.ContainsRune(path, 0)) {
			t.Errorf("path %q with %+v", path, a)
		}
	})
}
