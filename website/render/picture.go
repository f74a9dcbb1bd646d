package render

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// drawing is the name of an image's attribute that holds what stands in its place.
const drawing = "drawing"

// style is what a picture says about its colours for those who see it by itself.
// On a page the style of the site does, which follows the choice of light or dark;
// the content policy lets no other in.
var style = regexp.MustCompile(`(?s)\s*<style>.*?</style>`)

// draw returns the picture that an image of the page shows, to stand in the page
// as it is. Pictures are drawings: files that end in .svg.
func (p *page) draw(source fs.FS, image *ast.Image, alt string) ([]byte, error) {
	file := path.Join(path.Dir(p.file), string(image.Destination))
	picture, err := fs.ReadFile(source, file)
	if err != nil {
		return nil, fmt.Errorf("%s: picture %s: %w", p.file, image.Destination, err)
	}
	picture = bytes.TrimSpace(style.ReplaceAll(picture, nil))
	rest, ok := bytes.CutPrefix(picture, []byte("<svg "))
	if !ok || path.Ext(file) != ".svg" {
		return nil, fmt.Errorf("%s: picture %s: %w", p.file, image.Destination, errNoDrawing)
	}
	return fmt.Appendf(nil, `<span class="picture" tabindex="0"><svg role="img" aria-label="%s" %s</span>`, html.EscapeString(alt), rest), nil
}

var errNoDrawing = errors.New("no drawing: a file that ends in .svg and begins with <svg")

// drawings shows images as the drawings that they are.
type drawings struct{}

// RegisterFuncs is called by goldmark.
func (drawings) RegisterFuncs(registry renderer.NodeRendererFuncRegisterer) {
	registry.Register(ast.KindImage, func(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if picture, ok := node.AttributeString(drawing); ok && entering {
			_, _ = w.Write(picture.([]byte)) // goldmark looks at the writer's error
		}
		return ast.WalkSkipChildren, nil
	})
}
