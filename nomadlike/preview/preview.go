// Package preview tells what a file of named data is by its first bytes, and shows the
// beginning of it: text, a table, or the size of a picture.
//
// Limits: what a file is called decides only how text is divided into columns. Nothing
// here runs, follows or fetches anything that a file says; a picture is measured, and
// left to the browser to draw.
package preview

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// What a file can be shown as.
const (
	KindText  = "text"
	KindTable = "table"
	KindImage = "image"
	KindNone  = "none"
)

// Bounds of what is shown. Head is what Of wants of a file.
const (
	Head        = 256 << 10 // bytes of a file that are looked at
	TextMax     = 64 << 10  // bytes of text
	RowsMax     = 20        // of a table
	ColumnsMax  = 200
	CellMax     = 200      // characters
	ImageMax    = 16 << 20 // bytes of a picture
	PixelsMax   = 40_000_000
	utf8LongMax = 4 // bytes of a character
)

// Shown is the beginning of a file.
type Shown struct {
	Kind     string        `json:"kind"`               // text, table, image or none
	Media    string        `json:"media,omitempty"`    // of a picture
	Width    int           `json:"width,omitempty"`    // pixels
	Height   int           `json:"height,omitempty"`   // pixels
	Text     string        `json:"text,omitempty"`     // UTF-8
	Encoding string        `json:"encoding,omitempty"` // that the file's text has, where it is no UTF-8: gb18030, utf-16
	Columns  []TableColumn `json:"columns,omitempty"`
	Rows     [][]string    `json:"rows,omitempty"`
	Count    int64         `json:"count,omitempty"` // rows of the whole file, where it says so
	More     bool          `json:"more,omitempty"`  // the file goes on
	Why      string        `json:"why,omitempty"`   // nothing is shown: too_large, empty, broken, binary
}

// TableColumn is one of a table's.
type TableColumn struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // of a file that has types
}

// Of shows the beginning of a file by its first bytes, at most Head of them; size is
// that of the whole file.
func Of(name string, head []byte, size int64) Shown {
	if size == 0 {
		return Shown{Kind: KindNone, Why: "empty"}
	}
	if shown, is := picture(head, size); is {
		return shown
	}
	text, encoding, ok := textOf(head, int64(len(head)) < size)
	if !ok {
		return Shown{Kind: KindNone, Why: "binary"}
	}
	more := int64(len(head)) < size
	if comma := separator(name); comma != 0 {
		if shown, ok := table(text, comma, more); ok {
			shown.Encoding = encoding
			return shown
		}
	}
	if len(text) > TextMax {
		text, more = whole(text[:TextMax]), true
	}
	return Shown{Kind: KindText, Text: text, Encoding: encoding, More: more}
}

// textOf is what bytes spell; cut says that they end anywhere.
func textOf(data []byte, cut bool) (text, encoding string, ok bool) {
	if rest, is := bytes.CutPrefix(data, []byte("\xef\xbb\xbf")); is {
		data = rest
	}
	if text, is := wide(data); is {
		return text, "utf-16", true
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", "", false
	}
	if text = string(data); cut {
		text = whole(text)
	}
	if utf8.ValidString(text) {
		return text, "", true
	}
	// What Chinese systems wrote before UTF-8. Bytes that are no text nearly always have
	// a pair that it does not know.
	for less := 0; less <= utf8LongMax && less < len(data); less++ {
		decoded, err := simplifiedchinese.GB18030.NewDecoder().Bytes(data[:len(data)-less])
		if err == nil && !bytes.ContainsRune(decoded, utf8.RuneError) {
			if plain(decoded) {
				return string(decoded), "gb18030", true
			}
			return "", "", false
		}
		if !cut {
			break
		}
	}
	return "", "", false
}

// whole leaves out a character that is cut at the end.
func whole(text string) string {
	for less := 1; less < utf8LongMax && less <= len(text); less++ {
		if at := len(text) - less; utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// plain reports whether text has no control characters but those of lines.
func plain(text []byte) bool {
	for _, b := range text {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != 0x1b {
			return false
		}
	}
	return true
}

// separator is what divides the columns of a table of this name, 0 of none.
func separator(name string) rune {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv":
		return ','
	case ".tsv":
		return '\t'
	}
	return 0
}
