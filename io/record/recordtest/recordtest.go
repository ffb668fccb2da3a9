// Package recordtest owns the reading of records for tests: it serves the tests of several
// packages. It judges nothing, and of lockstep it imports io/record only.
package recordtest

import (
	"errors"
	"io"
	"slices"
	"testing"

	"lockstep/io/record"
)

// Entries returns copies of all entries of a record, in their order.
func Entries(t testing.TB, file string) (list []record.Entry) {
	t.Helper()
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		c := *e
		c.Tick.U, c.Tick.Y, c.Tick.Phases = slices.Clone(e.Tick.U), slices.Clone(e.Tick.Y), slices.Clone(e.Tick.Phases)
		list = append(list, c)
	}
}
