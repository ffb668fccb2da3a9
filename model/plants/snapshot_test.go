package plants_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// constant are the fields of a kernel that no step changes or leaves changed, and those that hold what follows from a lock set
// or from regions, with their key.
var constant = []string{
	"t", "h", "calls", "slips", "bcT", "outX", "outV", "outTau", "levels", "programs", "stack", "firstArg", "firstResult", "terms", "argRows", "argTauRows", "blocks", "bitOf", "fixedSize",
	"aStream", "bStream", "affineStream", "slipStream", "frictionStream", "largeBlocks", "faceBits", "active", "latent", "degree", "termOf", "onValues", "onLaws",
	"trialPer", "locks", "lockedMode", "lockedPer", "lockedSet", "lockedBase", "unlockedMode", "unlockedWA", "unlockedBase",
}

// spoil overwrites all that the steps of a sequence have left in its memory, with values that no step takes.
func spoil(s *kernel.Sequence) {
	v := reflect.ValueOf(s).Elem()
	k := v.FieldByName("kernels").Index(int(v.FieldByName("active").Int()))
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch at := unsafe.Pointer(v.UnsafeAddr()); v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if !slices.Contains(constant, v.Type().Field(i).Name) {
					visit(v.Field(i))
				}
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Float64:
			*(*float64)(at) = math.NaN()
		case reflect.Int, reflect.Int64:
			*(*int64)(at) = 1 << 40
		case reflect.Int8:
			*(*int8)(at) = 99
		case reflect.Uint64:
			*(*uint64)(at) = math.MaxUint64
		case reflect.Bool:
			*(*bool)(at) = true
		default:
			panic(fmt.Sprint("no value spoils a ", v.Type()))
		}
	}
	visit(k.Elem())
}

// act makes the commands before step k: values, changes inside of the step, and inputs that follow their own
// waveform or u. The same seed gives the same commands.
func act(s *kernel.Sequence, t *kernel.Tables, u []float64, seed uint64, k int) {
	if k%15 >= 5 {
		return // quiet ticks
	}
	random := rand.New(rand.NewPCG(seed, uint64(k)))
	for i := range u {
		value := t.Start[i] * (1 + 0.2*random.NormFloat64())
		switch random.IntN(6) {
		case 0:
			u[i] = value
		case 1:
			s.Drive(i, random.IntN(2) == 0)
		case 2:
			at, slope := 0.006*random.Float64(), 0.0
			if t.Ramped[i] {
				slope = t.Start[i] * random.NormFloat64()
			}
			s.Change(i, at, value, slope)
		}
	}
}

