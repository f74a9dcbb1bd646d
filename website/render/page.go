package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"nomadlike/internal/messages"
)

// page is one page of one language.
type page struct {
	language messages.Language
	name     string // below the language: queue, reference/cli
	file     string // below website: guide/en/queue.md; links are relative to it
	source   []byte

	title    string
	headings []heading
	sections []section
	body     []byte // HTML
}

// heading is an entry of a page's own contents.
type heading struct {
	Level     int
	ID, Title string
}

// section is what stands below a heading: what a search finds.
type section struct {
	Page  string `json:"p"`
	Title string `json:"t"`           // of the page
	ID    string `json:"a,omitempty"` // anchor; "" at the top of the page
	Head  string `json:"h,omitempty"` // of the section
	Text  string `json:"x"`
}

// short is the title as the navigation has it: without what follows a colon.
func (p *page) short() string {
	short, _, _ := strings.Cut(p.title, "：")
	short, _, _ = strings.Cut(short, ": ")
	return short
}

// url is the path of a page on an agent.
func (p *page) url() string { return url(p.language, p.name) }

func url(language messages.Language, name string) string {
	if name == "index" {
		name = ""
	}
	return "/docs/" + string(language) + "/" + name
}

// markdowns render the two languages: between Chinese characters the end of a line
// is no space.
var markdowns = map[messages.Language]goldmark.Markdown{
	messages.English: markdown(),
	messages.Chinese: markdown(extension.NewCJK(extension.WithEastAsianLineBreaks(extension.EastAsianLineBreaksCSS3Draft))),
}

func markdown(extensions ...goldmark.Extender) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(append(extensions, extension.GFM)...), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(drawings{}, 100))), // before goldmark's own, at 1000
	)
}

// render fills in what the page's Markdown says. resolve turns the file that a
// link leads to into the path of its page; source has the pictures.
func (p *page) render(source fs.FS, resolve func(from *page, file string) (string, error)) error {
	markdown := markdowns[p.language]
	context := parser.NewContext(parser.WithIDs(&anchors{taken: make(map[string]int)}))
	document := markdown.Parser().Parse(text.NewReader(p.source), parser.WithContext(context))
	now := section{Page: p.name}
	var words strings.Builder
	var top ast.Node // the layout shows the title
	rows := make(map[string]bool)
	end := func() {
		now.Text = strings.Join(strings.Fields(words.String()), " ")
		words.Reset()
		if now.Text != "" || now.Head != "" {
			p.sections = append(p.sections, now)
		}
	}
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if node.Type() == ast.TypeBlock {
				words.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			id, _ := node.AttributeString("id")
			title := plain(node, p.source)
			if node.Level == 1 && p.title == "" {
				p.title, top = title, node
				return ast.WalkSkipChildren, nil
			}
			end()
			p.headings = append(p.headings, heading{Level: node.Level, ID: string(id.([]byte)), Title: title})
			now = section{Page: p.name, ID: string(id.([]byte)), Head: title}
			return ast.WalkSkipChildren, nil
		case *extast.TableRow:
			if id := rowID(now.ID, node, p.source); id != "" && !rows[id] {
				rows[id] = true
				node.SetAttributeString("id", []byte(id))
			}
		case *ast.Link:
			to, err := p.link(string(node.Destination), resolve)
			if err != nil {
				return ast.WalkStop, err
			}
			node.Destination = []byte(to)
		case *ast.Image:
			picture, err := p.draw(source, node, plain(node, p.source))
			if err != nil {
				return ast.WalkStop, err
			}
			node.SetAttributeString(drawing, picture)
		case *ast.Text:
			words.Write(node.Segment.Value(p.source))
			switch {
			case node.HardLineBreak() || node.SoftLineBreak() && p.language == messages.English:
				words.WriteByte(' ')
			case node.SoftLineBreak() && apart(node, p.source):
				node.Parent().InsertAfter(node.Parent(), node, ast.NewString([]byte(" "))) // walked next
			}
		case *ast.String:
			words.Write(node.Value)
		case *ast.FencedCodeBlock:
			lines(&words, node.Lines(), p.source)
		case *ast.CodeBlock:
			lines(&words, node.Lines(), p.source)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	end()
	if p.title == "" {
		return fmt.Errorf("%s: no title: begin it with a line like \"# Title\"", p.file)
	}
	for i := range p.sections {
		p.sections[i].Title = p.title
	}
	document.RemoveChild(document, top)
	var html bytes.Buffer
	if err := markdown.Renderer().Render(&html, p.source, document); err != nil {
		return fmt.Errorf("render %s: %w", p.file, err)
	}
	p.body = html.Bytes()
	return nil
}

// link returns where a link of the page leads on an agent.
func (p *page) link(to string, resolve func(from *page, file string) (string, error)) (string, error) {
	if to == "" || strings.HasPrefix(to, "#") || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to, nil
	}
	file, anchor, _ := strings.Cut(to, "#")
	page, err := resolve(p, path.Join(path.Dir(p.file), file))
	if err != nil {
		return "", fmt.Errorf("%s: link to %s: %w", p.file, to, err)
	}
	if anchor != "" {
		page += "#" + anchor
	}
	return page, nil
}

// plain is the text of a node without its marks.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if entering {
			switch n := n.(type) {
			case *ast.Text:
				b.Write(n.Segment.Value(source))
			case *ast.String:
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

func lines(b *strings.Builder, lines *text.Segments, source []byte) {
	for i := range lines.Len() {
		line := lines.At(i)
		b.Write(line.Value(source))
	}
}
