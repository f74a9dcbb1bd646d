package jobspec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
)

// hostile are files that ask for time, memory or stack without end, by what
// they try. All must be refused.
func hostile() map[string]string {
	job := func(body string) string { return "job \"a\" {\n" + body + "\n  task { command = \"true\" }\n}\n" }
	laughs := "locals {\n  a0 = \"ha\"\n"
	objects := "locals {\n  b0 = [1]\n"
	squares := "locals {\n  c0 = 1e300\n"
	for i := range 40 {
		laughs += fmt.Sprintf("  a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
		objects += fmt.Sprintf("  b%d = [local.b%d, local.b%d]\n", i+1, i, i)
		squares += fmt.Sprintf("  c%d = local.c%d * local.c%d\n", i+1, i, i)
	}
	chain := "locals {\n"
	for i := range 5000 {
		chain += fmt.Sprintf("  l%d = local.l%d\n", i, i+1)
	}
	same := strings.Repeat("a", 1000)
	return map[string]string{
		"a million brackets":           "a = " + strings.Repeat("[", 1_000_000),
		"a million braces":             strings.Repeat("a {", 300_000),
		"a million parentheses":        "a = " + strings.Repeat("(", 1_000_000),
		"a million interpolations":     "a = " + strings.Repeat(`"${`, 300_000),
		"a million negations":          "a = " + strings.Repeat("!", 1_000_000) + "true",
		"a million minus signs":        "a = " + strings.Repeat("- ", 500_000) + "1",
		"a million conditions":         "a = " + strings.Repeat("true ? 1 : ", 90_000) + "1",
		"a million sums":               "a = 1" + strings.Repeat("+1", 500_000),
		"a million indexes":            "a = b" + strings.Repeat("[0]", 300_000),
		"a million splats":             "a = b" + strings.Repeat("[*]", 300_000),
		"a million steps":              "a = b" + strings.Repeat(".c", 500_000),
		"a million calls":              "a = " + strings.Repeat("upper(", 150_000),
		"a million directives":         "a = \"" + strings.Repeat("%{if true}", 100_000) + "\"",
		"a million elements":           job("  meta = { a = [" + strings.Repeat("1,", 500_000) + "] }"),
		"a million arguments":          job(strings.Repeat("  nodes = 1\n", 80_000)),
		"a million blocks":             job(strings.Repeat("task {}\n", 100_000)),
		"a million labels":             "job " + strings.Repeat(`"a" `, 250_000) + "{}",
		"a million quotes":             "a = " + strings.Repeat(`"`, 1_000_000),
		"a million odd characters":     strings.Repeat("€", 340_000),
		"a million backticks":          strings.Repeat("`", 1_000_000),
		"a million ampersands":         strings.Repeat("& ", 500_000),
		"a million semicolons":         strings.Repeat(";", 1_000_000),
		"a million lines in a quote":   "a = \"" + strings.Repeat("\n", 1_000_000) + "\"",
		"a million lines in a heredoc": "a = <<EOF\n" + strings.Repeat("a\n", 500_000) + "EOF\n",
		"a million dollars":            "a = \"" + strings.Repeat("$", 1_000_000) + "\"",
		"a million percents":           "a = <<EOF\n" + strings.Repeat("%", 1_000_000) + "\nEOF\n",
		"a million heredocs":           strings.Repeat("a = <<E\n", 100_000),
		"a million empty comments":     strings.Repeat("/**/", 250_000),
		"a million digits":             "a = " + strings.Repeat("1", 1_000_000),
		"a huge exponent":              job("  description = 1e999999999"),
		"a hundred megabytes":          "a = \"" + strings.Repeat("a", 100<<20) + "\"",
		"a hundred thousand mistakes":  job(strings.Repeat("x = y\n", 7_000) + strings.Repeat("z {}\n", 5_000)),
		"mistakes on one line":         job(strings.Repeat("z {x=1}", 5_000)),
		"unknown names":                "locals {\n" + names(1500, "local") + "}\n" + job("  meta = {\n"+references(1500)+"}"),
		"the billion laughs":           laughs + "}\n" + job("  description = local.a40"),
		"a billion shared lists":       objects + "}\n" + job("  description = jsonencode(local.b40)"),
		"a billion comparisons":        objects + "}\n" + job("  ssh = local.b40 == local.b40"),
		"squares of squares":           squares + "}\n" + job("  description = \"${local.c40}\""),
		"a chain of locals":            chain + "  l5000 = 1\n}\n" + job("  nodes = local.l0"),
		"a circle of locals":           "locals {\n  a = local.b\n  b = local.c\n  c = local.a\n}\n" + job(""),
		"nested loops":                 job("  meta = { a = jsonencode([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : [for d in range(1000) : a]]]]) }"),
		"nested loops of constants":    job("  nodes = length([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]])"),
		"nested template loops":        job("  description = \"%{for a in range(1000)}%{for b in range(1000)}%{for c in range(1000)}x%{endfor}%{endfor}%{endfor}\""),
		"nested object loops":          job("  nodes = length({for a in range(1000) : a => {for b in range(1000) : b => {for c in range(1000) : c => 1}}})"),
		"loops with conditions":        job("  nodes = length([for a in range(1000) : a if length([for b in range(1000) : b if length([for c in range(1000) : c]) > 0]) > 0])"),
		"splats of splats":             job("  nodes = length([range(1000)][*][*])\n  ssh = length(flatten([for a in range(1000) : range(1000)][*])) > 0"),
		"padding by width":             job(`  description = format("%999999999d", 1)`),
		"padding by precision":         job(`  description = format("%.999999999f", 1)`),
		"one argument many times":      job(`  description = format("` + strings.Repeat("%[1]s", 9000) + `", "` + same + `")`),
		"joined by a long text":        job(`  description = join("` + same + `", [for a in range(1000) : join("` + same + `", range(1000))])`),
		"replaced by a long text":      job(`  description = replace(replace("` + same + `", "a", "` + same + `"), "a", "` + same + `")`),
		"trimmed by a long text":       job(`  description = trim(join("", [for a in range(1000) : "aaaaaaaaaa"]), join("", [for a in range(1000) : "bbbbbbbbbb"]))`),
		"JSON in JSON":                 job(`  description = jsondecode(join("", [for a in range(1000) : "[[[[[[[[[[[[[[["]))`),
		"a long number as text":        job(`  nodes = join("", [for a in range(1000) : "11111111111111111111"])`),
		"long numbers in a list":       job(`  nodes = max(split(",", join(",", [for a in range(100) : join("", [for b in range(100) : "11111111111111111111"])]))...)`),
		"parsed digits":                job(`  nodes = parseint(join("", [for a in range(1000) : "zzzzzzzzzz"]), 36)`),
		"distinct":                     job(`  nodes = length(distinct(flatten([for a in range(100) : [for b in range(100) : "${a}.${b}"]])))`),
		"types in types":               "variable \"a\" { type = " + strings.Repeat("list(", 60) + "string" + strings.Repeat(")", 60) + " }\nvariable \"b\" {type = " + strings.Repeat("list(", 9000) + "}\n",
		"deep JSON keys":               job("  meta = { (jsonencode([for a in range(1000) : [for b in range(1000) : b]])) = 1 }"),
		"dense quotes":                 job("  description = \"" + strings.Repeat("(", 20_000) + "\"\n  meta = " + strings.Repeat("[", 65)),
	}
}

func names(n int, prefix string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s_%035d = 1\n", prefix, i)
	}
	return b.String()
}

