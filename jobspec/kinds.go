package jobspec

import (
	"strconv"

	"nomadlike/nomadlike/structs"
)

// kind is what an argument takes, in a word of the catalogue behind
// "jobspec.kind.".
type kind string

const (
	kindText     kind = "text"
	kindPlace    kind = "place"
	kindWhole    kind = "whole"
	kindCount    kind = "count"
	kindFraction kind = "fraction"
	kindFlag     kind = "flag"
	kindSize     kind = "size"
	kindSpan     kind = "span"
	kindWords    kind = "words"
	kindTable    kind = "table"
	kindSecret   kind = "secret"
)

// value is how the value of one argument is read from a file and written into
// one. What means "not said" is not written.
type value struct {
	kind  kind
	to    []any // pointers to the fields that it fills
	read  func(r *reader, name string)
	write func(w writer, name string)
	least string // the smallest that is taken, where what is checked later would take none
	left  bool   // to a block of its name
}

// unless leaves the argument to the block of its name, which says more, when
// that is there.
func (v value) unless(there bool) value {
	v.left = there
	return v
}

// text is a text.
func text(to *string) value {
	return value{
		kind: kindText, to: []any{to},
		read:  func(r *reader, name string) { r.text(name, to) },
		write: func(w writer, name string) { w.text(name, *to) },
	}
}

// spoken is a text that a rank reads, or words of its command: it may name the
// parameters of a sweep.
func spoken(to *string) value {
	return value{
		kind: kindText, to: []any{to},
		read:  func(r *reader, name string) { r.spoken(name, to) },
		write: func(w writer, name string) { w.text(name, *to) },
	}
}

// place is a path, which may name what is known of the job only later.
func place(to *string) value {
	return value{
		kind: kindPlace, to: []any{to},
		read:  func(r *reader, name string) { r.place(name, to) },
		write: func(w writer, name string) { w.text(name, *to) },
	}
}

// whole is a whole number; 0 is refused when least is above it.
func whole(to *int, least int) value {
	return value{
		kind: kindWhole, to: []any{to}, least: strconv.Itoa(least),
		read:  func(r *reader, name string) { r.whole(name, to, least) },
		write: func(w writer, name string) { w.whole(name, *to) },
	}
}

// said is a whole number of which 0 is written, too.
func said(to *int) value {
	return value{
		kind: kindWhole, to: []any{to},
		read:  func(r *reader, name string) { r.whole(name, to, 0) },
		write: func(w writer, name string) { w.number(name, *to) },
	}
}

// wholeOrNone is a whole number of which 0 means something else than none.
func wholeOrNone(to **int) value {
	return value{
		kind: kindWhole, to: []any{to},
		read: func(r *reader, name string) { r.wholeOrNone(name, to) },
		write: func(w writer, name string) {
			if *to != nil {
				w.number(name, **to)
			}
		},
	}
}

// count is how many devices: a whole number from 1 on, or "all".
func count(to *int) value {
	return value{
		kind: kindCount, to: []any{to},
		read: func(r *reader, name string) { r.count(name, to) },
		write: func(w writer, name string) {
			if *to == structs.DevicesAll {
				w.text(name, countAll)
			} else {
				w.whole(name, *to)
			}
		},
	}
}

// fraction is a number with decimals; 0 is refused when least is above it.
func fraction(to *float64, least float64) value {
	return value{
		kind: kindFraction, to: []any{to}, least: strconv.FormatFloat(least, 'g', -1, 64),
		read:  func(r *reader, name string) { r.fraction(name, to, least) },
		write: func(w writer, name string) { w.fraction(name, *to) },
	}
}

// flag is true or false.
func flag(to *bool) value {
	return value{
		kind: kindFlag, to: []any{to},
		read:  func(r *reader, name string) { r.flag(name, to) },
		write: func(w writer, name string) { w.flag(name, *to) },
	}
}

// maybe is true or false where not saying it is a third.
func maybe(to **bool) value {
	return value{
		kind: kindFlag, to: []any{to},
		read:  func(r *reader, name string) { r.maybe(name, to) },
		write: func(w writer, name string) { w.maybe(name, *to) },
	}
}

// either is maybe, kept in a field for yes and one for no.
func either(yes, no *bool) value {
	return value{
		kind: kindFlag, to: []any{yes, no},
		read: func(r *reader, name string) {
			var told *bool
			if r.maybe(name, &told); told != nil {
				*yes, *no = *told, !*told
			}
		},
		write: func(w writer, name string) {
			if *yes || *no {
				w.maybe(name, yes)
			}
		},
	}
}

// size is an amount of memory such as "2GiB".
func size(to *int64, least int64) value {
	return value{
		kind: kindSize, to: []any{to}, least: structs.FormatSize(least),
		read:  func(r *reader, name string) { r.size(name, to, least) },
		write: func(w writer, name string) { w.size(name, *to) },
	}
}

// span is a span of time such as "1h30m".
func span(to *structs.Duration, least structs.Duration) value {
	return value{
		kind: kindSpan, to: []any{to}, least: structs.FormatDuration(least),
		read:  func(r *reader, name string) { r.span(name, to, least) },
		write: func(w writer, name string) { w.span(name, *to) },
	}
}

// words is a list of texts.
func words(to *[]string) value {
	return value{
		kind: kindWords, to: []any{to},
		read:  func(r *reader, name string) { r.words(name, to) },
		write: func(w writer, name string) { w.words(name, *to) },
	}
}

// table is names and texts, an argument or a block.
func table(to *map[string]string) value {
	return value{
		kind: kindTable, to: []any{to},
		read:  func(r *reader, name string) { r.table(name, to) },
		write: func(w writer, name string) { w.table(name, *to) },
	}
}
