package checkpoint

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// part is a part of state.
type part struct {
	name  string
	value float64
	list  []int32
}

// state has what the state of a loop has: numbers, slices whose length changes, pointers, and what is left out.
type state struct {
	tick   int64
	flags  [3]bool
	values []float64
	parts  []part
	next   *part
	same   *part // next, too
	calls  func()
	names  map[string]int
	fixed  []float64 `checkpoint:"-"`
}

func newState() *state {
	p := &part{name: "b", value: 2, list: make([]int32, 1, 4)}
	return &state{
		tick: 7, flags: [3]bool{true}, values: append(make([]float64, 0, 8), 1, math.Inf(-1)),
		parts: []part{{"a", 1, []int32{4, 5}}, {name: "none"}}, next: p, same: p,
		calls: func() {}, names: map[string]int{"x": 1}, fixed: []float64{9},
	}
}

// change changes every number of a state.
func (s *state) change() {
	s.tick, s.flags[2] = 8, true
	s.values = append(s.values, 3)
	s.values[0] = math.NaN()
	s.parts[0].value, s.parts[0].list[1], s.next.value = -1, -5, math.Copysign(0, -1)
	s.next.list = append(s.next.list, 6)
	s.fixed[0] = 10
}

func TestLoadGivesTheStateOfTheSave(t *testing.T) {
	first, other := newState(), newState()
	plan, same := New(first), New(other)
	if plan.Digest() != same.Digest() || plan.Size() != same.Size() {
		t.Fatal("equal values have different layouts")
	}
	copied := make([]byte, plan.Size())
	plan.Save(copied)
	first.change()
	other.change()
	if err := same.Load(copied, plan.Digest()); err != nil {
		t.Fatal(err)
	}
	want := newState()
	want.fixed[0] = 10 // left out
	other.calls, want.calls = nil, nil
	if !reflect.DeepEqual(other, want) {
		t.Errorf("%+v %+v, want %+v %+v", other, other.next, want, want.next)
	}
}

func TestLoadRefusesACopyOfOtherValues(t *testing.T) {
	type longer struct {
		state
		more int
	}
	plan, other := New(newState()), New(&longer{state: *newState(), more: 1})
	copied := make([]byte, plan.Size())
	for _, p := range []*Plan{other, New(&part{})} {
		if err := p.Load(copied, plan.Digest()); err == nil {
			t.Error("a copy of other values is loaded")
		}
	}
	if err := plan.Load(copied[1:], plan.Digest()); err == nil {
		t.Error("a copy that was cut is loaded")
	}
}

// Another user may have made the file, shorter than what is read of it.
func TestMapRefusesAFileOfAnotherSize(t *testing.T) {
	f, _, err := CreateFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Map(f); err != nil {
		t.Error(err)
	}
	short, err := os.Create(filepath.Join(t.TempDir(), "short"))
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if _, err := Map(short); !errors.Is(err, ErrSize) {
		t.Errorf("an empty file: %v, want %v", err, ErrSize)
	}
}

func TestSaveDoesNotAllocate(t *testing.T) {
	plan, memory := New(newState()), NewMemory()
	if !memory.Use(plan) {
		t.Fatal("the memory is too small for a small state")
	}
	if n := testing.AllocsPerRun(100, func() { memory.Save(plan) }); n != 0 {
		t.Errorf("%g allocations, want none", n)
	}
	if data, digest := memory.Copy(); len(data) != plan.Size() || digest != plan.Digest() {
		t.Errorf("a copy of %d bytes, want %d", len(data), plan.Size())
	}
}
