package network

import (
	"fmt"
	"strings"
	"unicode"
)

// Pos is a place in the file, counted from 1; columns count characters.
type Pos struct{ Line, Col int }

// Error is a fault of a plant at a place in its file.
type Error struct {
	File    string
	At      Pos
	Element string // that has the fault, with its sub-assemblies; "": none
	Text    string // one line
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: model: %s", e.File, e.At.Line, e.At.Col, e.Text)
}

// NewError makes an Error of a formatted text, on one line of bounded length.
func NewError(file, element string, at Pos, format string, args ...any) error {
	return &Error{file, at, element, oneLine(fmt.Sprintf(format, args...))}
}

const maxText = 500 // bytes of an error message

// oneLine makes a message fit a line of a terminal or log, whatever the file holds.
func oneLine(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
