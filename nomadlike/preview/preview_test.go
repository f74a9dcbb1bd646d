package preview

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

func pictureOf(t *testing.T, encode func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := encode(&out, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOf: what a file is its bytes say, and not its name.
func TestOf(t *testing.T) {
	asPNG := pictureOf(t, func(out *bytes.Buffer, m image.Image) error { return png.Encode(out, m) })
	asJPEG := pictureOf(t, func(out *bytes.Buffer, m image.Image) error { return jpeg.Encode(out, m, nil) })
	bomb := slices.Clone(asPNG)
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[20:], 60_000)
	checksum(bomb)
	webp := []byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x13\x00\x00")
	chinese, err := simplifiedchinese.GB18030.NewEncoder().String("类别,数量\n猫,12\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, head string
		size       int64 // 0: that of head
		want       Shown
	}{
		{name: "a.png", head: string(asPNG), want: Shown{Kind: KindImage, Media: "image/png", Width: 30, Height: 20}},
		{name: "a.txt", head: string(asJPEG), want: Shown{Kind: KindImage, Media: "image/jpeg", Width: 30, Height: 20}},
		{name: "a.webp", head: string(webp), want: Shown{Kind: KindImage, Media: "image/webp", Width: 30, Height: 20}},
		{name: "bomb.png", head: string(bomb), want: Shown{Kind: KindNone, Media: "image/png", Width: 60_000, Height: 60_000, Why: "too_large"}},
		{name: "large.png", head: string(asPNG), size: ImageMax + 1, want: Shown{Kind: KindNone, Media: "image/png", Width: 30, Height: 20, Why: "too_large"}},
		{name: "a.svg", head: "<svg onload=alert(1)>", want: Shown{Kind: KindText, Text: "<svg onload=alert(1)>"}},
		{name: "a.html", head: "<script>", want: Shown{Kind: KindText, Text: "<script>"}},
		{name: "empty", want: Shown{Kind: KindNone, Why: "empty"}},
		{name: "a.bin", head: "\x7fELF\x02\x01\x00", want: Shown{Kind: KindNone, Why: "binary"}},
		{name: "a.bin", head: "\xff\x01\xf0\x80\x02", want: Shown{Kind: KindNone, Why: "binary"}},
		{name: "cut", head: "日本"[:5], size: 6, want: Shown{Kind: KindText, Text: "日", More: true}},
		{name: "bom.txt", head: "\xef\xbb\xbfa", want: Shown{Kind: KindText, Text: "a"}},
		{name: "wide.txt", head: "\xff\xfea\x00b\x00", want: Shown{Kind: KindText, Text: "ab", Encoding: "utf-16"}},
		{name: "a.csv", head: "x,y\n1,\"a,b\"\n2\n", want: Shown{Kind: KindTable, Columns: []TableColumn{{Name: "x"}, {Name: "y"}}, Rows: [][]string{{"1", "a,b"}, {"2"}}}},
		{name: "A.CSV", head: "x;y\n1,5;2\n", want: Shown{Kind: KindTable, Columns: []TableColumn{{Name: "x"}, {Name: "y"}}, Rows: [][]string{{"1,5", "2"}}}},
		{name: "a.tsv", head: "x\ty\n1\t2\n3\t4", size: 100, want: Shown{Kind: KindTable, Columns: []TableColumn{{Name: "x"}, {Name: "y"}}, Rows: [][]string{{"1", "2"}}, More: true}},
		{name: "one.csv", head: "just words\n", want: Shown{Kind: KindText, Text: "just words\n"}},
		{name: "labels.csv", head: chinese, want: Shown{Kind: KindTable, Encoding: "gb18030", Columns: []TableColumn{{Name: "类别"}, {Name: "数量"}}, Rows: [][]string{{"猫", "12"}}}},
	} {
		size := c.size
		if size == 0 {
			size = int64(len(c.head))
		}
		if got := Of(c.name, []byte(c.head), size); !same(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func same(a, b Shown) bool {
	rows := slices.EqualFunc(a.Rows, b.Rows, slices.Equal[[]string])
	columns := slices.Equal(a.Columns, b.Columns)
	a.Rows, b.Rows, a.Columns, b.Columns = nil, nil, nil, nil
	return rows && columns && a.Kind == b.Kind && a.Media == b.Media && a.Width == b.Width && a.Height == b.Height &&
		a.Text == b.Text && a.Encoding == b.Encoding && a.Count == b.Count && a.More == b.More && a.Why == b.Why
}

// checksum mends that of a PNG's first chunk.
func checksum(data []byte) { binary.BigEndian.PutUint32(data[29:], crc(data[12:29])) }

func crc(data []byte) uint32 {
	sum := ^uint32(0)
	for _, b := range data {
		sum ^= uint32(b)
		for range 8 {
			sum = sum>>1 ^ 0xedb88320*(sum&1)
		}
	}
	return ^sum
}

// FuzzOf: whatever a file is, what is shown of it is within the bounds.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2", "\xff\xfea\x00", "GIF89a\x01\x00\x01\x00\x00\x00\x00", "日本", "RIFF....WEBPVP8L..........................", strings.Repeat("x", TextMax+1)} {
		f.Add("a.csv", []byte(seed), true)
		f.Add("a", []byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, name string, head []byte, cut bool) {
		head = head[:min(len(head), Head)]
		size := int64(len(head))
		if cut {
			size++
		}
		shown := Of(name, head, size)
		if len(shown.Rows) > RowsMax || len(shown.Columns) > ColumnsMax || len(shown.Text) > TextMax || !utf8.ValidString(shown.Text) {
			t.Errorf("out of bounds: %d rows, %d columns, %d bytes", len(shown.Rows), len(shown.Columns), len(shown.Text))
		}
		if shown.Kind == KindImage && int64(shown.Width)*int64(shown.Height) > PixelsMax {
			t.Errorf("%d × %d", shown.Width, shown.Height)
		}
	})
}
