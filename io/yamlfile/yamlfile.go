// Package yamlfile owns how our YAML files are read: mappings and scalars with their places, and
// errors that say "FILE:LINE:COL". It knows no key of any file; the packages that own a format
// (rt/bench, rt/scenario) bring the keys.
package yamlfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Scalar is a scalar value of a YAML file and its place; Line and Col count from 1.
type Scalar struct {
	Text      string
	Line, Col int
}

// FileError is an error at a place of a file.
type FileError struct {
	File      string
	Line, Col int    // from 1
	Owner     string // the package that owns the format of the file: "bench"
	Err       error
}

func (e *FileError) Unwrap() error { return e.Err }
func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %v", e.File, e.Line, e.Col, e.Owner, e.Err)
}

// WordError is an error at a word of a command.
type WordError struct {
	Command string
	Word    int // from 1
	Err     error
}

func (e *WordError) Unwrap() error { return e.Err }
func (e *WordError) Error() string { return fmt.Sprintf("%s: word %d: %v", e.Command, e.Word, e.Err) }

// Origin names the source of a text: a file, or the words of a command, one per line.
type Origin struct {
	File    string // or the name of the command
	Owner   string // the package that owns the format: "bench"
	Command bool   // the text consists of the words of a command
}

// Errorf is an error at a word.
func (o Origin) Errorf(at Scalar, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if o.Command {
		return &WordError{o.File, at.Line, err}
	}
	return &FileError{o.File, at.Line, at.Col, o.Owner, err}
}

// Reader walks a YAML tree and keeps the first error, with its place.
type Reader struct {
	Origin
	Suggest func(name string, known []string) string // appended to the error of an unknown name: the known name nearest to it; nil: nothing
	Err     error                                    // the first one
}

// Key is one known key of a mapping and the function that reads its value.
type Key struct {
	Name string
	Read func(ast.Node)
}

// Meant is the suggestion for an unknown name, as an addition to an error.
func (r *Reader) Meant(name string, known []string) string {
	if r.Suggest == nil {
		return ""
	}
	return r.Suggest(name, known)
}

// Document parses data and returns its only document.
func (r *Reader) Document(data []byte) ast.Node {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			r.FailAt(y.GetToken().Position, "%s", y.GetMessage())
		} else {
			r.Err = &FileError{r.File, 1, 1, r.Owner, errors.New(strings.SplitN(err.Error(), "\n", 2)[0])}
		}
		return nil
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		r.Err = &FileError{r.File, 1, 1, r.Owner, errors.New("the file is empty")}
		return nil
	}
	if len(f.Docs) > 1 {
		r.FailAt(f.Docs[1].Body.GetToken().Position, "a second document; a %s file holds one", r.Owner)
		return nil
	}
	return f.Docs[0].Body
}

// FailAt keeps an error at a place, unless there was one before.
func (r *Reader) FailAt(p *token.Position, format string, args ...any) {
	if r.Err == nil {
		r.Err = r.Errorf(Scalar{Line: p.Line, Col: p.Column}, format, args...)
	}
}

// Fail is FailAt for the place of a node.
func (r *Reader) Fail(n ast.Node, format string, args ...any) {
	r.FailAt(n.GetToken().Position, format, args...)
}

// Entries returns the entries of a mapping; what names it in errors.
func (r *Reader) Entries(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	r.Fail(n, "%s: keys with values are wanted here, got %s", what, short(n))
	return nil
}

// Mapping reads a mapping whose keys are known; others are an error that lists them.
func (r *Reader) Mapping(n ast.Node, what string, known []Key) {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.Name
	}
	for _, e := range r.Entries(n, what) {
		name := e.Key.GetToken().Value
		found := false
		for _, k := range known {
			if k.Name == name {
				found = true
				k.Read(e.Value)
			}
		}
		if !found {
			r.Fail(e.Key, "%s: unknown key %q%s; known are %s", what, name, r.Meant(name, names), strings.Join(names, ", "))
		}
	}
}

// Sequence reads the items of a sequence.
func (r *Reader) Sequence(n ast.Node, what string, item func(ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Fail(n, "%s: a list is wanted here, got %s", what, short(n))
		return
	}
	for _, v := range s.Values {
		item(v)
	}
}