func references(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d = local.locel_%035d\n", i, i)
	}
	return b.String()
}

// A hostile file costs less than 64 MB and 100 ms. Time is measured by the
// benchmark; the bound here only tells apart what ends from what does not, on
// a loaded machine under the race detector too.
const (
	hostileTimeMax   = 30 * time.Second
	hostileMemoryMax = 64 << 20
)

func TestHostileFilesAreRefusedCheaply(t *testing.T) {
	for name, src := range hostile() {
		t.Run(name, func(t *testing.T) {
			text := []byte(src)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, _, diags := Parse("hostile.hcl", text, Options{})
			spent := time.Since(start)
			runtime.ReadMemStats(&after)
			if !diags.HasErrors() {
				t.Error("it was accepted")
			}
			if len(diags) > DiagnosticsMax+1 {
				t.Errorf("%d diagnostics", len(diags))
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s, %d KiB allocated: %s", spent, allocated>>10, diags[0].Text(messages.English))
			if spent > hostileTimeMax {
				t.Errorf("it took %s", spent)
			}
			if allocated > hostileMemoryMax {
				t.Errorf("it allocated %d MiB", allocated>>20)
			}
		})
	}
}

// TestLargestHonestFile is the other side: a long script and a large
// environment are fine.
func TestLargestHonestFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("job \"large\" {\n  task {\n    command = \"sh -c $SCRIPT\"\n    env = {\n      SCRIPT = <<EOT\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "echo this is line %d of a long script\n", i)
	}
	b.WriteString("EOT\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "      NAME_%d = \"%s\"\n", i, strings.Repeat("v", 300))
	}
	b.WriteString("    }\n  }\n}\n")
	job, _ := parseOK(t, b.String(), Options{})
	if len(job.Task.Env) != 1001 {
		t.Errorf("%d variables", len(job.Task.Env))
	}
}

func BenchmarkHostile(b *testing.B) {
	files := hostile()
	for name, src := range files {
		b.Run(name, func(b *testing.B) {
			text := []byte(src)
			b.ReportAllocs()
			for b.Loop() {
				Parse("hostile.hcl", text, Options{})
			}
		})
	}
}
