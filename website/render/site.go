package render

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"nomadlike/internal/messages"
)

//go:embed assets/page.html assets/site.css assets/site.js assets/search.js
var assets embed.FS

// Languages of the guides.
var Languages = []messages.Language{messages.English, messages.Chinese}

// Site renders everything below source, which is the directory website of a
// checkout. The files are returned by their paths. version stands on every page.
// Errors name the file.
func Site(source fs.FS, version string) (map[string][]byte, error) {
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("parse layout: %w", err)
	}
	files := make(map[string][]byte)
	for _, name := range []string{"site.css", "site.js", "search.js"} {
		if files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return nil, fmt.Errorf("read asset: %w", err)
		}
	}
	if err := copyFiles(files, source); err != nil {
		return nil, err
	}
	elsewhere, err := readMoved(source)
	if err != nil {
		return nil, err
	}
	pages, err := collect(source)
	if err != nil {
		return nil, err
	}
	byFile := make(map[string]*page, len(pages))
	for _, p := range pages {
		byFile[p.file] = p
	}
	resolve := func(from *page, file string) (string, error) {
		if _, ok := files[file]; ok {
			return "/docs/" + file, nil
		}
		if example, ok := strings.CutPrefix(file, "examples/"); ok {
			return url(from.language, "examples") + "#" + strings.ReplaceAll(example, ".", ""), nil
		}
		p, ok := byFile[file]
		if !ok {
			return "", errors.New("no such page")
		}
		return p.url(), nil
	}
	for _, p := range pages {
		if err := p.render(source, resolve); err != nil {
			return nil, err
		}
	}
	for _, language := range Languages {
		if err := write(files, layout, language, pages, elsewhere[language], version); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// collect reads the pages of all languages.
func collect(source fs.FS) ([]*page, error) {
	var pages []*page
	add := func(language messages.Language, dir, below string) error {
		names, err := fs.Glob(source, dir+"/*.md")
		if err != nil {
			return fmt.Errorf("list %s: %w", dir, err)
		}
		for _, file := range names {
			text, err := fs.ReadFile(source, file)
			if err != nil {
				return fmt.Errorf("read page: %w", err)
			}
			name := below + strings.TrimSuffix(path.Base(file), ".md")
			pages = append(pages, &page{language: language, name: name, file: file, source: text})
		}
		return nil
	}
	for _, language := range Languages {
		if err := add(language, "guide/"+string(language), ""); err != nil {
			return nil, err
		}
		if err := add(language, "reference/"+string(language), "reference/"); err != nil {
			return nil, err
		}
		examples, err := examples(source, language)
		if err != nil {
			return nil, err
		}
		refusals, err := errorMessages(source, language)
		if err != nil {
			return nil, err
		}
		pages = append(pages, examples, refusals, events(language))
	}
	if err := add(messages.English, "design", "design/"); err != nil { // decisions are written in English
		return nil, err
	}
	return append(pages, designIndex(pages)), nil
}

// group is a part of the navigation.
type group struct {
	Title string
	Pages []entry
}

type entry struct {
	Name, URL, Title string
	Here             bool
}

// topics lists the pages of a language in the order of the links of its index,
// then those that it does not name.
func topics(language messages.Language, pages []*page) []*page {
	var own []*page
	var index []byte
	for _, p := range pages {
		if p.language == language && !strings.HasPrefix(p.name, "design/") {
			own = append(own, p)
			if p.name == "index" {
				index = p.source
			}
		}
	}
	place := func(p *page) int {
		if p.name == "index" {
			return -1
		}
		if at := bytes.Index(index, []byte("("+path.Base(p.file)+")")); at >= 0 && !strings.Contains(p.name, "/") {
			return at
		}
		if at := bytes.Index(index, []byte("/"+path.Base(p.file)+")")); at >= 0 {
			return at
		}
		return len(index)
	}
	slices.SortStableFunc(own, func(a, b *page) int { return place(a) - place(b) })
	return own
}

// groups is the navigation as it stands on a page: the headings of the index with
// the pages that they list. What the index does not list comes last, with the
// reference; what it lists before its first heading, first.
func groups(language messages.Language, own []*page, here string) []group {
	say := func(id string) string { return messages.Text(language, id, nil) }
	all := []group{{Title: say("docs.guides")}}
	under := make(map[string]int) // file to its group
	for _, p := range own {
		if p.name != "index" {
			continue
		}
		for line := range strings.Lines(string(p.source)) {
			if title, heading := strings.CutPrefix(line, "## "); heading {
				all = append(all, group{Title: strings.TrimSpace(title)})
			}
			for _, to := range linked.FindAllStringSubmatch(line, -1) {
				under[path.Join(path.Dir(p.file), to[1])] = len(all) - 1
			}
		}
		under[p.file] = 0
	}
	for _, p := range own {
		at, listed := under[p.file]
		if !listed {
			at = len(all) - 1
		}
		all[at].Pages = append(all[at].Pages, entry{Name: p.name, URL: p.url(), Title: p.short(), Here: p.name == here})
	}
	last := &all[len(all)-1]
	last.Pages = append(last.Pages, entry{
		URL: url(messages.English, "design/index"), Title: say("docs.design"), Here: strings.HasPrefix(here, "design/"),
	})
	return all
}

// linked is a link of Markdown to another page.
var linked = regexp.MustCompile(`\]\(([^)#]+\.md)`)

// texts are the words of the layout, which are not of a page.
func texts(say func(id string) string) map[string]string {
	return map[string]string{
		"contents": say("docs.contents"), "copied": say("docs.copied"), "copy": say("docs.copy"), "dark": say("docs.dark"),
		"language": say("docs.language"), "menu": say("docs.menu"), "nothing": say("docs.nothing"), "pages": say("docs.pages"),
		"search": say("docs.search"), "skip": say("docs.skip"),
	}
}

// write puts the files of a language to the others.
func write(files map[string][]byte, layout *template.Template, language messages.Language, pages []*page, elsewhere moved, version string) error {
	own := topics(language, pages)
	type topic struct {
		Name  string `json:"name"`
		Title string `json:"title"`
	}
	var listed []topic
	var found []section
	for _, p := range own {
		listed = append(listed, topic{p.name, p.title})
		found = append(found, p.sections...)
	}
	say := func(id string) string { return messages.Text(language, id, nil) }
	for _, p := range pages {
		if p.language != language {
			continue
		}
		other := messages.Chinese
		if language == messages.Chinese {
			other = messages.English
		}
		twin := url(other, "")
		if slices.ContainsFunc(pages, func(q *page) bool { return q.language == other && q.name == p.name }) {
			twin = url(other, p.name)
		}
		var html bytes.Buffer
		err := layout.Execute(&html, map[string]any{
			"Lang": map[messages.Language]string{messages.English: "en", messages.Chinese: "zh-CN"}[language], "Language": language,
			"Title": p.title, "Body": template.HTML(p.body), // rendered above, without the HTML of its source
			"Groups": groups(language, own, p.name), "Headings": p.headings, "Twin": twin, "Home": url(language, ""), "Version": version, "Text": texts(say), "Moved": elsewhere.of(language, p.name),
		})
		if err != nil {
			return fmt.Errorf("lay out %s: %w", p.file, err)
		}
		base := string(language) + "/" + p.name
		files[base+".html"], files[base+".md"] = html.Bytes(), p.source
	}
	for name, value := range map[string]any{"topics.json": listed, "search.json": found} {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		files[string(language)+"/"+name] = data
	}
	return nil
}
