package notify

import (
	"strconv"
	"strings"
	"unicode"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// Text is a message in somebody's language.
type Text struct {
	Title string   // one line
	What  []string // what happened and why, a line each
	Do    string   // what to do about it; "" for nothing
	Lines []string // the last ones of the error
	Link  string   // to the page about it; "" where nobody said under which address that is
}

// titleMax bounds a title, so that it fits a line of a mail's header.
const titleMax = 180 // bytes

// TextOf puts a message into words. base is the address of the pages, "" for none. What
// came from jobs and machines is shown as text of one line each, whatever is in it.
func TextOf(language messages.Language, n *structs.Notification, base string) Text {
	params := map[string]string{"job": n.Job, "project": n.Project, "user": n.User}
	text := Text{}
	switch n.Kind {
	case structs.NotifyDigest:
		total := 0
		for _, count := range n.Counts {
			total += count
		}
		text.Title = messages.Textf(language, "notify.title.digest", "count", total)
		for _, kind := range structs.NotifyKinds() {
			if count := n.Counts[kind]; count > 0 {
				text.What = append(text.What, messages.Textf(language, "notify.counted", "count", count, "kind", messages.Text(language, "notify.kind."+kind, nil)))
			}
		}
		if len(n.Names) > 0 {
			text.What = append(text.What, messages.Textf(language, "notify.named", "names", strings.Join(n.Names, ", ")))
		}
	default:
		text.Title = messages.Text(language, "notify.title."+n.Kind, params)
		if n.Event != "" {
			text.What = append(text.What, messages.Text(language, n.Event, n.Params))
		}
		if n.Cause != nil {
			text.What = append(text.What, messages.Text(language, n.Cause.ID, n.Cause.Params))
		}
	}
	do := "notify.do." + n.Kind
	if what, ok := strings.CutPrefix(n.Event, "notify.what."); ok && messages.Has(language, do+"."+what) {
		do += "." + what // of the servers, what to do depends on what it is
	}
	if messages.Has(language, do) {
		text.Do = messages.Text(language, do, params)
	}
	text.Title = bounded(oneLine(text.Title), titleMax)
	for i := range text.What {
		text.What[i] = oneLine(text.What[i])
	}
	for _, line := range n.Lines {
		text.Lines = append(text.Lines, oneLine(line))
	}
	if base = strings.TrimSuffix(base, "/"); base != "" {
		text.Link = base + "/"
		if n.JobID != "" {
			text.Link = base + "/jobs/" + n.JobID
		}
	}
	return text
}

// oneLine replaces what would begin another line, or turn the text around, by spaces.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Plain writes a text as the paragraphs of a message without formatting, of at most
// limit bytes; the title, what happened and the link come before the error's lines.
func (t Text) Plain(limit int) string {
	var b strings.Builder
	b.WriteString(t.Title)
	for _, line := range t.What {
		b.WriteString("\n" + line)
	}
	if t.Do != "" {
		b.WriteString("\n" + t.Do)
	}
	if t.Link != "" {
		b.WriteString("\n" + t.Link)
	}
	if len(t.Lines) > 0 {
		b.WriteString("\n")
		for _, line := range t.Lines {
			b.WriteString("\n  " + line)
		}
	}
	return bounded(b.String(), limit)
}

// seconds writes a time as signatures have it.
func seconds(at structs.UnixNano) string { return strconv.FormatInt(at.Time().Unix(), 10) }

// ProblemOf puts what went wrong with a delivery into words: of this program's, by their
// id, or as the channel told it.
func ProblemOf(language messages.Language, problem string) string {
	if messages.Has(language, problem) {
		return messages.Text(language, problem, nil)
	}
	return oneLine(problem)
}
