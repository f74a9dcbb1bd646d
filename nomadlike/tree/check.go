package tree

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Check refuses a manifest that does not describe a directory: paths that lead
// elsewhere or stand twice or out of order, names below what is no directory, links
// out of the tree, more than the bounds. Whoever may have been given a manifest by
// others checks it before use; Decode and Unpack do it themselves.
func (m Manifest) Check() error {
	if len(m.Entries) > EntriesMax {
		return structs.NewError(structs.CodeTooLarge, "tree.too_many", "max", EntriesMax)
	}
	dirs := map[string]bool{".": true}
	sizes := make(map[Digest]int64)
	for i := range m.Entries {
		entry := &m.Entries[i]
		if err := checkPath(entry.Path); err != nil {
			return err
		}
		if i > 0 && m.Entries[i-1].Path >= entry.Path {
			return structs.NewError(structs.CodeInvalid, "tree.order", "path", shown(entry.Path))
		}
		if !dirs[path.Dir(entry.Path)] {
			return structs.NewError(structs.CodeInvalid, "tree.no_parent", "path", shown(entry.Path))
		}
		if err := entry.check(sizes); err != nil {
			return err
		}
		if entry.Kind == KindDir {
			dirs[entry.Path] = true
		}
	}
	return nil
}

// check looks at what an entry says of itself. Sizes remembers how long each chunk is
// said to be.
func (e *Entry) check(sizes map[Digest]int64) error {
	wrong := func() error { return structs.NewError(structs.CodeInvalid, "tree.entry", "path", shown(e.Path)) }
	if e.Mode&^0o777 != 0 || e.Kind != KindFile && len(e.Chunks) > 0 || e.Kind != KindLink && e.Target != "" {
		return wrong()
	}
	switch e.Kind {
	case KindFile:
		for _, chunk := range e.Chunks {
			if !chunk.Digest.Valid() || chunk.Size < 1 || chunk.Size > ChunkSizeMax {
				return wrong()
			}
			if known, ok := sizes[chunk.Digest]; ok && known != chunk.Size {
				return wrong()
			}
			sizes[chunk.Digest] = chunk.Size
		}
	case KindDir:
	case KindLink:
		if e.Mode != 0 {
			return wrong()
		}
		return checkLink(e.Path, e.Target)
	default:
		return wrong()
	}
	return nil
}

// CheckPath refuses what is no path below a root: names that lead elsewhere, and those
// that no file system takes.
func CheckPath(name string) error { return checkPath(name) }

func checkPath(name string) error {
	if name == "" || len(name) > PathMax || strings.ContainsRune(name, 0) {
		return structs.NewError(structs.CodeInvalid, "tree.path", "path", shown(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return structs.NewError(structs.CodeInvalid, "tree.path", "path", shown(name))
		}
		if len(part) > NameMax {
			return structs.NewError(structs.CodeInvalid, "tree.name_too_long", "path", shown(name), "max", NameMax)
		}
	}
	return nil
}

// checkLink refuses a link that could lead out of its tree. Its own directory is a
// real one, so ".." in front is counted; behind a name it is refused, because the name
// may be another link, and nobody could tell where ".." leads from there.
func checkLink(name, target string) error {
	if target == "" || len(target) > PathMax || strings.ContainsRune(target, 0) {
		return structs.NewError(structs.CodeInvalid, "tree.entry", "path", shown(name))
	}
	out := structs.NewError(structs.CodeInvalid, "tree.link_out", "path", shown(name), "target", shown(target), "line", ignoreLine(name, false))
	if path.IsAbs(target) {
		return out
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
			if down || depth < 0 {
				return out
			}
		default:
			down = true
		}
	}
	return nil
}

// ignoreLine is the line of an ignore file that leaves out this path. What nobody can
// type, or a line cannot hold, is a "?" in it, which stands for any one byte.
func ignoreLine(name string, dir bool) string {
	var line strings.Builder
	line.WriteByte('/')
	for i := 0; i < len(name); {
		r, width := utf8.DecodeRuneInString(name[i:])
		switch {
		case strings.ContainsRune(`*?[\ `, r):
			line.WriteByte('\\')
			line.WriteRune(r)
		case r == utf8.RuneError && width == 1 || !unicode.IsPrint(r):
			line.WriteString(strings.Repeat("?", width))
		default:
			line.WriteRune(r)
		}
		i += width
	}
	if dir {
		line.WriteByte('/')
	}
	return line.String()
}

// shown is a path as errors name it: as it is, or quoted where a terminal or a log would
// not show it so.
func shown(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}
