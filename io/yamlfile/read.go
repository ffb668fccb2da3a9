package yamlfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"lockstep/model/units"
)

// Reader reads the tree of a file and holds the first error with its position. After an error
// reading continues with zero values; within Try it ends at the error.
type Reader struct {
	Origin
	Err    error // first error
	trying bool  // within Try
}

// refusal is the panic value with which Refuse and, within Try, FailAt end the reading of a file,
// as in the parsers of the standard library.
type refusal struct{ error }

// Refuse panics with an error at a position, which Catch returns.
func (o Origin) Refuse(at Pos, format string, args ...any) {
	panic(refusal{o.ErrorAt(at, format, args...)})
}

// Catch sets err after Refuse; the caller defers it. Any other panic continues.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case refusal:
		*err = r.error
	default:
		panic(r)
	}
}

// Try runs read up to its first error and returns the error.
func (r *Reader) Try(read func()) (err error) {
	defer func() { r.trying = false }()
	defer Catch(&err)
	r.trying = true
	read()
	return r.Err
}

// FailAt records an error at a position, unless there was one before.
func (r *Reader) FailAt(at Pos, format string, args ...any) {
	if r.Err == nil {
		r.Err = r.ErrorAt(at, format, args...)
	}
	if r.trying {
		panic(refusal{r.Err})
	}
}

// Limits of the parser: a hostile file must not cost much time or memory.
const (
	maxFile = 256 << 10 // size of a file, bytes
	maxFlow = 16        // depth of nested brackets
	maxDash = 8         // dashes "- - -" on one line
	maxKeys = 10000     // keys of a file; the parser's time grows with their square
)

// Document parses data and returns its only document; nil on error. A key that appears twice in
// a mapping is an error.
func (r *Reader) Document(data []byte) Node {
	start := Pos{1, 1}
	if len(data) > maxFile {
		r.FailAt(start, "the file has %d bytes, more than %d", len(data), maxFile)
		return nil
	}

	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if r.checkTokens(tokens); r.Err != nil {
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // checkMappings reports them
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		r.failSyntax(data, syntax)
	case err != nil:
		r.FailAt(start, "YAML: %w", err)
	case len(f.Docs) == 0 || f.Docs[0].Body == nil:
		r.FailAt(start, "the file is empty; it begins with plant: NAME, bench: NAME, scenario: NAME or sweep: NAME")
	case len(f.Docs) > 1:
		r.FailAt(NodePos(f.Docs[1].Body), "a second document begins here; a file holds one")
	default:
		if r.checkMappings(f.Docs[0].Body); r.Err == nil {
			return f.Docs[0].Body
		}
	}

	return nil
}

// checkTokens refuses deep nesting, which would make the parser recurse, and the parts of
// YAML that lockstep files do not use.
func (r *Reader) checkTokens(tokens token.Tokens) {
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
				r.FailAt(tokenPos(t), "more than %d keys", maxKeys)
			}
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			r.FailAt(tokenPos(t), "%q: anchors, aliases, tags, merge keys and ? keys are not supported; "+
				"write each value where it is needed", t.Value)
		}

		if depth > maxFlow || dashes > maxDash {
			r.FailAt(tokenPos(t), "nested too deeply")
		}
	}
}

// Fail is FailAt for the position of a value. It does nothing for a missing field, which reads as
// a zero value.
func (r *Reader) Fail(f Field, format string, args ...any) {
	if !f.IsMissing() {
		r.FailAt(f.At, format, args...)
	}
}

// mappingEntries returns the entries of a mapping in either of the parser's two forms.
func mappingEntries(n Node) (list []*ast.MappingValueNode, ok bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}

	return nil, false
}

// FieldsOf returns the entries of a mapping; what names the mapping in errors.
func (r *Reader) FieldsOf(f Field, what string) (list []Field) {
	values, ok := mappingEntries(f.Node)
	if !ok {
		r.Fail(f, "%s: expected keys with values, got %s", what, describe(f.Node))
	}
	for _, e := range values {
		at := NodePos(e.Key)
		g := Field{e.Key.GetToken().Value, at, at, e.Value}
		if g.Key == "" {
			r.Fail(g, "%s: expected a name as key", what)
		}
		if !IsEmpty(g.Node) {
			g.At = NodePos(g.Node)
		}
		list = append(list, g)
	}

	return list
}

// Section reads a mapping with known keys and returns its fields by key.
func (r *Reader) Section(f Field, what string, known ...string) map[string]Field {
	fields := r.FieldsOf(f, what)
	r.CheckKeys(fields, what, known...)
	section := make(map[string]Field, len(fields))
	for _, g := range fields {
		section[g.Key] = g
	}
	return section
}

// CheckKeys refuses a key that is not one of known.
func (r *Reader) CheckKeys(fields []Field, what string, known ...string) {
	for _, f := range fields {
		if !slices.Contains(known, f.Key) {
			r.FailAt(f.KeyAt, "%s: unknown key %q%s; known are %s",
				what, f.Key, units.Meant(f.Key, known), strings.Join(known, ", "))
		}
	}
}

// Items returns the items of a list, each with the key of the list.
func (r *Reader) Items(f Field, what string) (list []Field) {
	s, ok := f.Node.(*ast.SequenceNode)
	if !ok {
		r.Fail(f, "%s: expected a list, got %s", what, describe(f.Node))
		return nil
	}

	for _, n := range s.Values {
		list = append(list, Field{f.Key, f.KeyAt, NodePos(n), n})
	}
	return list
}

// IsMapping reports whether a node is a mapping.
func IsMapping(n Node) bool {
	_, ok := mappingEntries(n)
	return ok
}

