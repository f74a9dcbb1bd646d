package look

import (
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	paper = [2]color.RGBA{{0xf7, 0xf8, 0xfa, 0xff}, {0x0f, 0x12, 0x16, 0xff}}
	ink   = [2]color.RGBA{{0x17, 0x1b, 0x21, 0xff}, {0xe8, 0xec, 0xf1, 0xff}}
	run   = [2]color.RGBA{{0x1f, 0x5f, 0xcc, 0xff}, {0x79, 0xa9, 0xff, 0xff}}
	wait  = [2]color.RGBA{{0x56, 0x61, 0x6d, 0xff}, {0xa9, 0xb4, 0xbf, 0xff}}
	fill  = [2]color.RGBA{{0x34, 0x50, 0xc8, 0xff}, {0x3a, 0x57, 0xd6, 0xff}}
)

// scene is a small page: a button, the mark of a state, and a label.
type scene struct {
	button image.Point
	state  [2]color.RGBA
	label  string
	width  int
}

var plain = scene{button: image.Pt(200, 20), state: run, label: "running", width: 300}

func (s scene) draw(theme int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, s.width, 120))
	put := func(r image.Rectangle, c color.RGBA) { draw.Draw(out, r, image.NewUniform(c), image.Point{}, draw.Src) }
	put(out.Rect, paper[theme])
	put(image.Rectangle{Max: image.Pt(80, 28)}.Add(s.button), fill[theme])
	put(image.Rect(20, 60, 28, 68), s.state[theme])
	for i, letter := range s.label { // an upright, and as many dots as its number says
		at := 40 + 7*i
		put(image.Rect(at, 60, at+1, 68), ink[theme])
		for bit := range 7 {
			if letter>>bit&1 == 1 {
				put(image.Rect(at+2, 60+bit, at+4, 61+bit), ink[theme])
			}
		}
	}
	return out
}

// folders has a scene taken as a page, in a folder of its own beside the stored ones.
func folders(t *testing.T, stored, name string, s scene) (folder string) {
	t.Helper()
	folder = t.TempDir()
	taken := filepath.Join(folder, "taken")
	if err := os.MkdirAll(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, theme := range themes {
		if err := writePicture(filepath.Join(taken, name+"-"+theme+".png"), s.draw(i)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func compared(t *testing.T, stored, name string, s scene, update bool) *Report {
	t.Helper()
	folder := folders(t, stored, name, s)
	report, err := Compare(stored, folder, Choice{}, update)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Write(folder); err != nil {
		t.Fatal(err)
	}
	return report
}

// Each small change of a page is a difference in both themes, and no change is none.
func TestChangesAreSeen(t *testing.T) {
	stored := t.TempDir()
	const name = "jobs-en-1440"
	if report := compared(t, stored, name, plain, false); report.Good() || report.Differences[0].Reason != "nothing is stored" {
		t.Fatalf("a page without a stored picture: %+v", report)
	}
	if report := compared(t, stored, name, plain, true); !report.Good() || report.Stored != 1 {
		t.Fatalf("a page that is stored: %s", report.Summary())
	}
	if report := compared(t, stored, name, plain, false); !report.Good() || report.Taken != 2 {
		t.Fatalf("a page that is as it was: %s", report.Summary())
	}
	for what, s := range map[string]scene{
		"a button that moved by one pixel": {image.Pt(201, 20), plain.state, plain.label, plain.width},
		"the colour of another state":      {plain.button, wait, plain.label, plain.width},
		"a label that is lost":             {plain.button, plain.state, "", plain.width},
		"a letter that is lost":            {plain.button, plain.state, "runnin", plain.width},
		"two letters that are others":      {plain.button, plain.state, "ruxxing", plain.width},
		"a page that is wider":             {plain.button, plain.state, plain.label, plain.width + 1},
		"a colour in the dark theme only":  {plain.button, [2]color.RGBA{run[0], wait[1]}, plain.label, plain.width},
	} {
		report := compared(t, stored, name, s, false)
		want := 2
		if strings.Contains(what, "dark") {
			want = 1
		}
		if len(report.Differences) != want {
			t.Errorf("%s: %d differences, want %d", what, len(report.Differences), want)
		}
		for _, one := range report.Differences {
			if one.Pixels <= spotsMax || one.Was == nil || one.Is == nil {
				t.Errorf("%s: %+v", what, one)
			}
		}
	}
	if report := compared(t, stored, "queue-en-1440", plain, false); len(report.Differences) != 3 {
		t.Errorf("a stored picture of a page that is gone: %s", report.Summary())
	}
}

// A choice of pages and widths leaves the others alone.
func TestChoice(t *testing.T) {
	for name, want := range map[string]bool{"jobs-en-1440": true, "cards-four-zh-1440": true, "cards-four-zh-390": false, "queue-en-1440": false} {
		if got := (Choice{Only: "jobs,four", Width: 1440}).has(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !(Choice{}).has("queue-en-390") {
		t.Error("no choice is all")
	}
}

// What browsers draw a little differently is no difference: a shade, and a few pixels.
func TestToleranceIsSmall(t *testing.T) {
	was, is := plain.draw(0), plain.draw(0)
	for i := range is.Pix {
		if i%4 < 3 && is.Pix[i] < 255-pixelFar {
			is.Pix[i] += pixelFar - 1
		}
	}
	for x := range spotsMax {
		is.SetRGBA(10+x, 100, ink[0])
	}
	if found := differ("page", "light", was, is); len(found) != 0 {
		t.Errorf("%s", found[0].Reason)
	}
	is.SetRGBA(10+spotsMax, 100, ink[0])
	if found := differ("page", "light", was, is); len(found) != 1 || found[0].Pixels != spotsMax+1 {
		t.Errorf("one pixel more: %+v", found)
	}
}

// A file holds both themes as they were, but for colours that are near to others.
func TestTwinKeepsBothThemes(t *testing.T) {
	twin := Twin{plain.draw(0), plain.draw(1)}
	shades := func(channels int) { // more colours than a palette has
		for i := range 4096 {
			at := 4 * (i%64*1 + i/64*plain.width)
			for k := range channels {
				twin.Light.Pix[at+k] = uint8(4 * (i >> (6 * k) % 64))
			}
		}
	}
	shades(1)
	data, err := twin.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []*image.RGBA{twin.Light, twin.Dark} {
		got, most := []*image.RGBA{again.Light, again.Dark}[i], 0
		for k := range want.Pix {
			most = max(most, int(want.Pix[k])-int(got.Pix[k]), int(got.Pix[k])-int(want.Pix[k]))
		}
		if most >= pixelFar {
			t.Errorf("%s is up to %d off", themes[i], most)
		}
	}
	if small, err := (Twin{plain.draw(0), plain.draw(1)}).Encode(); err != nil || len(small) > 700 {
		t.Errorf("a small page takes %d bytes, %v", len(small), err)
	}
	shades(2)
	twin.Dark = twin.Light
	for i := range 4096 {
		twin.Dark.Pix[4*(i%64+i/64*plain.width)+2] = uint8(7 * i)
	}
	if _, err := twin.Encode(); err == nil {
		t.Error("a picture with too many colours is stored")
	}
	if _, err := Decode(data[:len(data)/2]); err == nil {
		t.Error("half of a picture is read")
	}
	if _, err := (Twin{plain.draw(0), scene{width: 10}.draw(1)}).Encode(); err == nil {
		t.Error("two pictures of two sizes are one")
	}
}
