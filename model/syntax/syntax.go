// Package syntax owns the YAML of plant files: mappings, lists and scalars with their places,
// bounds on what is parsed, and the first error. It does not know what the keys mean.
package syntax

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

	"lockstep/model/network"
	"lockstep/model/units"
)

func posOf(t *token.Token) network.Pos {
	if t == nil || t.Position == nil {
		return network.Pos{Line: 1, Col: 1}
	}
	return network.Pos{Line: max(1, t.Position.Line), Col: max(1, t.Position.Column)}
}

// Reader keeps the first error and lets reading go on with zero values.
type Reader struct {
	File    string
	Element string // whose entry is being read; "": none
	Err     error
}

// Fail notes an error at a place of the file, FailElement one of an element.
func (r *Reader) Fail(at network.Pos, format string, args ...any) {
	r.FailElement(r.Element, at, format, args...)
}

func (r *Reader) FailElement(element string, at network.Pos, format string, args ...any) {
	if r.Err == nil {
		r.Err = network.NewError(r.File, element, at, format, args...)
	}
}

// Field is one entry of a mapping.
type Field struct {
	Key   string
	KeyAt network.Pos
	At    network.Pos // of the value
	Node  ast.Node
}

const (
	maxFile = 256 << 10 // bytes of a plant file
	maxFlow = 16        // nested brackets
	maxDash = 8         // "- - -" on one line
	maxKeys = 10000     // the parser's time grows with their square
)

// Parse returns the top node of the file; nil if it is empty or on error.
func (r *Reader) Parse(data []byte) ast.Node {
	if len(data) > maxFile {
		r.Fail(network.Pos{Line: 1, Col: 1}, "the file has %d bytes, more than %d", len(data), maxFile)
		return nil
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if r.nested(tokens); r.Err != nil {
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		r.Fail(posOf(syntax.GetToken()), "not YAML: %s", syntax.GetMessage())
	case err != nil:
		r.Fail(network.Pos{Line: 1, Col: 1}, "not YAML: %v", err)
	case len(f.Docs) > 1:
		at := network.Pos{Line: 1, Col: 1}
		if body := f.Docs[1].Body; body != nil {
			at = StartOf(body)
		}
		r.Fail(at, "a plant file holds one document; a second one starts here")
	case len(f.Docs) == 1:
		return f.Docs[0].Body
	}
	return nil
}

// nested refuses what would make the parser recurse deeply, and the parts of YAML
// that a plant file has no use for.
func (r *Reader) nested(tokens token.Tokens) {
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
				r.Fail(posOf(t), "more than %d keys", maxKeys)
			}
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			r.Fail(posOf(t), "%q: anchors, aliases, tags and merge keys are not used in plant files; use parameters", t.Value)
		}
		if depth > maxFlow || dashes > maxDash {
			r.Fail(posOf(t), "nested too deeply")
		}
	}
}

// Entries returns those of a mapping; what names it in messages.
func (r *Reader) Entries(n ast.Node, at network.Pos, what string) []Field {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.Fail(at, "%s: a mapping (key: value) is wanted%s", what, FoundInstead(n))
		return nil
	}
	var list []Field
	seen := map[string]network.Pos{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		f := Field{KeyAt: posOf(key.GetToken()), Node: it.Value()}
		name, ok := ScalarText(key)
		if !ok || name == "" {
			r.Fail(f.KeyAt, "%s: a name is wanted as key", what)
			return nil
		}
		f.Key = name
		f.At = f.KeyAt
		if _, empty := f.Node.(*ast.NullNode); !empty && f.Node != nil {
			f.At = StartOf(f.Node)
		}
		if first, dup := seen[name]; dup {
			r.Fail(f.KeyAt, "%s: %q appears twice, first in line %d", what, name, first.Line)
			return nil
		}
		seen[name] = f.KeyAt
		list = append(list, f)
	}
	return list
}

// StartOf is where a node begins: goccy places a block mapping at its first colon.
func StartOf(n ast.Node) network.Pos {
	if m, ok := n.(ast.MapNode); ok && n.GetToken() != nil && n.GetToken().Type != token.MappingStartType {
		if it := m.MapRange(); it.Next() {
			return posOf(it.Key().GetToken())
		}
	}
	return posOf(n.GetToken())
}

// CheckKeys refuses keys that are not in the list.
func (r *Reader) CheckKeys(fields []Field, what string, keys ...string) {
	for _, f := range fields {
		if slices.Index(keys, f.Key) < 0 {
			r.Fail(f.KeyAt, "%s: unknown key %q%s; known: %s", what, f.Key, units.DidYouMean(f.Key, keys), strings.Join(keys, ", "))
			return
		}
	}
}

// Items returns the entries of a sequence.
func (r *Reader) Items(n ast.Node, at network.Pos, what string) []ast.Node {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Fail(at, "%s: a list is wanted%s", what, FoundInstead(n))
		return nil
	}
	return s.Values
}

// Text returns a scalar as written; "" after an error or if it is empty.
func (r *Reader) Text(f Field, what string) string {
	s, ok := ScalarText(f.Node)
	if !ok {
		r.Fail(f.At, "%s: one value is wanted%s", what, FoundInstead(f.Node))
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

func FoundInstead(n ast.Node) string {
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