// After Restore the same commands give the same outputs, bit for bit, as after TakeSnapshot and as after the start,
// whatever the memory of the kernel holds.
func TestRestoredStateGivesTheSameBits(t *testing.T) {
	const before, after = 52, 40                                                            // ticks before TakeSnapshot, and those compared
	for n, e := range append(plants.List(), plants.Entry{Name: "sampled", Kind: "plant"}) { // sampled is in testdata
		if e.Kind != "plant" || e.Name == "train20" { // train3 is stepped sparse, too
			continue
		}
		for _, scheme := range []kernel.Scheme{kernel.Papers, kernel.Complete} {
			if scheme == kernel.Papers && strings.HasPrefix(e.Name, "hybrid-") {
				continue // their tables take long; hybrid has both
			}
			t.Run(fmt.Sprint(e.Name, " ", scheme), func(t *testing.T) {
				sys, random := load(t, e.Name), rand.New(rand.NewPCG(uint64(n), 1))
				m := len(sys.Inputs)
				opt := kernel.Options{Period: 5 * time.Millisecond, Scheme: scheme}
				if sys.Partition == nil {
					opt.Places, opt.Driven, opt.Ramped = 3, make([]bool, m), make([]bool, m)
					for i := range m {
						opt.Driven[i], opt.Ramped[i] = random.IntN(2) == 0, random.IntN(2) == 0
						if scheme == kernel.Papers {
							sys.Inputs[i].Delay = []float64{0, 0.003, 0.0121}[random.IntN(3)]
						}
					}
				}
				tables, err := kernel.Prepare(sys, opt)
				if err != nil {
					t.Fatal(err)
				}
				s := kernel.NewSequence(tables, nil)
				s.ReserveSnapshots(2)
				u, y := slices.Clone(tables.Start), make([]float64, len(tables.Outputs))
				steps := func(from, n int, seed uint64) (list [][]float64) {
					for k := from; k < from+n; k++ {
						if opt.Places > 0 {
							act(s, tables, u, seed, k)
						}
						s.Step(y, u)
						list = append(list, slices.Clone(y))
					}
					return list
				}
				driven := func() (list []bool) {
					for i := range m {
						list = append(list, s.Driven(i))
					}
					return list
				}
				compare := func(what string, got, want [][]float64) {
					t.Helper()
					for k := range want {
						for i, w := range want[k] {
							if math.Float64bits(got[k][i]) != math.Float64bits(w) {
								t.Fatalf("%s, tick %d: %s is %.17g, want %.17g", what, k+1, tables.Outputs[i].Name, got[k][i], w)
							}
						}
					}
				}

				drivenAtStart := driven()
				start := steps(0, before, 7)
				drivenThere, held := driven(), slices.Clone(u)
				s.TakeSnapshot(1)
				kept := steps(before, after, 7)
				steps(0, 5, 8)
				for range 2 {
					spoil(s)
					for i, on := range drivenThere {
						s.Drive(i, on)
					}
					if o := s.Restore(1); o != int(kernel.NoObstacle) || s.Ticks() != before {
						t.Fatalf("obstacle %d, %d ticks", o, s.Ticks())
					}
					copy(u, held)
					compare("after Restore", steps(before, after, 7), kept)
				}
				for i, on := range drivenAtStart {
					s.Drive(i, on)
				}
				if o := s.Restore(-1); o != int(kernel.NoObstacle) || s.Ticks() != 0 {
					t.Fatalf("obstacle %d, %d ticks", o, s.Ticks())
				}
				copy(u, tables.Start)
				compare("after the start", steps(0, before, 7), start)
			})
		}
	}
}

// A state is carried over to other tables as by TakeOver, and nothing in a snapshot, a reset or the steps that
// follow allocates.
func TestSnapshotOfOtherTablesIsCarriedOver(t *testing.T) {
	sys := load(t, "powershift")
	opt := kernel.Options{Period: 5 * time.Millisecond, Scheme: kernel.Complete}
	before, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	after, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i := range after.Friction {
		after.Friction[i].Gain *= 1.1
	}
	s, want := kernel.NewSequence(before, []kernel.Change{{Tick: 30, Tables: after}}), kernel.New(before)
	s.ReserveSnapshots(1)
	y, u := make([]float64, len(before.Outputs)), before.Start
	expected := slices.Clone(y)
	for k := range 40 {
		if k == 20 {
			s.TakeSnapshot(0)
		}
		if k < 20 {
			want.Step(expected, u)
		}
		s.Step(y, u)
	}
	continued := kernel.New(after)
	if !continued.TakeOver(want, u) {
		t.Fatal("refused")
	}
	if o := s.Restore(0); o != int(kernel.NoObstacle) || !s.Carries(0) {
		t.Fatalf("obstacle %d, carries %t", o, s.Carries(0))
	}
	for k := range 20 {
		s.Step(y, u)
		if continued.Step(expected, u); !slices.Equal(y, expected) {
			t.Fatalf("tick %d: %v\nwant %v", k+1, y, expected)
		}
	}
	if o := s.Restore(1); o != int(kernel.NoSnapshot) || after.Describe(kernel.Obstacle(o)) != "there is no such snapshot" {
		t.Errorf("obstacle %d without a snapshot", o)
	}
	if n := testing.AllocsPerRun(20, func() {
		s.Restore(0)
		s.Step(y, u)
		s.TakeSnapshot(0)
		s.Restore(0)
		s.Restore(-1)
		s.Step(y, u)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
