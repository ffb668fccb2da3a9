package bench

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

// Word is a scalar value of a YAML file and its place; Line and Col count from 1.
type Word struct {
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

// origin names the source of a text: a file, or the words of a command, one per line.
type origin struct {
	file    string // or the name of the command
	owner   string // the package that owns the format: "bench"
	command bool   // the text consists of the words of a command
}

// errorf is an error at a word.
func (o origin) errorf(at Word, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if o.command {
		return &WordError{o.file, at.Line, err}
	}
	return &FileError{o.file, at.Line, at.Col, o.owner, err}
}

// reader walks a YAML tree and keeps the first error, with its place.
type reader struct {
	origin
	suggest func(name string, known []string) string // appended to the error of an unknown name: the known name nearest to it; nil: nothing
	err     error                                    // the first one
}

// key is one known key of a mapping and the function that reads its value.
type key struct {
	name string
	read func(ast.Node)
}

// meant is the suggestion for an unknown name, as an addition to an error.
func (r *reader) meant(name string, known []string) string {
	if r.suggest == nil {
		return ""
	}
	return r.suggest(name, known)
}

// root parses data and returns its only document.
func (r *reader) root(data []byte) ast.Node {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			r.failAt(y.GetToken().Position, "%s", y.GetMessage())
		} else {
			r.err = &FileError{r.file, 1, 1, r.owner, errors.New(strings.SplitN(err.Error(), "\n", 2)[0])}
		}
		return nil
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		r.err = &FileError{r.file, 1, 1, r.owner, errors.New("the file is empty")}
		return nil
	}
	if len(f.Docs) > 1 {
		r.failAt(f.Docs[1].Body.GetToken().Position, "a second document; a %s file holds one", r.owner)
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
			r.fail(e.Key, "%s: unknown key %q%s; known are %s", what, name, r.meant(name, names), strings.Join(names, ", "))
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

// choice reads one of the known words.
func (r *reader) choice(n ast.Node, what string, known ...string) string {
	w := r.word(n, what)
	for _, k := range known {
		if w.Text == k {
			return k
		}
	}
	r.fail(n, "%s: %q is unknown%s; known are %s", what, w.Text, r.meant(w.Text, known), strings.Join(known, ", "))
	return ""
}

// words reads one value or a list of them.
func (r *reader) words(n ast.Node, what string) (list []string) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []string{r.word(n, what).Text}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.word(n, what).Text) })
	return list
}

// unsigned reads a whole number, decimal or 0x, up to hi.
func (r *reader) unsigned(n ast.Node, what string, hi uint64) uint32 {
	w := r.word(n, what)
	v, err := strconv.ParseUint(w.Text, 0, 64)
	if r.err == nil && (err != nil || v > hi) {
		r.fail(n, "%s: %q is not a whole number from 0 to %d (0x%X)", what, w.Text, hi, hi)
	}
	return uint32(v)
}

// numbers reads one such number or a list of them.
func (r *reader) numbers(n ast.Node, what string) (list []uint32) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []uint32{r.unsigned(n, what, 1<<32-1)}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.unsigned(n, what, 1<<32-1)) })
	return list
}

// keyWord is the key of an entry.
func keyWord(e *ast.MappingValueNode) Word {
	at := e.Key.GetToken().Position
	return Word{e.Key.GetToken().Value, at.Line, at.Column}
}

// at is a word where a node stands.
func at(n ast.Node, text string) Word {
	p := n.GetToken().Position
	return Word{text, p.Line, p.Column}
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
