package model

import (
	"fmt"
	"strings"
	"unicode"
)

// pos is a place in the file, counted from 1; columns count characters.
type pos struct{ line, col int }

// fileError is a fault of a plant at a place in its file.
type fileError struct {
	file    string
	at      pos
	element string // that has the fault, with its sub-assemblies; "": none
	text    string // one line
}

func (e *fileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: model: %s", e.file, e.at.line, e.at.col, e.text)
}

// newError makes a fileError with a formatted text.
func newError(file, element string, at pos, format string, args ...any) error {
	return &fileError{file, at, element, oneLine(fmt.Sprintf(format, args...))}
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
