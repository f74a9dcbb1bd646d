package jobspec

import (
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"nomadlike/nomadlike/structs"
)

// functionSecret names a secret in a job file. It is no function that returns
// anything: it stands as the whole value of a variable of a task's environment, where
// the reader takes it for a reference. Anywhere else it is refused before anything is
// evaluated, so that no name, label, command or message can hold a value.
const functionSecret = "secret"

// secretText is how a job file names a secret.
func secretText(name string) string { return functionSecret + "(" + strconv.Quote(name) + ")" }

// environment is the variables of a task, of which some are secrets.
func environment(to *map[string]string, uses *[]structs.SecretUse) value {
	return value{
		kind: kindTable, to: []any{to, uses},
		read:  func(r *reader, name string) { r.environment(name, to, uses) },
		write: func(w writer, name string) { w.environment(name, *to, *uses) },
	}
}

// secretFiles is the names of secrets that a task finds as files.
func secretFiles(uses *[]structs.SecretUse) value {
	return value{
		kind: kindWords, to: []any{uses},
		read: func(r *reader, name string) {
			var names []string
			r.words(name, &names)
			for _, of := range names {
				*uses = append(*uses, structs.SecretUse{Name: of})
			}
		},
		write: func(w writer, name string) {
			var names []string
			for _, use := range *uses {
				if use.Var == "" && !use.Image {
					names = append(names, use.Name)
				}
			}
			w.words(name, names)
		},
	}
}

// secretAlone is one secret that is the whole value of an argument: the credentials of
// the image's registry.
func secretAlone(uses *[]structs.SecretUse) value {
	return value{
		kind: kindSecret, to: []any{uses},
		read: func(r *reader, name string) {
			attribute := r.attribute(name, r.field(name))
			if attribute == nil {
				return
			}
			call, ok := inParentheses(attribute.Expr).(*hclsyntax.FunctionCallExpr)
			if !ok || call.Name != functionSecret {
				r.wrong(name, attribute.Expr.Range(), "jobspec.want_secret", "jobspec.want_secret.hint", "name", name)
				return
			}
			if of, ok := r.p.secretNamed(call); ok {
				*uses = append(*uses, structs.SecretUse{Name: of, Image: true})
			} else {
				r.p.spoil(r.field(name))
			}
		},
		write: func(w writer, name string) {
			for _, use := range *uses {
				if use.Image {
					w.to.Body().SetAttributeRaw(name, secretTokens(use.Name))
				}
			}
		},
	}
}

func (r *reader) environment(name string, target *map[string]string, uses *[]structs.SecretUse) {
	r.tableWith(name, target, scopeRank, func(key string, expr hclsyntax.Expression) bool {
		call, ok := inParentheses(expr).(*hclsyntax.FunctionCallExpr)
		if !ok || call.Name != functionSecret {
			return false
		}
		if of, ok := r.p.secretNamed(call); ok {
			*uses = append(*uses, structs.SecretUse{Name: of, Var: key})
		} else {
			r.p.spoil(structs.KeyedPath(r.field(name), key))
		}
		return true
	})
	slices.SortStableFunc(*uses, func(a, b structs.SecretUse) int { // as a table has no order
		switch {
		case a.Var < b.Var:
			return -1
		case a.Var > b.Var:
			return 1
		}
		return 0
	})
	if len(*target) == 0 && len(*uses) > 0 {
		*target = nil
	}
}

func inParentheses(expr hclsyntax.Expression) hclsyntax.Expression {
	for {
		inner, ok := expr.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return expr
		}
		expr = inner.Expression
	}
}

// secretNamed is the name in a call of secret, which is a text that may name variables.
func (p *parser) secretNamed(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 1 || call.ExpandFinal {
		p.fail(p.root, call.NameRange, "jobspec.secret_name", "jobspec.secret_name.hint")
		return "", false
	}
	value, ok := p.evaluate(p.root, call.Args[0], scopeJob)
	if !ok {
		return "", false
	}
	if value.Type() != cty.String || value.IsNull() {
		p.fail(p.root, call.Args[0].Range(), "jobspec.secret_name", "jobspec.secret_name.hint")
		return "", false
	}
	return value.AsString(), true
}

// secretFunction stands among the functions so that its name is known; checkCall
// refuses it before it could be called.
func secretFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			return cty.UnknownVal(cty.String), errCall
		},
	})
}
