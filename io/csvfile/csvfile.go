// Package csvfile owns the reading of CSV files of signals over time: a header of fields "name[unit]",
// the first of them time[s], then rows of numbers. The fields are separated by commas, decimals follow
// a point, and a line that begins with '#' is a comment. The package does not know what the columns are:
// callers bind them.
package csvfile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

const (
	maxRow      = 1 << 20        // longest row, bytes
	longestHead = 4 << 10        // longest header that is examined, with the comments above it, bytes
	byteOrder   = "\xef\xbb\xbf" // mark that some programs write at the beginning of UTF-8
)

// Column is a field of the header.
type Column struct {
	Name string
	Unit string // "": the field has none
}

// WithoutUnit is the error for a column without a unit, where want is the expected one.
func (c Column) WithoutUnit(want string) error {
	return fmt.Errorf("column %q has no unit: write %s[%s]", c.Name, c.Name, want)
}

// Time checks that the column is the first one, time, and returns its unit.
func (c Column) Time() (units.Wanted, error) {
	if c.Name != "time" {
		return units.Wanted{}, fmt.Errorf("expected time[s] as the first column, got %q", c.Name+"["+c.Unit+"]")
	}
	return units.Want("s").Spell(c.Unit)
}

// Read reads a file with at least one row. It calls column for each field of the header and value for
// each field of a row, with the index of the field. An error of either ends the reading. Errors are
// "FILE:LINE:COL: OWNER: ...".
func Read(file string, from io.Reader, owner string, column func(i int, head Column) error, value func(i int, v float64, text string) error) error {
	fail := func(line, col int, err error) error {
		return &yamlfile.FileError{File: file, Line: line, Col: col, Owner: owner, Err: err}
	}
	text := bufio.NewReaderSize(inputfile.LimitLines(from, maxRow), longestHead)
	if begin, err := text.Peek(len(byteOrder)); err == nil && string(begin) == byteOrder {
		_, _ = text.Discard(len(byteOrder))
	}
	head, _ := text.Peek(longestHead)
	if line, col, mark := otherSeparator(head); mark != "" {
		return fail(line, col, fmt.Errorf("the columns are separated by %s: separate them by ',', "+
			"and write decimals with a point", mark))
	}

	c := csv.NewReader(text)
	c.Comment, c.TrimLeadingSpace, c.ReuseRecord = '#', true, true
	var names []string
	for rows := 0; ; rows++ {
		row, err := c.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &bad):
			return fail(bad.Line, 1, fmt.Errorf("row of %d fields, the header has %d; decimals follow a point",
				len(row), len(names)))
		case errors.As(err, &bad):
			return fail(bad.Line, bad.Column, bad.Err)
		case errors.Is(err, io.EOF) && rows == 0:
			return fail(1, 1, errors.New("the file is empty"))
		case errors.Is(err, io.EOF) && rows == 1:
			return fail(2, 1, errors.New("the file has a header and no row"))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %s: %w", owner, file, err)
		}

		for i, text := range row {
			text = strings.TrimSpace(text)
			if rows == 0 {
				var head Column
				if head, err = parseColumn(text); err == nil {
					names = append(names, head.Name)
					err = column(i, head)
				}
			} else if err = field(i, text, value); err != nil {
				err = fmt.Errorf("column %s: %w", names[i], err)
			}

			if err != nil {
				line, col := c.FieldPos(i)
				return fail(line, col, err)
			}
		}
	}
}

// parseColumn parses a field of the header. The unit is in the brackets at its end.
func parseColumn(text string) (Column, error) {
	if strings.Count(text, "[") != strings.Count(text, "]") {
		name, unit, _ := strings.Cut(strings.TrimSuffix(text, "]"), "[")
		if unit == "" {
			name, unit = "name", "unit"
		}
		return Column{}, fmt.Errorf("column %.60q: a bracket of the unit is missing: write %.60s[%.20s]", text, name, unit)
	}
	if at := strings.LastIndexByte(text, '['); at >= 0 && strings.HasSuffix(text, "]") {
		return Column{text[:at], text[at+1 : len(text)-1]}, nil
	}
	return Column{Name: text}, nil
}

// field parses a field of a row.
func field(i int, text string, value func(i int, v float64, text string) error) error {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil {
		return value(i, v, text)
	}
	if _, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64); err == nil {
		return fmt.Errorf("%q is not a number; decimals follow a point: %s", text, strings.Replace(text, ",", ".", 1))
	}
	return fmt.Errorf("%q is not a number", text)
}

// otherSeparator returns the position and the name of the separator in the header of a file, if it is
// not a comma; "" if it is, or if there is one column.
func otherSeparator(head []byte) (line, col int, mark string) {
	for header := range strings.Lines(string(head)) {
		line++
		if header = strings.TrimRight(header, "\r\n"); header == "" || header[0] == '#' {
			continue
		}
		col = strings.IndexAny(header, ";\t|")
		if col < 0 || strings.Contains(header, ",") {
			return 0, 0, ""
		}
		return line, col + 1, map[byte]string{';': "';'", '\t': "tabs", '|': "'|'"}[header[col]]
	}
	return 0, 0, ""
}
