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

// Operations of a script, numbered as in testdata/drive.c.
const (
	opStep = iota
	opReset
	opOutput
	opDrive
	opOwn
	opSave
	opRestore
)

// sanitizers are compiler flags that stop a program at undefined behaviour.
const sanitizers = "-fsanitize=address,undefined -fno-sanitize-recover=all"

// strict are the compiler flags of every kernel.
const strict = "-Wall -Wextra -Werror -pedantic"

// TestMain collects garbage less often: generated files are short-lived.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	lab.Main(m)
}

// goKernel is a kernel in Go.
type goKernel interface {
	Dims() (m, p int)
	Step(y, u []float64)
	Output(y []float64)
	Reset()
	Drive(i int, on bool)
	Driven(i int) bool
	Own(i int) float64
}

// script is a sequence of operations on a kernel.
type script struct {
	ops [][3]int64  // operation, input, on or off
	us  [][]float64 // inputs of the steps
}

// add adds an operation. A step, a save or a restore becomes an output: a step needs inputs, and Go
// cannot copy the bytes of a kernel.
func (s *script) add(op, i, on int) {
	switch op {
	case opStep, opSave, opRestore:
		op = opOutput
	}
	s.ops = append(s.ops, [3]int64{int64(op), int64(i), int64(on)})
}

func (s *script) step(u []float64) {
	s.ops, s.us = append(s.ops, [3]int64{opStep}), append(s.us, u)
}

// bytes returns the script as drive.c reads it.
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

// runGo executes the script in Go. The last number of a step is the result of its C function.
func (s *script) runGo(k goKernel) (out []float64) {
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

// difference returns the first difference in bits between two runs; "" if there is none. All NaN
// are equal.
func (s *script) difference(want, got []float64) string {
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

// cBuild is a folder with kernels in C and the program drive.c.
type cBuild struct {
	dir   string
	names []string
}

// cDriver is the compiled program of a cBuild.
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

// newCBuild writes the files of kernels, given by prefix, and drive.c.
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

// build compiles the program with flags, its files in parallel.
func (b *cBuild) build(t testing.TB, flags string) cDriver {
	t.Helper()
	needGcc(t)
	d := cDriver{filepath.Join(b.dir, fmt.Sprintf("drive-%x", sha256.Sum256([]byte(flags))))}
	var objects []string
	var failed atomic.Pointer[string]
	var all sync.WaitGroup
	slots := make(chan bool, runtime.NumCPU())
	for _, n := range append([]string{"drive"}, b.names...) {
		object := d.binary + "-" + n + ".o"
		objects = append(objects, object)
		all.Go(func() {
			slots <- true
			defer func() { <-slots }()
			if report := compileReport(b.dir, "gcc", "-std=c99 "+flags+" -c -o "+object+" "+n+".c"); report != "" {
				failed.Store(&report)
			}
		})
	}
	all.Wait()
	if report := failed.Load(); report != nil {
		t.Fatal(*report)
	}
	compile(t, b.dir, "gcc", flags+" -o "+d.binary+" "+strings.Join(objects, " ")+" -lm")
	return d
}

func needGcc(t testing.TB) {
	if _, err := exec.LookPath("gcc"); err != nil {
		lab.Skip(t, "gcc is missing; it compiles the kernels: apt-get install gcc libc6-dev")
	}
}

// compile runs a compiler; a warning fails the test.
func compile(t testing.TB, dir, compiler, flags string) {
	t.Helper()
	if report := compileReport(dir, compiler, flags); report != "" {
		t.Fatal(report)
	}
}

// compileReport runs a compiler and returns its errors and warnings; "" if there are none.
func compileReport(dir, compiler, flags string) string {
	cmd := exec.Command(compiler, append(strings.Fields(strict), strings.Fields(flags)...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s %s: %v\n%.3000s", compiler, flags, err, out)
	}
	return ""
}

// run executes a script on a kernel and returns its results.
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

// files are the contents of files, by name.
type files = map[string][]byte