// IsList reports whether a node is a list.
func IsList(n Node) bool {
	_, ok := n.(*ast.SequenceNode)
	return ok
}

// IsEmpty reports whether a node has no value.
func IsEmpty(n Node) bool { return n == nil || n.Type() == ast.NullType }

// ScalarText returns a scalar as written, "" for an empty one; false means that the node is a
// mapping or a list.
func ScalarText(n Node) (string, bool) {
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

// Text reads one value as written, "" for an empty one.
func (r *Reader) Text(f Field, what string) string {
	text, ok := ScalarText(f.Node)
	if !ok {
		r.FailAt(f.At, "%s: expected one value, got %s", what, describe(f.Node))
	}
	switch f.Node.(type) {
	case *ast.NanNode, *ast.InfinityNode:
		r.FailAt(f.At, "%s: %s is not a finite number", what, text)
	}

	return text
}

// Scalar reads one value with single blanks between its words; an empty value is an error.
func (r *Reader) Scalar(f Field, what string) Scalar {
	if IsEmpty(f.Node) {
		r.Fail(f, "%s: expected one value, got nothing", what)
	}
	text := strings.Join(strings.Fields(r.Text(f, what)), " ")
	switch {
	case text == "":
		r.Fail(f, "%s is empty", what)
	case !IsPrintable(text):
		r.Fail(f, "%s: %.60q has characters that cannot be printed", what, text)
	}

	return f.Scalar(text)
}

// Integer reads a whole number from lo to hi.
func (r *Reader) Integer(f Field, what string, lo, hi int) int {
	w := r.Scalar(f, what)
	v, err := strconv.Atoi(w.Text)
	if err != nil || v < lo || v > hi {
		r.Fail(f, "%s: %q is not a whole number from %d to %d", what, w.Text, lo, hi)
	}
	return v
}

// Choice reads one of the known words.
func (r *Reader) Choice(f Field, what string, known ...string) string {
	w := r.Scalar(f, what)
	if !slices.Contains(known, w.Text) {
		r.Fail(f, "%s: %q is unknown%s; known are %s",
			what, w.Text, units.Meant(w.Text, known), strings.Join(known, ", "))
	}

	return w.Text
}

// Texts reads one value or a list of values.
func (r *Reader) Texts(f Field, what string) (list []string) {
	for _, w := range r.Scalars(f, what) {
		list = append(list, w.Text)
	}
	return list
}

// Scalars is Texts with positions.
func (r *Reader) Scalars(f Field, what string) (list []Scalar) {
	for _, item := range r.OneOrItems(f, what) {
		list = append(list, r.Scalar(item, what))
	}
	return list
}

// OneOrItems returns the items of a list, or a single value as the only item.
func (r *Reader) OneOrItems(f Field, what string) []Field {
	if IsList(f.Node) || f.IsMissing() {
		return r.Items(f, what)
	}
	return []Field{f}
}

// Unsigned reads a whole number, decimal or 0x, up to hi.
func (r *Reader) Unsigned(f Field, what string, hi uint64) uint64 {
	w := r.Scalar(f, what)
	v, err := strconv.ParseUint(w.Text, 0, 64)
	if err != nil || v > hi {
		r.Fail(f, "%s: %q is not a whole number from 0 to %d (0x%X)", what, w.Text, hi, hi)
	}
	return v
}

// describe returns the text of a node for errors, cut to one short line.
func describe(n Node) string {
	if IsEmpty(n) {
		return "nothing"
	}
	if _, ok := mappingEntries(n); ok {
		return "a mapping"
	}
	text, ok := ScalarText(n)
	if !ok {
		return "a list"
	}
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return strconv.Quote(text)
}

// Leaf is a scalar value in the tree of a file. Its path consists of the keys, joined by ".", and
// of [i] for item i of a list, from 0.
type Leaf struct {
	Path string
	Node Node
	set  func(Node)
}

// Set replaces the value by text.
func (l *Leaf) Set(text string) {
	t := &token.Token{Type: token.StringType, Value: text, Origin: text, Position: l.Node.GetToken().Position}
	l.set(&ast.StringNode{BaseNode: &ast.BaseNode{}, Token: t, Value: text})
}

// SetValue replaces the value of a key of mapping n by another mapping. The new entries get the
// position of the old value.
func SetValue(n Node, key string, value Node) {
	list, _ := mappingEntries(n)
	for _, e := range list {
		if e.Key.GetToken().Value != key {
			continue
		}
		at := e.Value.GetToken().Position
		e.Value = value
		inner, _ := mappingEntries(value)
		for _, v := range inner {
			v.Key.GetToken().Position, v.Value.GetToken().Position = at, at
		}
	}
}

// Leaves returns all scalar values below a node in file order, without empty ones.
func Leaves(n Node) []Leaf { return appendLeaves(Leaf{Node: n}, nil) }

func appendLeaves(at Leaf, list []Leaf) []Leaf {
	if _, ok := ScalarText(at.Node); ok {
		if at.set != nil && !IsEmpty(at.Node) {
			list = append(list, at)
		}
		return list
	}

	if s, ok := at.Node.(*ast.SequenceNode); ok {
		for i, n := range s.Values {
			list = appendLeaves(Leaf{fmt.Sprintf("%s[%d]", at.Path, i), n, func(n Node) { s.Values[i] = n }}, list)
		}
	}

	values, _ := mappingEntries(at.Node)
	for _, e := range values {
		path := strings.TrimPrefix(at.Path+"."+e.Key.GetToken().Value, ".")
		list = appendLeaves(Leaf{path, e.Value, func(n Node) { e.Value = n }}, list)
	}

	return list
}
