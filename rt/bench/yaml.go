package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"lockstep/model/units"
)

// Word is a name in a bench file and where it stands; lines and columns from 1.
type Word struct {
	Text      string
	Line, Col int
}

// origin is where text comes from: a file, or the words of a command, one per line.
type origin struct {
	file    string // or the name of the command
	command bool
}

// errorf is an error at a word.
func (o origin) errorf(at Word, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if o.command {
		return fmt.Errorf("%s: word %d: %w", o.file, at.Line, err)
	}
	return fmt.Errorf("%s:%d:%d: bench: %w", o.file, at.Line, at.Col, err)
}

// reader walks a YAML tree; it keeps the first error, with its place.
type reader struct {
	origin
	err error
}

// key is one known key of a mapping and what reads its value.
type key struct {
	name string
	read func(ast.Node)
}

// root parses data and returns its only document.
func (r *reader) root(data []byte) ast.Node {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			r.failAt(y.GetToken().Position, "%s", y.GetMessage())
		} else {
			r.err = fmt.Errorf("%s:1:1: bench: %s", r.file, strings.SplitN(err.Error(), "\n", 2)[0])
		}
		return nil
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		r.err = fmt.Errorf("%s:1:1: bench: the file is empty", r.file)
		return nil
	}
	if len(f.Docs) > 1 {
		r.failAt(f.Docs[1].Body.GetToken().Position, "a second document; a bench file holds one")
		return nil
	}
	return f.Docs[0].Body
}

func (r *reader) failAt(p *token.Position, format string, args ...any) {
	if r.err == nil {
		r.err = r.errorf(Word{Line: p.Line, Col: p.Column}, format, args...)
	}
}

func (r *reader) fail(n ast.Node, format string, args ...any) {
	r.failAt(n.GetToken().Position, format, args...)
}

// pairs returns the entries of a mapping; what names it in errors.
func (r *reader) pairs(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	r.fail(n, "%s: keys with values are wanted here, got %s", what, short(n))
	return nil
}

// object reads a mapping whose keys are known; others are an error that lists them.
func (r *reader) object(n ast.Node, what string, known []key) {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	for _, e := range r.pairs(n, what) {
		name := e.Key.GetToken().Value
		found := false
		for _, k := range known {
			if k.name == name {
				found = true
				k.read(e.Value)
			}
		}
		if !found {
			r.fail(e.Key, "%s: unknown key %q%s; known are %s", what, name, units.Meant(name, names), strings.Join(names, ", "))
		}
	}
}

// list reads the items of a sequence.
func (r *reader) list(n ast.Node, what string, item func(ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "%s: a list is wanted here, got %s", what, short(n))
		return
	}
	for _, v := range s.Values {
		item(v)
	}
}

// word reads one value as text; an empty one is an error.
func (r *reader) word(n ast.Node, what string) Word {
	var text string
	switch n := n.(type) {
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.StringNode:
		text = n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	case *ast.NanNode, *ast.InfinityNode:
		r.fail(n, "%s: %s is not a finite number", what, n.GetToken().Value)
		return Word{}
	default:
		r.fail(n, "%s: one value is wanted here, got %s", what, short(n))
		return Word{}
	}
	p := n.GetToken().Position
	w := Word{Text: strings.Join(strings.Fields(text), " "), Line: p.Line, Col: p.Column}
	switch {
	case w.Text == "":
		r.fail(n, "%s is empty", what)
	case !printable(w.Text):
		r.fail(n, "%s: %.60q has characters that cannot be printed", what, w.Text)
	}
	return w
}

// printable tells whether s can be shown as it is: it has no escape sequences.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

func (r *reader) text(dst *string, what string) func(ast.Node) {
	return func(n ast.Node) { *dst = r.word(n, what).Text }
}

func (r *reader) name(dst *Word, what string) func(ast.Node) {
	return func(n ast.Node) { *dst = r.word(n, what) }
}

// integer reads a whole number from lo to hi.
func (r *reader) integer(dst *int, what string, lo, hi int) func(ast.Node) {
	return func(n ast.Node) {
		w := r.word(n, what)
		v, err := strconv.Atoi(w.Text)
		if r.err == nil && (err != nil || v < lo || v > hi) {
			r.fail(n, "%s: %q is not a whole number from %d to %d", what, w.Text, lo, hi)
		}
		*dst = v
	}
}

// nanoseconds reads a time from lo to hi ns that is a whole number of them.
func (r *reader) nanoseconds(dst *int64, what string, lo, hi float64) func(ast.Node) {
	return func(n ast.Node) {
		w := r.word(n, what)
		if r.err != nil {
			return
		}
		s, err := units.Quantity(w.Text, "s", nil)
		ns := math.RoundToEven(s * 1e9)
		switch {
		case err != nil:
			r.fail(n, "%s: %s", what, wrong(w, err))
		case !(ns >= lo && ns <= hi):
			r.fail(n, "%s: %q is not between %v and %v", what, w.Text, time.Duration(lo), time.Duration(hi))
		case !(math.Abs(s*1e9-ns) < 1e-3):
			r.fail(n, "%s: %q is not a whole number of nanoseconds", what, w.Text)
		}
		*dst = int64(ns)
	}
}

// wrong is what model says of a quantity, with its text once.
func wrong(w Word, err error) string {
	text := fmt.Sprintf("%q: ", w.Text)
	return text + strings.TrimPrefix(strings.TrimPrefix(err.Error(), "model: "), text)
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
