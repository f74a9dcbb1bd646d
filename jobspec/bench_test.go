package jobspec

import "testing"

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"small", "design", "expressions"} {
		src := read(b, "testdata/good/"+name+".hcl")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, diags := Parse("job.hcl", src, Options{}); diags.HasErrors() {
					b.Fatal(diags[0])
				}
			}
		})
	}
}

func BenchmarkFormat(b *testing.B) {
	src := read(b, "testdata/good/design.hcl")
	b.ReportAllocs()
	for b.Loop() {
		Format("job.hcl", src)
	}
}

func BenchmarkSurvey(b *testing.B) {
	src := newSource("job.hcl", read(b, "testdata/good/design.hcl"))
	limits := Limits{}.withDefaults()
	b.SetBytes(int64(len(src.text)))
	for b.Loop() {
		src.inserts = nil
		if _, _, refused := survey(src, limits); refused != nil {
			b.Fatal(refused.id)
		}
	}
}
