package sweep

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"lockstep/model/syntax"
	"lockstep/model/units"
)

// word is a value of the file and where it stands.
type word struct {
	text      string
	line, col int
}

func (w *word) UnmarshalYAML(n ast.Node) error {
	text, ok := scalarText(n)
	if !ok {
		return wrongAt(n, "one value is wanted here")
	}
	p := n.GetToken().Position
	*w = word{strings.Join(strings.Fields(text), " "), p.Line, p.Column}
	return nil
}

// words is one word or a list of them.
type words []word

func (list *words) UnmarshalYAML(n ast.Node) error {
	items := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		items = s.Values
	}
	for _, n := range items {
		var w word
		if err := w.UnmarshalYAML(n); err != nil {
			return err
		}
		*list = append(*list, w)
	}
	return nil
}

// named are the entries of a mapping in their order.
type named[T any] []entry[T]

type entry[T any] struct {
	key   word
	value T
}

func (list *named[T]) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return wrongAt(n, "names with values are wanted here")
	}
	for it := m.MapRange(); it.Next(); {
		var e entry[T]
		if err := e.key.UnmarshalYAML(it.Key()); err != nil {
			return err
		}
		if err := decode(it.Value(), &e.value); err != nil {
			return err
		}
		*list = append(*list, e)
	}
	return nil
}

// scalarText is the text of a value; an empty one is none here.
func scalarText(n ast.Node) (string, bool) {
	if n == nil || n.Type() == ast.NullType {
		return "", false
	}
	return syntax.ScalarText(n)
}

// FileError is an error at a place of a sweep file.
type FileError struct {
	File      string
	Line, Col int // from 1
	Text      string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: sweep: %s", e.File, e.Line, e.Col, e.Text)
}

// placeError is an error at a place of the file, whose name is not known there.
type placeError struct {
	line, col int
	text      string
}

func (e *placeError) Error() string { return e.text }

func wrongAt(n ast.Node, format string, args ...any) error {
	p := &token.Position{Line: 1, Column: 1}
	if n != nil && n.GetToken() != nil {
		p = n.GetToken().Position
	}
	return &placeError{p.Line, p.Column, fmt.Sprintf(format, args...)}
}

// errorf is an error at a word.
func (w word) errorf(format string, args ...any) error {
	return &placeError{max(1, w.line), max(1, w.col), fmt.Errorf(format, args...).Error()}
}

// decode reads a node into a structure, whose keys are all that are known.
func decode(n ast.Node, into any) error {
	err := yaml.NodeToValue(n, into, yaml.Strict())
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		t := reflect.TypeOf(into).Elem()
		var keys []string
		for i := range t.NumField() {
			if key := t.Field(i).Tag.Get("yaml"); key != "" {
				keys = append(keys, key)
			}
		}
		return &placeError{unknown.Token.Position.Line, unknown.Token.Position.Column,
			fmt.Sprintf("unknown key %q%s; known are %s", unknown.Token.Value, units.Meant(unknown.Token.Value, keys), strings.Join(keys, ", "))}
	}
	return err
}

// placed is an error with file and place, in one line.
func placed(file string, err error) error {
	if err == nil {
		return nil
	}
	line, col, text := 1, 1, err.Error()
	var place *placeError
	var syntax yaml.Error
	switch {
	case errors.As(err, &place):
		line, col, text = place.line, place.col, place.text
	case errors.As(err, &syntax):
		text = syntax.GetMessage()
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			line, col = t.Position.Line, t.Position.Column
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	return &FileError{file, line, col, text}
}

// number splits "8.5 bar" into number and unit; "" of a bare one.
func (w word) number() (v float64, unit string, err error) {
	text, unit, _ := strings.Cut(w.text, " ")
	if v, err = strconv.ParseFloat(text, 64); err != nil && strings.HasSuffix(text, "%") {
		unit = "%"
		v, err = strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	}
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", w.errorf("%q is not a finite number with or without a unit, like 0.1 or 8 bar", w.text)
	}
	if unit != "" && unit != "degC" {
		if _, err := units.Parse(unit); err != nil {
			return 0, "", w.errorf("%q: %s", w.text, strings.TrimPrefix(err.Error(), "model: "))
		}
	}
	return v, unit, nil
}

// whole reads a whole number from lo to hi.
func (w word) whole(what string, lo, hi int64) (int64, error) {
	n, err := strconv.ParseInt(w.text, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, w.errorf("%s: %q is not a whole number from %d to %d", what, w.text, lo, hi)
	}
	return n, nil
}
