package jobspec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// nearLimits are files just inside the survey's bounds, each as costly as it
// can be in one way.
func nearLimits() map[string]string {
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	job := func(body string) string { return "job \"a\" {\n" + body + "\n  task { command = \"true\" }\n}\n" }
	nested := strings.Repeat("[", 60) + strings.Repeat("-", 400) + "1" + strings.Repeat("]", 60)
	return map[string]string{
		"arguments":            job(repeat(7900, "  a%d = 1\n")),
		"arguments on a line":  "job \"a\" { " + repeat(7900, "a%d = 1, ") + "nodes = 1 }\n",
		"variables":            repeat(2900, "variable \"v%d\" { default = 1 }\n") + job(""),
		"unset variables":      repeat(3900, "variable \"v%d\" {}\n") + job(""),
		"locals":               "locals {\n" + repeat(7900, "a%d = 1\n") + "}\n" + job(""),
		"locals of one local":  "locals {\n  a = 1\n" + repeat(5200, "a%d = local.a\n") + "}\n" + job(""),
		"variables of the env": job("  meta = {" + repeat(6000, "a%d = \"${1}\",") + "}"),
		"blocks":               job(repeat(5200, "resources \"a%d\" {}\n")),
		"devices":              job("resources {\n" + repeat(2600, "device \"nvidia/gpu\" { count = %d }\n") + "}"),
		"ports":                job("resources {\n" + repeat(2600, "port \"p%d\" { static = 1 }\n") + "}"),
		"datasets":             job(repeat(5200, "dataset \"d%d\" {}\n")),
		"nodes":                job("placement {\n nodes = [" + repeat(10000, "\"n%d\",") + "]\n}"),
		"subtasks":             job("type = \"batch\"\nbatch {\n" + repeat(2600, "subtask \"s%d\" { command = \"a && b\" }\n") + "}"),
		"hooks":                job("task {\n" + repeat(2600, "hook \"h%d\" { command = \"a && b\" }\n") + "}"),
		"an environment":       job("  meta = {\n" + repeat(7000, "A_%d = \"b\"\n") + "}"),
		"a long environment":   job("  task {\n command = \"true\"\n env = {\n" + repeat(900, "A_%d = \""+strings.Repeat("b", 1000)+"\"\n") + "}\n}\n"),
		"a heredoc":            job("  description = <<EOT\n" + repeat(1200, "this is line %d of a text\n") + "EOT\n"),
		"one long line":        job("  description = \"" + strings.Repeat("训练", 170_000) + "\""),
		"deep and long":        job("  meta = { a = " + nested + " }"),
		"sums":                 job("  nodes = 1" + strings.Repeat("+1", 500)),
		"conditions":           job("  nodes = " + strings.Repeat("true ? 1 : ", 160) + "1"),
		"templates":            job("  description = \"" + strings.Repeat("${1}", 4000) + "\""),
		"directives":           job("  description = \"" + strings.Repeat("%{if true}", 400) + strings.Repeat("%{endif}", 100) + "\""),
		"unknown functions":    job(repeat(4500, "  a%d = upppr(1)\n")),
		"comments":             repeat(15_000, "# comment %d of a file that says nothing\n"),
		"references":           "variable \"a\" { default = [1] }\n" + job("  meta = {\n"+repeat(3000, "a%d = var.a[0]\n")+"}"),
		"repeated arguments":   job(strings.Repeat("nodes = 1\n", 7900)),
		"odd characters":       job(strings.Repeat("“", 30_000)),
	}
}

func TestFilesNearTheLimitsAreCheap(t *testing.T) {
	for name, src := range nearLimits() {
		t.Run(name, func(t *testing.T) {
			for what, run := range map[string]func(){
				"parse":  func() { Parse("near.hcl", []byte(src), Options{}) },
				"format": func() { Format("near.hcl", []byte(src)) },
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				run()
				spent := time.Since(start)
				runtime.ReadMemStats(&after)
				allocated := after.TotalAlloc - before.TotalAlloc
				t.Logf("%s: %s, %d KiB allocated", what, spent, allocated>>10)
				if spent > hostileTimeMax {
					t.Errorf("%s took %s", what, spent)
				}
				if allocated > formatPassesMax*hostileMemoryMax { // in all; far less at once
					t.Errorf("%s allocated %d MiB", what, allocated>>20)
				}
			}
		})
	}
}
