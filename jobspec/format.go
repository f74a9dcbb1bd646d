package jobspec

import (
	"bytes"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format writes a job file in its canonical form: two blanks for each level,
// equals signs of neighbouring lines below one another, and blocks that hold
// several arguments on one line broken into lines. What the file means does
// not change, and neither do its comments. A file that cannot be parsed is
// not formatted: the diagnostics say why. Pure; any goroutine may call it.
func Format(filename string, src []byte) ([]byte, Diagnostics) {
	p := &parser{limits: Limits{}.withDefaults()}
	f := p.parseFile(filename, src)
	if f == nil {
		return nil, p.diags.sorted(p.limits.Diagnostics, p.dropped)
	}
	text := f.edited
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	for range formatPassesMax {
		formatted := hclwrite.Format(text)
		if bytes.Equal(formatted, text) {
			break
		}
		text = formatted
	}
	return text, nil
}

// formatPassesMax bounds how often the library formats its own output: now
// and then its first form is not yet its last.
const formatPassesMax = 4
