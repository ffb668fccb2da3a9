package bench

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"lockstep/model/kernel"
	"lockstep/model/plantfile"
)

// TableSet is the tables that take effect in a run, for the phase in which they were prepared and for those
// after it.
type TableSet struct {
	Phase  int
	Tables []*kernel.Tables // of Phase, then of each later one
}

// Kernels returns new kernels of the set, by phase; nil for the phases before it.
func (s *TableSet) Kernels() []*kernel.Kernel {
	list := make([]*kernel.Kernel, s.Phase+len(s.Tables))
	for i, t := range s.Tables {
		list[s.Phase+i] = kernel.New(t)
	}
	return list
}

// PrepareSet prepares the tables with the values in effect, set, for a phase of the run and those after it.
func (h *Handover) PrepareSet(phase int, set []plantfile.Assignment) (*TableSet, error) {
	s := &TableSet{Phase: phase}
	for i := phase; i <= len(h.Changes); i++ {
		t, err := h.PrepareChange(h.SetOfPhase(i, set))
		if err != nil {
			return nil, err
		}
		s.Tables = append(s.Tables, t)
	}
	return s, nil
}

// SetInEffect returns the values of a set whose text stands with its tables in a target, one a line.
func SetInEffect(text string) (set []plantfile.Assignment) {
	for line := range strings.Lines(text) {
		a, _ := plantfile.ParseAssignment(line) // written by a supervisor
		set = append(set, a)
	}
	return set
}

// TableCoder encodes the sets of a run for its record, each as the difference to the tables of the same phases
// before it, and decodes them in the same order.
type TableCoder struct {
	last []*kernel.Tables // by phase
}

// NewTableCoder returns a coder whose first set follows the tables of the hand-over.
func NewTableCoder(h *Handover) *TableCoder {
	c := &TableCoder{[]*kernel.Tables{h.Tables}}
	for i := range h.Changes {
		c.last = append(c.last, h.Changes[i].Tables)
	}
	return c
}

// codedSet is a set in a record.
type codedSet struct {
	Phase  int
	Tables []codedTables
}

// codedTables are tables in a record.
type codedTables struct {
	Difference []byte // see difference
	Whole      []byte // the tables in gob; none: Difference holds
}

// Encode encodes a set.
func (c *TableCoder) Encode(s *TableSet) ([]byte, error) {
	coded := codedSet{Phase: s.Phase}
	for i, t := range s.Tables {
		last, of := &c.last[s.Phase+i], codedTables{}
		var ok bool
		if of.Difference, ok = difference(*last, t); !ok {
			var err error
			if of.Whole, err = encoded(t); err != nil {
				return nil, err
			}
			of.Difference = nil
		}
		*last, coded.Tables = t, append(coded.Tables, of)
	}
	return encoded(&coded)
}

// encoded returns data in gob.
func encoded(data any) ([]byte, error) {
	var to bytes.Buffer
	if err := gob.NewEncoder(&to).Encode(data); err != nil {
		return nil, fmt.Errorf("bench: tables: %w", err)
	}
	return to.Bytes(), nil
}

// decoded returns tables from gob.
func decoded(data []byte) (*kernel.Tables, error) {
	t := &kernel.Tables{}
	return t, gob.NewDecoder(bytes.NewReader(data)).Decode(t)
}

// Decode decodes a set. digest is its DigestOfData.
func (c *TableCoder) Decode(data []byte, digest string) (*TableSet, error) {
	wrong := fmt.Errorf("the tables do not have the hash %.60s: the file was changed, or another version wrote them", digest)
	var coded codedSet
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&coded); err != nil ||
		coded.Phase < 0 || coded.Phase+len(coded.Tables) != len(c.last) || len(coded.Tables) == 0 {
		return nil, wrong
	}
	s := &TableSet{Phase: coded.Phase}
	for i, of := range coded.Tables {
		t, err := decoded(of.Whole)
		if len(of.Whole) == 0 {
			t, err = applied(c.last[s.Phase+i], of.Difference)
		}
		if err != nil {
			return nil, wrong
		}
		s.Tables = append(s.Tables, t)
	}
	if DigestOfData(s) != digest {
		return nil, wrong
	}
	copy(c.last[s.Phase:], s.Tables)
	return s, nil
}

// numbersOf calls each for the numbers of plain data in a fixed order, and rest for its lengths and texts.
func numbersOf(v reflect.Value, each func(v reflect.Value), rest func(text string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if rest(fmt.Sprint(v.IsNil())); !v.IsNil() {
			numbersOf(v.Elem(), each, rest)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				numbersOf(v.Field(i), each, rest)
			}
		}
	case reflect.Slice, reflect.Array:
		rest(fmt.Sprint(v.Len()))
		for i := range v.Len() {
			numbersOf(v.Index(i), each, rest)
		}
	case reflect.String:
		rest(v.String())
	default:
		each(v)
	}
}

// bitsOf returns a number as bits.
func bitsOf(v reflect.Value) uint64 {
	switch {
	case v.CanFloat():
		return math.Float64bits(v.Float())
	case v.CanInt():
		return uint64(v.Int())
	case v.CanUint():
		return v.Uint()
	}
	return map[bool]uint64{true: 1}[v.Bool()]
}

// setBits sets a number to bits.
func setBits(v reflect.Value, bits uint64) {
	switch {
	case v.CanFloat():
		v.SetFloat(math.Float64frombits(bits))
	case v.CanInt():
		v.SetInt(int64(bits))
	case v.CanUint():
		v.SetUint(bits)
	default:
		v.SetBool(bits != 0)
	}
}

// difference returns how tables differ from earlier ones: for each number that differs the count of equal ones
// before it and the exclusive or of the bits, as unsigned varints. false: they do not only differ in numbers.
func difference(from, to *kernel.Tables) (d []byte, ok bool) {
	var numbers []uint64
	var texts []string
	numbersOf(reflect.ValueOf(from), func(v reflect.Value) { numbers = append(numbers, bitsOf(v)) },
		func(text string) { texts = append(texts, text) })
	at, equal, same := 0, uint64(0), true
	numbersOf(reflect.ValueOf(to), func(v reflect.Value) {
		if at < len(numbers) {
			if x := bitsOf(v) ^ numbers[at]; x != 0 {
				d, equal = binary.AppendUvarint(binary.AppendUvarint(d, equal), x), 0
			} else {
				equal++
			}
		}
		at++
	}, func(text string) {
		same = same && len(texts) > 0 && texts[0] == text
		if len(texts) > 0 {
			texts = texts[1:]
		}
	})
	return d, same && len(texts) == 0 && at == len(numbers)
}

// applied returns earlier tables with a difference.
func applied(from *kernel.Tables, d []byte) (*kernel.Tables, error) {
	copied, err := encoded(from)
	if err != nil {
		return nil, err
	}
	to, err := decoded(copied)
	if err != nil {
		return nil, err
	}
	next := func() (n uint64) {
		n, size := binary.Uvarint(d)
		d = d[max(0, size):]
		return n
	}
	left := len(d) > 0
	equal := next()
	numbersOf(reflect.ValueOf(to), func(v reflect.Value) {
		switch {
		case !left:
		case equal > 0:
			equal--
		default:
			setBits(v, bitsOf(v)^next())
			left = len(d) > 0
			equal = next()
		}
	}, func(string) {})
	if left {
		return nil, errors.New("the difference is longer than the tables")
	}
	return to, nil
}
