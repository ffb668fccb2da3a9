package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

func posOf(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{1, 1}
	}
	return pos{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// reader keeps the first error and lets reading go on with zero values.
type reader struct {
	file string
	err  error
}

func (r *reader) fail(at pos, format string, args ...any) {
	r.failOf("", at, format, args...)
}

// failOf is fail of an element.
func (r *reader) failOf(element string, at pos, format string, args ...any) {
	if r.err == nil {
		r.err = newError(r.file, element, at, format, args...)
	}
}

// field is one entry of a mapping.
type field struct {
	key   string
	keyAt pos
	at    pos // of the value
	node  ast.Node
}

const (
	maxFile = 256 << 10 // bytes of a plant file
	maxFlow = 16        // nested brackets
	maxDash = 8         // "- - -" on one line
	maxKeys = 10000     // the parser's time grows with their square
)

// parse returns the top node of the file; nil if it is empty or on error.
func (r *reader) parse(data []byte) ast.Node {
	if len(data) > maxFile {
		r.fail(pos{1, 1}, "the file has %d bytes, more than %d", len(data), maxFile)
		return nil
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if r.nested(tokens); r.err != nil {
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		r.fail(posOf(syntax.GetToken()), "not YAML: %s", syntax.GetMessage())
	case err != nil:
		r.fail(pos{1, 1}, "not YAML: %v", err)
	case len(f.Docs) > 1:
		at := pos{1, 1}
		if body := f.Docs[1].Body; body != nil {
			at = startOf(body)
		}
		r.fail(at, "a plant file holds one document; a second one starts here")
	case len(f.Docs) == 1:
		return f.Docs[0].Body
	}
	return nil
}

// nested refuses what would make the parser recurse deeply, and the parts of YAML
// that a plant file has no use for.
func (r *reader) nested(tokens token.Tokens) {
	depth, dashes, line, keys := 0, 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if dashes++; t.Position.Line != line {
				dashes, line = 1, t.Position.Line
			}
		case token.MappingValueType:
			if keys++; keys == maxKeys {
				r.fail(posOf(t), "more than %d keys", maxKeys)
			}
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			r.fail(posOf(t), "%q: anchors, aliases, tags and merge keys are not used in plant files; use parameters", t.Value)
		}
		if depth > maxFlow || dashes > maxDash {
			r.fail(posOf(t), "nested too deeply")
		}
	}
}

// entries returns those of a mapping; what names it in messages.
func (r *reader) entries(n ast.Node, at pos, what string) []field {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(at, "%s: a mapping (key: value) is wanted%s", what, butFound(n))
		return nil
	}
	var list []field
	seen := map[string]pos{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		f := field{keyAt: posOf(key.GetToken()), node: it.Value()}
		name, ok := ScalarText(key)
		if !ok || name == "" {
			r.fail(f.keyAt, "%s: a name is wanted as key", what)
			return nil
		}
		f.key = name
		f.at = f.keyAt
		if _, empty := f.node.(*ast.NullNode); !empty && f.node != nil {
			f.at = startOf(f.node)
		}
		if first, dup := seen[name]; dup {
			r.fail(f.keyAt, "%s: %q appears twice, first in line %d", what, name, first.line)
			return nil
		}
		seen[name] = f.keyAt
		list = append(list, f)
	}
	return list
}

// startOf is where a node begins: goccy places a block mapping at its first colon.
func startOf(n ast.Node) pos {
	if m, ok := n.(ast.MapNode); ok && n.GetToken() != nil && n.GetToken().Type != token.MappingStartType {
		if it := m.MapRange(); it.Next() {
			return posOf(it.Key().GetToken())
		}
	}
	return posOf(n.GetToken())
}

// known refuses keys that are not in the list.
func (r *reader) known(fields []field, what string, keys ...string) {
	for _, f := range fields {
		if slices.Index(keys, f.key) < 0 {
			r.fail(f.keyAt, "%s: unknown key %q%s; known: %s", what, f.key, didYouMean(f.key, keys), strings.Join(keys, ", "))
			return
		}
	}
}

// items returns the entries of a sequence.
func (r *reader) items(n ast.Node, at pos, what string) []ast.Node {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(at, "%s: a list is wanted%s", what, butFound(n))
		return nil
	}
	return s.Values
}

// text returns a scalar as written; "" after an error or if it is empty.
func (r *reader) text(f field, what string) string {
	s, ok := ScalarText(f.node)
	if !ok {
		r.fail(f.at, "%s: one value is wanted%s", what, butFound(f.node))
	}
	return s
}

// ScalarText is a value of a file as written; "" of an empty one. false: it is no value but a
// mapping or a list.
func ScalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "", true
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func butFound(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return ", nothing found"
	case ast.MapNode:
		return ", a mapping found"
	case *ast.SequenceNode:
		return ", a list found"
	}
	if s, ok := ScalarText(n); ok {
		return fmt.Sprintf(", %q found", s)
	}
	return ""
}
