package look

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// Twin is a page in both themes. Both have the same shapes in other colours, so one
// image with two palettes holds them in little more than half of the bytes.
type Twin struct {
	Light, Dark *image.RGBA // of one size
}

// chunkDark names the chunk with the second palette. Programs that do not know it show
// the light picture.
const chunkDark = "daRk"

const (
	signature = "\x89PNG\r\n\x1a\n"
	colours   = 256 // of one palette
)

// pair is a colour in the light and in the dark picture.
type pair [6]uint8

func (p pair) far(other pair) int {
	far := 0
	for i := range p {
		far = max(far, int(p[i])-int(other[i]), int(other[i])-int(p[i]))
	}
	return far
}

// gathers are how near to a more frequent colour one is that is stored as that: the
// first for which the palette is large enough. All are within the tolerance.
var gathers = [3]int{10, 16, pixelFar - 2}

// Encode returns the picture as a PNG with two palettes.
func (t Twin) Encode() ([]byte, error) {
	size := t.Light.Bounds()
	if size != t.Dark.Bounds() || size.Min != (image.Point{}) {
		return nil, fmt.Errorf("the light picture is %v, the dark one %v", size, t.Dark.Bounds())
	}
	counts := map[pair]int{}
	t.runs(func(p pair, from, to int) { counts[p] += to - from })
	palette, places := choose(counts)
	if places == nil {
		return nil, fmt.Errorf("it has more than %d colours that can be told apart", colours)
	}
	indexed := image.NewPaletted(size, make(color.Palette, len(palette)))
	dark := make([]byte, 0, 3*len(palette))
	for i, p := range palette {
		indexed.Palette[i] = color.RGBA{p[0], p[1], p[2], 0xff}
		dark = append(dark, p[3:]...)
	}
	t.runs(func(p pair, from, to int) {
		place := places[p]
		for i := from; i < to; i++ {
			indexed.Pix[i] = place
		}
	})
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, indexed); err != nil {
		return nil, err
	}
	head := len(signature) + 25 // the chunk IHDR
	return slices.Concat(out.Bytes()[:head], chunk(chunkDark, dark), out.Bytes()[head:]), nil
}

// runs yields the stretches of pixels of one colour.
func (t Twin) runs(yield func(p pair, from, to int)) {
	var p pair
	from, count := 0, len(t.Light.Pix)/4
	for i := range count {
		l, d := t.Light.Pix[4*i:4*i+3:4*i+3], t.Dark.Pix[4*i:4*i+3:4*i+3]
		here := pair{l[0], l[1], l[2], d[0], d[1], d[2]}
		if here != p && i > from {
			yield(p, from, i)
			from = i
		}
		p = here
	}
	if count > from {
		yield(p, from, count)
	}
}

// choose makes a palette of the most frequent colours, and says for each colour which
// of it stands for it, the nearest; nil when there are too many.
func choose(counts map[pair]int) (palette []pair, places map[pair]uint8) {
	order := slices.SortedFunc(maps.Keys(counts), func(a, b pair) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), bytes.Compare(a[:], b[:]))
	})
	for _, gather := range gathers {
		if palette, places = within(order, gather); places != nil {
			break
		}
	}
	return palette, places
}

func within(order []pair, gather int) (palette []pair, places map[pair]uint8) {
	places = make(map[pair]uint8, len(order))
	for _, p := range order {
		nearest, far := 0, 1<<10
		for i, q := range palette {
			if d := p.far(q); d < far {
				nearest, far = i, d
			}
		}
		if far > gather {
			if nearest = len(palette); nearest == colours {
				return nil, nil
			}
			palette = append(palette, p)
		}
		places[p] = uint8(nearest) // below the number of colours
	}
	return palette, places
}

func chunk(name string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data))) // a palette
	out = append(append(out, name...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

var errNoTwin = errors.New("no picture with two palettes")

// Decode reads what Encode wrote.
func Decode(data []byte) (Twin, error) {
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return Twin{}, err
	}
	indexed, ok := decoded.(*image.Paletted)
	if !ok {
		return Twin{}, errNoTwin
	}
	var dark []byte
	for rest := data[len(signature):]; len(rest) >= 12; {
		size := int(binary.BigEndian.Uint32(rest))
		if string(rest[4:8]) == chunkDark {
			dark = rest[8 : 8+size]
			break
		}
		rest = rest[12+size:]
	}
	if len(dark) != 3*len(indexed.Palette) {
		return Twin{}, errNoTwin
	}
	t := Twin{image.NewRGBA(indexed.Rect), image.NewRGBA(indexed.Rect)}
	shown := make([]pair, colours)
	for i, c := range indexed.Palette {
		r, g, b, _ := c.RGBA()
		shown[i] = pair{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), dark[3*i], dark[3*i+1], dark[3*i+2]} // 16 bits of a channel
	}
	for i, place := range indexed.Pix {
		l, d := t.Light.Pix[4*i:4*i+4:4*i+4], t.Dark.Pix[4*i:4*i+4:4*i+4]
		l[0], l[1], l[2], l[3] = shown[place][0], shown[place][1], shown[place][2], 0xff
		d[0], d[1], d[2], d[3] = shown[place][3], shown[place][4], shown[place][5], 0xff
	}
	return t, nil
}
