// Package look compares pictures of pages with stored ones, and shows the differences.
//
// Flow: Compare reads what was taken, two pictures of a page for the two themes, and
// what is stored, one file for both (Twin); Report.Write makes the page of differences.
//
// Limits: a difference that is smaller than the tolerance below is not seen: a colour
// that changes by less than pixelFar in each channel, and a change of at most spotsMax
// pixels in all. A stored picture holds at most 256 colours, so a colour may be stored
// as one that is nearer to it than the tolerance; both errors may add up.
package look

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The tolerance of a comparison.
const (
	pixelFar = 24 // of 255 in one channel, to be another colour
	spotsMax = 6  // pixels of another colour, to be another picture
)

// Difference is one picture that is not as it was.
type Difference struct {
	Name   string // of the page, with language, width and theme
	Reason string // in words
	Pixels int    // that differ; 0 where one of the pictures is missing
	Was    image.Image
	Is     image.Image
	Marked image.Image // what is, pale, with the differences in red
}

// Report is what a comparison found.
type Report struct {
	Taken       int // pictures
	Differences []Difference
	Faults      []string // what the browser found besides
	Stored      int      // pictures that were written
	Bytes       int64    // of all stored pictures
}

// Good reports whether everything is as it was and nothing is wrong.
func (r *Report) Good() bool { return len(r.Differences) == 0 && len(r.Faults) == 0 }

// Summary is the report in one line.
func (r *Report) Summary() string {
	text := fmt.Sprintf("%d differ, %d faults", len(r.Differences), len(r.Faults))
	if r.Stored > 0 {
		text += fmt.Sprintf(", %d were stored anew", r.Stored)
	}
	return text + fmt.Sprintf("; %d kB are stored", r.Bytes/1000)
}

var themes = [2]string{"light", "dark"}

// Choice is which pages were to be taken: those whose name has one of the texts in it
// that commas part in Only, at Width; 0: at all.
type Choice struct {
	Only  string
	Width int
}

// has reports whether a picture is of the choice, by its name without a theme.
func (c Choice) has(name string) bool {
	page, width := cutLast(name)
	page, _ = cutLast(page)
	return (c.Width == 0 || width == strconv.Itoa(c.Width)) &&
		slices.ContainsFunc(strings.Split(c.Only, ","), func(text string) bool { return strings.Contains(page, text) })
}

// cutLast cuts the part behind the last hyphen off a name.
func cutLast(name string) (before, last string) {
	at := max(0, strings.LastIndex(name, "-"))
	return name[:at], strings.TrimPrefix(name[at:], "-")
}

// Compare holds the pictures in folder/taken against those of the choice in stored. With
// update it stores those that differ, and there are no differences.
func Compare(stored, folder string, choice Choice, update bool) (*Report, error) {
	taken, err := filepath.Glob(filepath.Join(folder, "taken", "*-"+themes[0]+".png"))
	if err != nil {
		return nil, err
	}
	report := &Report{}
	seen := map[string]bool{}
	for _, path := range taken {
		name := strings.TrimSuffix(filepath.Base(path), "-"+themes[0]+".png")
		seen[name] = true
		report.Taken += len(themes)
		is, err := readTwin(strings.TrimSuffix(path, "-"+themes[0]+".png"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := report.compare(filepath.Join(stored, name+".png"), name, is, update); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return report, report.missing(stored, choice, seen, update)
}

// compare holds one page against its stored picture.
func (r *Report) compare(path, name string, is Twin, update bool) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var was Twin
	found := r.Differences
	if err == nil {
		if was, err = Decode(data); err != nil {
			return err
		}
	}
	r.Differences = append(r.Differences, differ(name, themes[0], was.Light, is.Light)...)
	r.Differences = append(r.Differences, differ(name, themes[1], was.Dark, is.Dark)...)
	if !update || len(r.Differences) == len(found) {
		return nil
	}
	r.Differences = found
	if data, err = is.Encode(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r.Stored++
	return os.WriteFile(path, data, 0o644) // part of the repository
}

// missing finds stored pictures of pages that were not taken, and counts the bytes of
// all.
func (r *Report) missing(stored string, choice Choice, seen map[string]bool, update bool) error {
	paths, err := filepath.Glob(filepath.Join(stored, "*.png"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".png")
		switch {
		case seen[name] || !choice.has(name):
		case update:
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		default:
			r.Differences = append(r.Differences, Difference{Name: name, Reason: "it was not taken"})
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		r.Bytes += info.Size()
	}
	slices.SortStableFunc(r.Differences, func(a, b Difference) int { return b.Pixels - a.Pixels })
	return nil
}

// differ compares two pictures; was is nil when nothing is stored.
func differ(name, theme string, was, is *image.RGBA) []Difference {
	one := Difference{Name: name + "-" + theme, Is: is}
	switch {
	case was == nil:
		one.Reason = "nothing is stored"
		return []Difference{one}
	case was.Rect != is.Rect:
		one.Was = was
		one.Reason = fmt.Sprintf("it was %d × %d pixels and is %d × %d", was.Rect.Dx(), was.Rect.Dy(), is.Rect.Dx(), is.Rect.Dy())
		one.Pixels = is.Rect.Dx() * is.Rect.Dy()
		return []Difference{one}
	}
	marked := image.NewRGBA(is.Rect)
	for i := 0; i < len(is.Pix); i += 4 {
		far := 0
		for k := range 3 {
			a, b := int(was.Pix[i+k]), int(is.Pix[i+k])
			far = max(far, a-b, b-a)
			marked.Pix[i+k] = uint8(255 - (255-b)/4) // at most 255
		}
		marked.Pix[i+3] = 0xff
		if far >= pixelFar {
			one.Pixels++
			copy(marked.Pix[i:], []byte{0xd0, 0, 0})
		}
	}
	if one.Pixels <= spotsMax {
		return nil
	}
	one.Was, one.Marked = was, marked
	one.Reason = fmt.Sprintf("%d pixels differ", one.Pixels)
	return []Difference{one}
}

// readTwin reads the two pictures of a page.
func readTwin(path string) (Twin, error) {
	light, err := readPicture(path + "-" + themes[0] + ".png")
	if err != nil {
		return Twin{}, err
	}
	dark, err := readPicture(path + "-" + themes[1] + ".png")
	if err != nil {
		return Twin{}, err
	}
	if light.Rect != dark.Rect {
		return Twin{}, fmt.Errorf("the themes have other shapes: light is %v, dark %v", light.Rect.Max, dark.Rect.Max)
	}
	return Twin{light, dark}, nil
}

func readPicture(path string) (*image.RGBA, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoded, err := png.Decode(file)
	if err != nil {
		return nil, err
	}
	out := image.NewRGBA(image.Rectangle{Max: decoded.Bounds().Size()})
	draw.Draw(out, out.Rect, decoded, decoded.Bounds().Min, draw.Src)
	return out, nil
}
