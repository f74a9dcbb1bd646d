package jobspec

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/internal/messages"
)

func seeds(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/good/*.hcl", "testdata/diag/*.hcl", "testdata/format/*.in", "skeleton/*/*.hcl"} {
		for _, name := range files(f, pattern) {
			f.Add(read(f, name))
		}
	}
	for _, src := range hostile() {
		f.Add([]byte(src[:min(len(src), 2000)]))
	}
	for _, src := range []string{
		"a = <<A\n${\n<<B\n}\nB\n}\nA\n", "a = \"$${${\"}\"}%%{\"", "a = <<-é\né\n", "/*", "a = \"${ ( }\"", "a {b{c=1,}}", "a {b=1,c=<<E\nE\n}",
	} {
		f.Add([]byte(src))
	}
}

// FuzzParse: no text makes the parser panic; errors and jobs exclude each
// other; every problem lies inside the text and has words; what is accepted
// is valid.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		job, places, diags := Parse("fuzz.hcl", src, Options{Vars: []string{"lr=[1"}, VarFiles: []VarFile{{"v.hcl", src}}})
		if (job == nil) != diags.HasErrors() || (places == nil) != (job == nil) {
			t.Fatalf("job %v, places %v, diagnostics %v", job != nil, places != nil, diags)
		}
		for _, d := range diags {
			if d.ID != "jobspec.more" && !messages.Has(messages.English, d.ID) || d.HintID != "" && !messages.Has(messages.Chinese, d.HintID) {
				t.Errorf("message %s or %s does not exist", d.ID, d.HintID)
			}
			if d.Range.Start.Byte < 0 || d.Range.End.Byte > len(src) || d.Range.Start.Byte > d.Range.End.Byte {
				t.Errorf("range %+v of %d bytes", d.Range, len(src))
			}
		}
		rendered(t, diags, messages.Chinese)
		if job == nil {
			return
		}
		job.SetDefaults()
		if problems := job.Validate(); len(problems) > 0 {
			t.Errorf("an accepted job is not valid: %+v", problems)
		}
	})
}

// FuzzFormat: formatting changes neither the job nor, the second time, the
// text.
func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		once, diags := Format("fuzz.hcl", src)
		if diags.HasErrors() {
			return
		}
		before, _, _ := Parse("fuzz.hcl", src, Options{})
		after, _, diags := Parse("fuzz.hcl", once, Options{})
		if before != nil && after == nil {
			t.Fatalf("formatted text is refused:\n%s\n%s", once, rendered(t, diags, messages.English))
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("formatting changed the job (-before +after):\n%s", diff)
		}
		twice, _ := Format("fuzz.hcl", once)
		if !bytes.Equal(once, twice) {
			t.Fatalf("formatting twice differs:\n%s\n---\n%s", once, twice)
		}
	})
}

// FuzzSurvey compares the survey with the parser's own scanner, the slow
// obvious twin: a text that passes the survey holds no more tokens and is
// nested no deeper than the survey's limits promise.
func FuzzSurvey(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		limits := Limits{Tokens: 200, Depth: 10}.withDefaults()
		s := newSource("fuzz.hcl", src)
		if _, _, refused := survey(s, limits); refused != nil {
			return
		}
		tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
		depth, deepest := 0, 0
		for _, token := range tokens {
			switch token.Type {
			case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
				hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
				depth++
			case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc,
				hclsyntax.TokenTemplateSeqEnd:
				depth = max(0, depth-1)
			}
			deepest = max(deepest, depth)
		}
		if deepest > limits.Depth {
			t.Errorf("nested %d deep", deepest)
		}
		// Literals of quoted texts are not counted by the survey: one between two signs.
		if len(tokens) > 2*limits.Tokens+2*bytes.Count(src, []byte("$"))+2*bytes.Count(src, []byte("%"))+2 {
			t.Errorf("%d tokens", len(tokens))
		}
	})
}
