package rt

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"lockstep/sched"
)

func TestTwoMappingsShareOneStatusBlock(t *testing.T) {
	f, a, err := CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := MapStatusBlock(f)
	if err != nil {
		t.Fatal(err)
	}
	if a == b {
		t.Fatal("the second mapping is the first")
	}
	if err := f.Truncate(0); err == nil {
		t.Fatal("the page can be cut short while it is mapped")
	}
	a.Missed.Add(3)
	a.Late.Record(1000)
	a.publish(7, []float64{1, math.Inf(1), math.Copysign(0, -1)})
	b.Stop.Store(1)
	y := make([]float64, 3)
	tick, ok := b.Outputs(y)
	if b.Missed.Load() != 3 || b.Late.N() != 1 || a.Stop.Load() != 1 {
		t.Errorf("missed %d, %d lateness, stop %d; want 3, 1, 1", b.Missed.Load(), b.Late.N(), a.Stop.Load())
	}
	if !ok || tick != 7 || y[0] != 1 || !math.IsInf(y[1], 1) || !math.Signbit(y[2]) {
		t.Errorf("outputs of tick %d: %v, ok %t; want those of tick 7: 1, +Inf, -0", tick, y, ok)
	}
}

func TestMapStatusBlockRefusesOtherFiles(t *testing.T) {
	page := func(change func(p *StatusBlock)) *os.File {
		f, p, err := CreateStatusBlock()
		if err != nil {
			t.Fatal(err)
		}
		change(p)
		return f
	}
	file := func(size int64) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "page"))
		if err == nil {
			err = f.Truncate(size)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    *os.File
		want string
	}{
		{page(func(p *StatusBlock) { p.version++ }), fmt.Sprintf("version %d; want", statusVersion+1)},
		{page(func(p *StatusBlock) { p.magic = 0 }), "is marked 0x0"},
		{page(func(p *StatusBlock) { p.size-- }), "is marked"},
		{file(0), "lockstep did not write it"},
		{file(int64(statusSize) - 8), "start both processes from one binary"},
		{file(int64(statusSize)), "is marked 0x0, version 0"},
		{null, "lockstep did not write it"},
	} {
		p, err := MapStatusBlock(c.f)
		if err == nil || p != nil || !strings.HasPrefix(err.Error(), "rt: status block") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("MapStatusBlock: %v, want %q", err, c.want)
		}
		c.f.Close()
	}
}

// Shared memory holds no pointers, and 8-byte words only.
func TestStatusBlockConsistsOfWordsOnly(t *testing.T) {
	var check func(name string, typ reflect.Type)
	check = func(name string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Uint64:
		case reflect.Array:
			check(name+"[]", typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				if f := typ.Field(i); f.Type.Size() > 0 {
					check(name+"."+f.Name, f.Type)
				}
			}
		default:
			t.Errorf("%s is a %v, want a uint64", name, typ)
		}
	}
	check("Page", reflect.TypeFor[StatusBlock]())
	if at := unsafe.Offsetof(StatusBlock{}.magic); at != 0 {
		t.Errorf("the magic word is at byte %d, want 0", at)
	}
}

// Every element of the vector is the tick: a reader that mixed two ticks would
// see it.
func TestReaderSeesOutputsOfOneTick(t *testing.T) {
	_, p, err := CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	const ticks = 5000
	go func() {
		y := make([]float64, MaxOutputs)
		for k := int64(1); k <= ticks; k++ {
			for i := range y {
				y[i] = float64(k)
			}
			p.publish(k, y)
			for now := sched.Now(); sched.Now()-now < 3000; { // some time to read
			}
		}
	}()
	y := make([]float64, MaxOutputs)
	read, last := 0, int64(0)
	for last < ticks {
		tick, ok := p.Outputs(y)
		if !ok {
			continue
		}
		read++
		if tick < last {
			t.Fatalf("tick %d after tick %d", tick, last)
		}
		last = tick
		for i, v := range y {
			if v != float64(tick) {
				t.Fatalf("tick %d: output %d is of tick %g", tick, i, v)
			}
		}
	}
	t.Logf("%d reads of %d ticks", read, ticks)
}

func TestOutputsOfAWriterThatDiedHalfwayAreRefused(t *testing.T) {
	p := new(StatusBlock)
	y := make([]float64, 1)
	if tick, ok := p.Outputs(y); ok || tick != 0 {
		t.Error("a page without a tick has outputs")
	}
	p.publish(1, y)
	if _, ok := p.Outputs(y); !ok {
		t.Error("a page with a tick has no outputs")
	}
	p.seq.Add(1)
	if tick, ok := p.Outputs(y); ok || tick != 0 {
		t.Error("a page whose writer is half-way has outputs")
	}
}

func TestStatusBlockDoesNotAllocate(t *testing.T) {
	p := new(StatusBlock)
	y := make([]float64, 40)
	if n := testing.AllocsPerRun(100, func() { p.publish(1, y); p.Outputs(y) }); n != 0 {
		t.Errorf("publish and Outputs allocate %v times", n)
	}
}

func TestReasonsReadAsSentences(t *testing.T) {
	for r, want := range []string{"the run has not ended", "done", "stopped", "stopped: the host shuts down", "a tick was missed",
		"more ticks were missed at once than the policy allows", "a state is no longer finite", "the timer failed",
		"the supervisor has ended", "a bus was down or off", "a received message was late",
		"the protection of a received message failed", "an address on a bus was lost", "reason 13"} {
		r := Reason(r)
		if r.String() != want || r.Clean() != (r == Done || r == Stopped || r == Shutdown) {
			t.Errorf("reason %d is %q, clean %t, want %q", uint64(r), r, r.Clean(), want)
		}
	}
	for o, want := range map[Overrun]string{{}: "stop", {Policy: Safe}: "safe", {Skip, 20}: "skip 20", {CatchUp, 3}: "catchup 3", {Policy(9), 0}: "policy 9"} {
		if o.String() != want {
			t.Errorf("%#v reads %q, want %q", o, o.String(), want)
		}
	}
}
