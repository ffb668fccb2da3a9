// Package truth owns the reading of truth files: independent solutions of plants as CSV. Every
// test that compares with such a solution uses this package. It compares nothing itself and imports
// no other package of lockstep.
//
// The first row names the columns, with or without a unit in brackets. The first column is the
// time, s, or another independent variable. A line that begins with # is a comment.
package truth

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Table is a truth file.
type Table struct {
	Names []string    // names of the columns, without units
	Time  []float64   // first column
	Rows  [][]float64 // rows×columns, with the first column; NaN for a field that is not a number
}

// Read reads a truth file. Two rows of equal time are the values before and after an event.
func Read(t testing.TB, file string) Table {
	t.Helper()
	names, lines := fields(t, file)
	table := Table{Names: names}
	for _, line := range lines {
		row := make([]float64, len(line))
		for i, text := range line {
			row[i] = number(text)
		}
		table.Time, table.Rows = append(table.Time, row[0]), append(table.Rows, row)
	}

	return table
}

// AfterEvents returns the table with one row per instant: at an event the row after the event.
func (table Table) AfterEvents() Table {
	one := Table{Names: table.Names}
	for i, at := range table.Time {
		if n := len(one.Time); n > 0 && one.Time[n-1] == at {
			one.Rows[n-1] = table.Rows[i]
			continue
		}

		one.Time, one.Rows = append(one.Time, at), append(one.Rows, table.Rows[i])
	}

	return one
}

// Spans returns the difference of the maximum and the minimum of each column.
func (table Table) Spans() []float64 {
	spans := make([]float64, len(table.Names))
	for c := range spans {
		low, high := math.Inf(1), math.Inf(-1)
		for _, row := range table.Rows {
			low, high = min(low, row[c]), max(high, row[c])
		}
		spans[c] = high - low
	}

	return spans
}

// Columns returns the values of each column by its name.
func (table Table) Columns() map[string][]float64 {
	columns := map[string][]float64{}
	for _, row := range table.Rows {
		for c, name := range table.Names {
			columns[name] = append(columns[name], row[c])
		}
	}

	return columns
}

// Event is a row of a file of events. The second column is the name of the event.
type Event struct {
	Time   float64 // s
	Name   string
	Fields map[string]string // text of every field, by name of the column
}

// ReadEvents reads a file of events. If the file does not exist, it returns no events.
func ReadEvents(t testing.TB, file string) (events []Event) {
	t.Helper()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	names, lines := fields(t, file)
	for _, line := range lines {
		e := Event{Time: number(line[0]), Name: line[1], Fields: map[string]string{}}
		if math.IsNaN(e.Time) {
			t.Fatalf("%s: time %q of an event is not a number", file, line[0])
		}
		for i, text := range line {
			e.Fields[names[i]] = text
		}
		events = append(events, e)
	}

	return events
}

// fields returns the names of the columns and the fields of all other rows as text.
func fields(t testing.TB, file string) (names []string, lines [][]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 || len(all[0]) < 2 {
		t.Fatalf("%s: expected at least two rows and two columns", file)
	}
	for _, name := range all[0] {
		name, _, _ = strings.Cut(name, "[")
		names = append(names, name)
	}

	return names, all[1:]
}

func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