// Scalar reads one value as text; an empty one is an error.
func (r *Reader) Scalar(n ast.Node, what string) Scalar {
	var text string
	switch n := n.(type) {
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.StringNode:
		text = n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	case *ast.NanNode, *ast.InfinityNode:
		r.Fail(n, "%s: %s is not a finite number", what, n.GetToken().Value)
		return Scalar{}
	default:
		r.Fail(n, "%s: one value is wanted here, got %s", what, short(n))
		return Scalar{}
	}
	p := n.GetToken().Position
	w := Scalar{Text: strings.Join(strings.Fields(text), " "), Line: p.Line, Col: p.Column}
	switch {
	case w.Text == "":
		r.Fail(n, "%s is empty", what)
	case !IsPrintable(w.Text):
		r.Fail(n, "%s: %.60q has characters that cannot be printed", what, w.Text)
	}
	return w
}

// IsPrintable tells whether s can be shown as it is: it has no escape sequences.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// StoreText returns a reader of one value that stores its text in dst.
func (r *Reader) StoreText(dst *string, what string) func(ast.Node) {
	return func(n ast.Node) { *dst = r.Scalar(n, what).Text }
}

// StoreScalar returns a reader of one value that stores it in dst with its place.
func (r *Reader) StoreScalar(dst *Scalar, what string) func(ast.Node) {
	return func(n ast.Node) { *dst = r.Scalar(n, what) }
}

// StoreInteger returns a reader of a whole number from lo to hi that stores it in dst.
func (r *Reader) StoreInteger(dst *int, what string, lo, hi int) func(ast.Node) {
	return func(n ast.Node) {
		w := r.Scalar(n, what)
		v, err := strconv.Atoi(w.Text)
		if r.Err == nil && (err != nil || v < lo || v > hi) {
			r.Fail(n, "%s: %q is not a whole number from %d to %d", what, w.Text, lo, hi)
		}
		*dst = v
	}
}

// Choice reads one of the known words.
func (r *Reader) Choice(n ast.Node, what string, known ...string) string {
	w := r.Scalar(n, what)
	for _, k := range known {
		if w.Text == k {
			return k
		}
	}
	r.Fail(n, "%s: %q is unknown%s; known are %s", what, w.Text, r.Meant(w.Text, known), strings.Join(known, ", "))
	return ""
}

// Texts reads one value or a list of them.
func (r *Reader) Texts(n ast.Node, what string) (list []string) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []string{r.Scalar(n, what).Text}
	}
	r.Sequence(n, what, func(n ast.Node) { list = append(list, r.Scalar(n, what).Text) })
	return list
}

// Unsigned reads a whole number, decimal or 0x, up to hi.
func (r *Reader) Unsigned(n ast.Node, what string, hi uint64) uint32 {
	w := r.Scalar(n, what)
	v, err := strconv.ParseUint(w.Text, 0, 64)
	if r.Err == nil && (err != nil || v > hi) {
		r.Fail(n, "%s: %q is not a whole number from 0 to %d (0x%X)", what, w.Text, hi, hi)
	}
	return uint32(v)
}

// UnsignedList reads one such number or a list of them.
func (r *Reader) UnsignedList(n ast.Node, what string) (list []uint32) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []uint32{r.Unsigned(n, what, 1<<32-1)}
	}
	r.Sequence(n, what, func(n ast.Node) { list = append(list, r.Unsigned(n, what, 1<<32-1)) })
	return list
}

// KeyScalar is the key of an entry.
func KeyScalar(e *ast.MappingValueNode) Scalar {
	at := e.Key.GetToken().Position
	return Scalar{e.Key.GetToken().Value, at.Line, at.Column}
}

// ScalarAt is a word where a node stands.
func ScalarAt(n ast.Node, text string) Scalar {
	p := n.GetToken().Position
	return Scalar{text, p.Line, p.Column}
}

// short is a node's own text, cut to one short line, for errors.
func short(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	text := strings.SplitN(n.String(), "\n", 2)[0]
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return strconv.Quote(text)
}
