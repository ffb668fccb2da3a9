// Package unittest owns what the tests of the control units share: a unit whose parts they see, and a bus that records.
// No unit imports it.
package unittest

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
)

// Unit is a stepped unit with its parts.
type Unit struct {
	*unit.Stepped
	*unit.Base
	Law unit.Law
}

// New returns a unit of the type called name at instant 0; it ends the test without such a type, or with a wrong
// setting.
func New(t *testing.T, types []unit.Type, name string, line, log io.Writer, settings ...unit.Setting) *Unit {
	t.Helper()
	k, u := Type(t, types, name), &Unit{}
	newLaw := k.New
	k.New = func(b *unit.Base) unit.Law {
		u.Base, u.Law = b, newLaw(b)
		return u.Law
	}
	var err error
	if u.Stepped, err = unit.NewStepped(k, line, log, settings...); err != nil {
		t.Fatal(err)
	}
	return u
}

// Type returns the type called name; it ends the test without such a type.
func Type(t *testing.T, types []unit.Type, name string) unit.Type {
	t.Helper()
	i := slices.IndexFunc(types, func(k unit.Type) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("no control unit %q", name)
	}
	return types[i]
}

// Line records the frames of a stepped unit with the times of its caller.
type Line struct {
	T   *testing.T
	Now time.Duration
	At  []time.Duration
	All []can.Frame
	Err error // of every write
}

// Write records a frame.
func (l *Line) Write(b []byte) (int, error) {
	var f can.Frame
	if err := can.Unmarshal(b, &f); err != nil || len(b) != 16 {
		l.T.Errorf("a packet of %d bytes: %v", len(b), err)
	}
	l.At, l.All = append(l.At, l.Now), append(l.All, f)
	return len(b), l.Err
}

// Pack returns a frame in the form in which a read from the bus returns it.
func Pack(t *testing.T, f can.Frame) []byte {
	t.Helper()
	b, err := can.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
