package c99_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lockstep/hil_test/lab"
)

// What a script does, as testdata/drive.c numbers it.
const (
	opStep = iota
	opReset
	opOutput
	opDrive
	opOwn
	opSave
	opRestore
)

// sanitizers stop a program at what C leaves undefined.
const sanitizers = "-fsanitize=address,undefined -fno-sanitize-recover=all"

// strict is what every kernel compiles with.
const strict = "-Wall -Wextra -Werror -pedantic"

// TestMain has the garbage collected less often: what is generated is short-lived, and the
// tests of a package end soon.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	lab.Main(m)
}

// cKernel is a kernel in Go.
type cKernel interface {
	Dims() (m, p int)
	Step(y, u []float64)
	Output(y []float64)
	Reset()
	Drive(i int, on bool)
	Driven(i int) bool
	Own(i int) float64
}

// script is a run of a kernel: what is done, and the inputs of its steps.
type script struct {
	ops [][3]int64
	us  [][]float64
}

func (s *script) add(op, i, on int) {
	switch op {
	case opStep, opSave, opRestore: // a step has inputs, and a copy is not in Go's reach
		op = opOutput
	}
	s.ops = append(s.ops, [3]int64{int64(op), int64(i), int64(on)})
}

func (s *script) step(u []float64) {
	s.ops, s.us = append(s.ops, [3]int64{opStep}), append(s.us, u)
}

// bytes is the script as the driver reads it.
func (s *script) bytes() []byte {
	var b bytes.Buffer
	next := 0
	for _, op := range s.ops {
		binary.Write(&b, binary.NativeEndian, op)
		if op[0] == opStep {
			binary.Write(&b, binary.NativeEndian, s.us[next])
			next++
		}
	}
	return b.Bytes()
}

// inGo runs the script in Go. The last number of a step is what its function returns in C.
func (s *script) inGo(k cKernel) (out []float64) {
	_, p := k.Dims()
	y := make([]float64, p)
	next := 0
	for _, op := range s.ops {
		switch i := int(op[1]); op[0] {
		case opStep:
			k.Step(y, s.us[next])
			out = append(append(out, y...), y[p-1])
			next++
		case opReset:
			k.Reset()
		case opOutput:
			k.Output(y)
			out = append(out, y...)
		case opDrive:
			k.Drive(i, op[2] != 0)
		case opOwn:
			driven := 0.0
			if k.Driven(i) {
				driven = 1
			}
			out = append(out, k.Own(i), driven)
		}
	}
	return out
}

// differs says where two runs are not the same bits; one NaN is as good as another.
func (s *script) differs(want, got []float64) string {
	if len(want) != len(got) || len(want) == 0 {
		return fmt.Sprintf("%d numbers in C, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) && !(want[i] != want[i] && got[i] != got[i]) {
			return fmt.Sprintf("number %d is %g (%x) in C, %g (%x) in Go", i, got[i], math.Float64bits(got[i]), want[i], math.Float64bits(want[i]))
		}
	}
	return ""
}

// cBuild is a folder with kernels in C and the program that drives them.
type cBuild struct {
	dir   string
	names []string
}

// cDriver is such a program, built.
type cDriver struct{ binary string }

// writeFiles writes generated files into a new folder.
func writeFiles(t testing.TB, files map[string]files) string {
	t.Helper()
	dir := t.TempDir()
	for _, list := range files {
		for name, text := range list {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// newCBuild writes kernels, by their prefixes, and the program.
func newCBuild(t testing.TB, files map[string]files) *cBuild {
	t.Helper()
	b := &cBuild{dir: writeFiles(t, files), names: slices.Sorted(maps.Keys(files))}
	head, list := "", "#define PLANTS"
	for _, n := range b.names {
		head += "#include \"" + n + ".h\"\n"
		list += " X(" + n + ", " + strings.ToUpper(n) + ")"
	}
	text, err := os.ReadFile("testdata/drive.c")
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "plants.h"), []byte(head+list+"\n"), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "drive.c"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// with builds the program with flags, its files side by side.
func (b *cBuild) with(t testing.TB, flags string) cDriver {
	t.Helper()
	needGcc(t)
	d := cDriver{filepath.Join(b.dir, fmt.Sprintf("drive-%x", sha256.Sum256([]byte(flags))))}
	var objects []string
	var failed atomic.Pointer[string]
	var all sync.WaitGroup
	free := make(chan bool, runtime.NumCPU())
	for _, n := range append([]string{"drive"}, b.names...) {
		object := d.binary + "-" + n + ".o"
		objects = append(objects, object)
		all.Go(func() {
			free <- true
			defer func() { <-free }()
			if trouble := compiled(b.dir, "gcc", "-std=c99 "+flags+" -c -o "+object+" "+n+".c"); trouble != "" {
				failed.Store(&trouble)
			}
		})
	}
	all.Wait()
	if trouble := failed.Load(); trouble != nil {
		t.Fatal(*trouble)
	}
	compile(t, b.dir, "gcc", flags+" -o "+d.binary+" "+strings.Join(objects, " ")+" -lm")
	return d
}

func needGcc(t testing.TB) {
	if _, err := exec.LookPath("gcc"); err != nil {
		lab.Skip(t, "gcc is missing, which compiles the kernels: apt-get install gcc libc6-dev")
	}
}

// compile runs a compiler; a warning fails.
func compile(t testing.TB, dir, compiler, flags string) {
	t.Helper()
	if trouble := compiled(dir, compiler, flags); trouble != "" {
		t.Fatal(trouble)
	}
}

// compiled is what a compiler finds wrong.
func compiled(dir, compiler, flags string) string {
	cmd := exec.Command(compiler, append(strings.Fields(strict), strings.Fields(flags)...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s %s: %v\n%.3000s", compiler, flags, err, out)
	}
	return ""
}

// run runs a script of one kernel.
func (d cDriver) run(t testing.TB, name string, s script) []float64 {
	t.Helper()
	cmd := exec.Command(d.binary, name)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(s.bytes()), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%.3000s", name, err, stderr.Bytes())
	}
	got := make([]float64, len(out)/8)
	if err := binary.Read(bytes.NewReader(out), binary.NativeEndian, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// files are texts by their names.
type files = map[string][]byte
