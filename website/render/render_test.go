package render

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

// site is the real site.
func site(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Site(os.DirFS(".."), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	idOf      = regexp.MustCompile(`\bid="([^"]+)"`)
	linkOf    = regexp.MustCompile(`\bhref="([^"]+)"`)
	headingOf = regexp.MustCompile(`<h[2-4] id="([^"]+)"`)
)

// TestLinksOfSite follows every link of every page to a page, an anchor or a file
// that is there.
func TestLinksOfSite(t *testing.T) {
	files := site(t)
	ids := make(map[string]map[string]bool)
	for name, data := range files {
		if page, ok := strings.CutSuffix(name, ".html"); ok {
			ids[page] = make(map[string]bool)
			for _, found := range idOf.FindAllSubmatch(data, -1) {
				ids[page][string(found[1])] = true
			}
		}
	}
	if len(ids) < 100 {
		t.Fatalf("%d pages", len(ids))
	}
	followed := 0
	for page := range ids {
		for _, found := range linkOf.FindAllSubmatch(files[page+".html"], -1) {
			to, anchor, _ := strings.Cut(string(found[1]), "#")
			if strings.Contains(to, "://") || !strings.HasPrefix(to, "/docs/") && to != "" {
				continue
			}
			target := page
			if to != "" {
				target = strings.TrimPrefix(to, "/docs/")
			}
			if strings.HasSuffix(target, "/") {
				target += "index"
			}
			if _, ok := files[target]; ok && path.Ext(target) != "" {
				continue
			}
			known, ok := ids[target]
			switch anchor = unescaped(anchor); {
			case !ok:
				t.Errorf("%s: there is no %s", page, to)
			case anchor != "" && !known[anchor]:
				t.Errorf("%s: %s has no %q", page, target, anchor)
			}
			followed++
		}
	}
	t.Logf("%d pages, %d links", len(ids), followed)
}

// unescaped undoes what goldmark and html/template do to anchors.
func unescaped(anchor string) string {
	var b strings.Builder
	for i := 0; i < len(anchor); i++ {
		if anchor[i] == '%' && i+2 < len(anchor) {
			var c byte
			for _, digit := range []byte(strings.ToLower(anchor[i+1 : i+3])) {
				c = c<<4 | byte(strings.IndexByte("0123456789abcdef", digit))
			}
			b.WriteByte(c)
			i += 2
			continue
		}
		b.WriteByte(anchor[i])
	}
	return b.String()
}

// TestTopicsOfSite demands that the index of each language names every guide, and
// that both languages have the same pages.
func TestTopicsOfSite(t *testing.T) {
	files := site(t)
	names := make(map[messages.Language][]string)
	for _, language := range Languages {
		var topics []struct{ Name, Title string }
		if err := json.Unmarshal(files[string(language)+"/topics.json"], &topics); err != nil {
			t.Fatal(err)
		}
		index := string(files[string(language)+"/index.md"])
		for _, topic := range topics {
			names[language] = append(names[language], topic.Name)
			if topic.Title == "" {
				t.Errorf("%s %s has no title", language, topic.Name)
			}
			if !strings.Contains(topic.Name, "/") && topic.Name != "index" && topic.Name != "examples" && !strings.Contains(index, "("+topic.Name+".md)") {
				t.Errorf("index.md of %s does not name %s", language, topic.Name)
			}
		}
	}
	if en, zh := strings.Join(names[messages.English], " "), strings.Join(names[messages.Chinese], " "); en != zh {
		t.Errorf("pages differ:\nen %s\nzh %s", en, zh)
	}
	for _, want := range []string{"queue", "reference/cli", "reference/errors", "examples"} {
		if !strings.Contains(" "+strings.Join(names[messages.English], " ")+" ", " "+want+" ") {
			t.Errorf("there is no page %s", want)
		}
	}
}

// TestPage renders what pages are made of.
func TestPage(t *testing.T) {
	source := fstest.MapFS{
		"guide/en/index.md":        {Data: []byte("# Guide\n\n- [One](one.md)\n")},
		"guide/zh/index.md":        {Data: []byte("# 指南\n\n- [一](one.md#队列-预测)\n")},
		"guide/en/monitoring.md":   {Data: []byte("# Monitoring\n\n## Events\n")},
		"guide/zh/monitoring.md":   {Data: []byte("# 监控\n\n## 事件\n")},
		"guide/en/one.md":          {Data: []byte("# One\n\nA <script>alert(1)</script> & text, see [zh](../zh/one.md) and [hello](../../examples/hello.hcl).\n\n## Same\n\n## Same\n")},
		"guide/zh/one.md":          {Data: []byte("# 一\n\n## 队列 (预测)\n\n断点\n续训，\nrank\n每个 `a`\n任务 *b*\n（一）\n**队列**\n2 个\n")},
		"examples/hello.hcl":       {Data: []byte("job \"hello\" {}\n")},
		"design/0001-one-codec.md": {Data: []byte("# 0001: one codec\n")},
	}
	files, err := Site(source, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	one, chinese := string(files["en/one.html"]), string(files["zh/one.html"])
	for _, want := range []string{
		`<a href="/docs/zh/one">zh</a>`, `<a href="/docs/en/examples#hellohcl">hello</a>`, `id="same"`, `id="same-1"`, `nomadlike 1.2.3`,
		`aria-current="page">One</a>`, `href="/docs/zh/one" hreflang="zh"`, `href="/docs/en/design/index"`,
	} {
		if !strings.Contains(one, want) {
			t.Errorf("page has no %s:\n%s", want, one)
		}
	}
	if strings.Contains(one, "alert(1)</script>") {
		t.Errorf("a script of the source is on the page:\n%s", one)
	}
	if !strings.Contains(chinese, `id="队列-预测"`) || !strings.Contains(strings.Join(strings.Fields(chinese), " "), "断点续训，rank 每个 <code>a</code> 任务 <em>b</em> （一）<strong>队列</strong> 2 个") {
		t.Errorf("Chinese is broken:\n%s", chinese)
	}
	var sections []section
	if err := json.Unmarshal(files["zh/search.json"], &sections); err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.Page == "one" && (s.Title != "一" || s.ID != "队列-预测" || s.Head != "队列 (预测)") {
			t.Errorf("section %+v", s)
		}
	}
}

// TestBadPages names the file of what cannot be rendered.
func TestBadPages(t *testing.T) {
	for text, want := range map[string]string{
		"# A\n\n[gone](gone.md)\n": "guide/en/a.md: link to gone.md: no such page",
		"no title\n":               "guide/en/a.md: no title",
		"# A\n\n![b](b.svg)\n":     "guide/en/a.md: picture b.svg",
	} {
		_, err := Site(fstest.MapFS{"guide/en/a.md": {Data: []byte(text)}}, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

// TestErrorsHaveAnchors finds every error that has a hint by its id, in each language:
// that is where pages and the command line lead.
func TestErrorsHaveAnchors(t *testing.T) {
	data, err := os.ReadFile("../reference/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var codes map[string]string
	if err := json.Unmarshal(data, &codes); err != nil {
		t.Fatal(err)
	}
	files, found := site(t), 0
	for id := range codes {
		if !messages.Has(messages.English, id+hint) {
			continue // nothing can be done about it
		}
		found++
		for _, language := range Languages {
			if fault := missing(files, string(language)+"/reference/errors#"+strings.ReplaceAll(id, ".", "")); fault != "" {
				t.Errorf("%s: %s", id, fault)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d errors have hints", found)
	}
	page := string(files["zh/reference/errors.html"])
	if strings.Contains(page, "|") && regexp.MustCompile(`\{\w+\|`).MatchString(page) {
		t.Error("a choice of words is not made")
	}
}

// TestPictures: a drawing stands in its page, without the style that a page may not
// have, and both languages have the same drawing with other words.
func TestPictures(t *testing.T) {
	page := string(site(t)["en/gang.html"])
	if !strings.Contains(page, `<svg role="img" aria-label="Three ranks and three free machines`) || strings.Contains(page, "<style") {
		t.Error("the page of gangs has no drawing, or one with a style of its own")
	}
	words := regexp.MustCompile(`>[^<>]*</text>`)
	names, err := filepath.Glob("../pictures/en/*.svg")
	if err != nil || len(names) < 5 {
		t.Fatalf("%d drawings, %v", len(names), err)
	}
	for _, name := range names {
		english, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		chinese, err := os.ReadFile(filepath.Join("../pictures/zh", filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		if words.ReplaceAllString(string(english), "") != words.ReplaceAllString(string(chinese), "") {
			t.Errorf("%s differs between the languages in more than its words", filepath.Base(name))
		}
		if strings.Contains(string(english), "style=") || strings.Contains(string(english), " id=") {
			t.Errorf("%s has styles or ids that pages may not have", name)
		}
	}
}

// TestGroups: the navigation has the headings of the index, and what the index does
// not name stands under the last one.
func TestGroups(t *testing.T) {
	page := string(site(t)["en/queue.html"])
	at := 0
	for _, want := range []string{"<h2>Start</h2>", `href="/docs/en/first-cluster"`, "<h2>Run jobs</h2>", `href="/docs/en/queue" aria-current="page"`, "<h2>Reference</h2>", `href="/docs/en/reference/errors"`} {
		next := strings.Index(page[at:], want)
		if next < 0 {
			t.Fatalf("the navigation has no %s where it belongs", want)
		}
		at += next
	}
}

//go:generate go test -count=1 -run TestAnchorsStay -rewrite .

// TestAnchorsStay: a section of a guide that once had an anchor has it still, or
// moved.json says where it stands now. -rewrite adds new anchors to the list and takes
// none away.
func TestAnchorsStay(t *testing.T) {
	source := os.DirFS("..")
	elsewhere, err := readMoved(source)
	if err != nil {
		t.Fatal(err)
	}
	files := site(t)
	var listed []string
	there := func(language messages.Language, place string) bool {
		name, anchor, _ := strings.Cut(place, "#")
		page, ok := files[string(language)+"/"+name+".html"]
		return ok && (anchor == "" || strings.Contains(string(page), `id="`+anchor+`"`))
	}
	for _, language := range Languages {
		for name, data := range files {
			guide, ok := strings.CutSuffix(name, ".html")
			if guide, below := strings.CutPrefix(guide, string(language)+"/"); ok && below && !strings.Contains(guide, "/") && guide != "examples" {
				for _, found := range headingOf.FindAllSubmatch(data, -1) {
					listed = append(listed, string(language)+" "+guide+"#"+string(found[1]))
				}
			}
		}
		for from, to := range elsewhere[language] {
			if there(language, from) {
				t.Errorf("moved.json: %s %s is where it was", language, from)
			}
			if !there(language, to) {
				t.Errorf("moved.json: there is no %s %s", language, to)
			}
			listed = append(listed, string(language)+" "+from)
		}
	}
	const list = "testdata/anchors.golden"
	old, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(old)) {
		if line = strings.TrimSpace(line); !slices.Contains(listed, line) {
			t.Errorf("%s is gone: say in website/moved.json where it stands now", line)
		}
	}
	slices.Sort(listed)
	golden.Assert(t, list, strings.Join(slices.Compact(listed), "\n")+"\n")
}

// TestEntriesOfPages follows every link of the web pages to the guides, in each
// language: the table of entries that forms and notes have.
func TestEntriesOfPages(t *testing.T) {
	data, err := os.ReadFile("../../ui/src/parts/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatal("there are no entries")
	}
	files := site(t)
	for name, raw := range entries {
		places := make(map[messages.Language]string)
		var both string
		if err := json.Unmarshal(raw, &both); err == nil {
			places[messages.English], places[messages.Chinese] = both, both
		} else if err := json.Unmarshal(raw, &places); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, language := range Languages {
			if fault := missing(files, string(language)+"/"+places[language]); fault != "" {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// missing says what a place of the site lacks; "": it is there.
func missing(files map[string][]byte, place string) string {
	page, anchor, named := strings.Cut(place, "#")
	text, ok := files[page+".html"]
	if !ok {
		return "there is no page " + page
	}
	if named && !bytes.Contains(text, []byte(`id="`+anchor+`"`)) {
		return page + " has no place " + anchor
	}
	return ""
}

// A row of a table has an id where it begins with one word of code or is a label.
func TestRowsHaveAnchors(t *testing.T) {
	source := fstest.MapFS{
		"guide/en/monitoring.md": {Data: []byte("# Monitoring\n\n## Events\n")},
		"guide/zh/monitoring.md": {Data: []byte("# 监控\n\n## 事件\n")},
		"design/0001-one.md":     {Data: []byte("# 0001: one\n")},
	}
	for _, language := range Languages {
		language := string(language)
		source["guide/"+language+"/index.md"] = &fstest.MapFile{Data: []byte("# Guide\n\n- [One](one.md)\n")}
		source["guide/"+language+"/one.md"] = &fstest.MapFile{Data: []byte("# One\n\n| a |\n|---|\n| `top` |\n\n## job\n\n| argument | x |\n|---|---|\n| *label* | |\n| `nodes` | |\n| `nodes` | |\n| `a` and b | |\n| `-for SPAN` | |\n| plain | |\n")}
	}
	files, err := Site(source, "1")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, found := range regexp.MustCompile(`<tr id="([^"]+)"`).FindAllSubmatch(files["zh/one.html"], -1) {
		ids = append(ids, string(found[1]))
	}
	if want := []string{"job.label", "job.nodes", "job.-for"}; !slices.Equal(ids, want) {
		t.Errorf("rows %v, want %v", ids, want)
	}
	for place, want := range map[string]string{
		"zh/one#job.nodes": "", "zh/one": "", "zh/one#job.gone": "zh/one has no place job.gone", "zh/two#job": "there is no page zh/two",
	} {
		if got := missing(files, place); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
}
