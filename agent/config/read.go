package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
)

// read fills what a walk goes over with what a block of a file says.
func (l *loader) read(body hcl.Body, walk func(visitor)) {
	expected := &schema{}
	walk(expected)
	content, diagnostics := body.Content(&expected.BodySchema)
	l.diagnostics = append(l.diagnostics, diagnostics...)
	if content != nil {
		walk(&reader{l, content, nil})
	}
}

// schema lists what a block of a file may hold.
type schema struct{ hcl.BodySchema }

func (s *schema) label(*string)        {}
func (s *schema) rule(func(*resolver)) {}

func (s *schema) setting(name string, v *value) {
	if !v.flagOnly {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name, Required: v.required})
	}
}

func (s *schema) block(b block) {
	header := hcl.BlockHeaderSchema{Type: b.name}
	if b.label != "" {
		header.LabelNames = []string{b.label}
	}
	s.Blocks = append(s.Blocks, header)
}

// reader fills what it visits from the content of a block.
type reader struct {
	loader  *loader
	content *hcl.BodyContent
	labels  []string
}

func (r *reader) rule(func(*resolver)) {}

func (r *reader) label(to *string) { *to = r.labels[0] }

func (r *reader) setting(name string, v *value) {
	if attribute := r.content.Attributes[name]; attribute != nil {
		r.loader.diagnostics = append(r.loader.diagnostics, gohcl.DecodeExpression(attribute.Expr, nil, v.said)...)
	}
}

func (r *reader) block(b block) {
	found := r.content.Blocks.OfType(b.name)
	if len(found) > 1 && !b.many {
		r.loader.diagnostics = append(r.loader.diagnostics, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: fmt.Sprintf("Duplicate %s block", b.name), Subject: &found[1].DefRange,
			Detail: fmt.Sprintf("Only one %s block is allowed. Another was defined at %s.", b.name, found[0].DefRange),
		})
		return
	}
	for i, block := range found {
		r.loader.read(block.Body, func(v visitor) {
			if inner, reads := v.(*reader); reads {
				inner.labels = block.Labels
			}
			b.walk(v, b.count+i)
		})
	}
}
