package tasklog

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/url"
	"slices"
)

// MaskedText is what a log holds in the place of a text: which secret stood there.
func MaskedText(name string) string { return "[masked: " + name + "]" }

// Masked is a text that no log holds, and the name that stands in its place.
type Masked struct {
	Name string `json:"name"`
	Text []byte `json:"text"`
}

// Bounds of masking. What is over them is not masked: it protects against accidents.
const (
	encodedMax = 4 << 10   // bytes of a text that is looked for in its encoded forms, too
	maskedMax  = 768 << 10 // bytes of all forms together
)

// Masker writes to a log with certain texts replaced, also in base64 and as URLs
// spell them, wherever writes are cut. Bytes that may be the beginning of such a text
// wait for the next write, or for Close; all others are written at once. One
// goroutine uses it.
type Masker struct {
	to      io.Writer
	first   [256]bool
	texts   [256][]Masked // by the first byte, the longest first
	held    []byte        // the beginning of a text, perhaps
	scratch []byte
}

// NewMasker masks on the way to a log; nil for no texts: then there is nothing to do.
func NewMasker(to io.Writer, texts []Masked) *Masker {
	m, size := &Masker{to: to}, 0
	for _, text := range texts {
		for _, form := range forms(text.Text) {
			if size += len(form); size > maskedMax || len(form) == 0 {
				continue
			}
			m.first[form[0]] = true
			m.texts[form[0]] = append(m.texts[form[0]], Masked{text.Name, form})
		}
	}
	if size == 0 {
		return nil
	}
	for i := range m.texts {
		slices.SortStableFunc(m.texts[i], func(a, b Masked) int { return len(b.Text) - len(a.Text) })
	}
	return m
}

// forms lists how a text may be written: as it is, in base64 whatever stands before
// it, and escaped for URLs.
func forms(text []byte) [][]byte {
	all := [][]byte{text}
	if len(text) > encodedMax {
		return all
	}
	add := func(form []byte) {
		if len(form) >= 6 && !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(other, form) }) {
			all = append(all, form)
		}
	}
	add([]byte(url.QueryEscape(string(text))))
	add([]byte(url.PathEscape(string(text))))
	for before := range 3 {
		padded := append(make([]byte, before), text...)
		// Characters that bytes around the text have a part in are left out.
		from, until := (before*8+5)/6, len(padded)*8/6
		for _, coding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add([]byte(coding.EncodeToString(padded))[from:until])
		}
	}
	return all
}

// Write masks what is complete. It reports all of data as written.
func (m *Masker) Write(data []byte) (int, error) {
	text := data
	if len(m.held) > 0 {
		text = append(m.held, data...)
	}
	return len(data), m.mask(text, false)
}

// mask writes a text, but for an end that more bytes may make something to mask; of
// the last there are none.
func (m *Masker) mask(text []byte, last bool) error {
	out, clean := m.scratch[:0], 0
	at := 0
	for at < len(text) {
		if !m.first[text[at]] {
			at++
			continue
		}
		length, name, open := m.match(text[at:], last)
		if open {
			break // more bytes decide
		}
		if length == 0 {
			at++
			continue
		}
		out = append(append(out, text[clean:at]...), MaskedText(name)...)
		at += length
		clean = at
	}
	rest := text[at:]
	var err error
	if len(out) == 0 { // nothing to mask: no copy
		if at > clean {
			_, err = m.to.Write(text[clean:at])
		}
	} else {
		out = append(out, text[clean:at]...)
		_, err = m.to.Write(out)
	}
	m.scratch = out[:0]
	m.held = append(make([]byte, 0, len(rest)), rest...)
	return err
}

// match reports which text data begins with, or that more bytes would have to tell.
func (m *Masker) match(data []byte, last bool) (length int, name string, open bool) {
	for _, text := range m.texts[data[0]] {
		switch {
		case bytes.HasPrefix(data, text.Text):
			return len(text.Text), text.Name, false
		case !last && len(data) < len(text.Text) && bytes.HasPrefix(text.Text, data):
			return 0, "", true // a longer one may still come
		}
	}
	return 0, "", false
}

// drop forgets what was held back, and reports how many bytes that were: what it was
// the beginning of may have come elsewhere.
func (m *Masker) drop() int {
	count := len(m.held)
	m.held = nil
	return count
}

// Close writes what was held back. What it was the beginning of did not come.
func (m *Masker) Close() error { return m.mask(m.held, true) }
