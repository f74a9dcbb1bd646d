package main

import (
	"fmt"
	"strings"
	"time"
)

const unreleased = "## Unreleased\n"

// release returns the changelog in which the entries that are not released yet
// stand under a version, and the section of that version. A changelog that has the
// version already stays as it is.
func releaseChangelog(text, version string, day time.Time) (changed, section string, err error) {
	heading := "## " + version + " "
	if !strings.Contains(text, "\n"+heading) {
		begin := strings.Index(text, unreleased)
		if begin < 0 {
			return "", "", fmt.Errorf("CHANGELOG.md has neither a section %q nor %q", strings.TrimSpace(heading), strings.TrimSpace(unreleased))
		}
		behind := begin + len(unreleased)
		if strings.TrimSpace(upToNext(text[behind:])) == "" {
			return "", "", fmt.Errorf("CHANGELOG.md has no entries under %q", strings.TrimSpace(unreleased))
		}
		text = text[:behind] + "\n" + heading + day.UTC().Format("(2006-01-02)") + "\n" + text[behind:]
	}
	begin := strings.Index(text, "\n"+heading) + 1
	line := begin + strings.Index(text[begin:], "\n") + 1
	return text, strings.TrimSpace(upToNext(text[line:])) + "\n", nil
}

// upToNext is the text before the next section.
func upToNext(text string) string {
	if end := strings.Index(text, "\n## "); end >= 0 {
		return text[:end+1]
	}
	return text
}
