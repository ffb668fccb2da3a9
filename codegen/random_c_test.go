package codegen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/model/kernel"
)

// Operations of c99/testdata/drive.c.
const (
	driveStep = iota
	driveReset
	driveOutput
	driveInput
	driveOwn
)

// encodeCommands returns commands as drive.c reads them.
func encodeCommands(rows [][]float64) []byte {
	var b bytes.Buffer
	add := func(op int, input, on float64) {
		binary.Write(&b, binary.NativeEndian, [3]int64{int64(op), int64(input), int64(on)})
	}
	for _, row := range rows {
		switch row[0] {
		case 1:
			add(driveReset, 0, 0)
		case 2:
			add(driveOutput, 0, 0)
		}
		if row[1] >= 0 {
			add(driveInput, row[1], row[2])
			add(driveOwn, row[1], 0)
		}
		add(driveStep, 0, 0)
		binary.Write(&b, binary.NativeEndian, row[3:])
	}
	return b.Bytes()
}

// expectedResults returns the results of the table kernel for the commands, in the order of
// drive.c.
func expectedResults(k *kernel.Kernel, rows [][]float64) (out []float64) {
	_, p := k.Dims()
	y := make([]float64, p)
	for _, row := range rows {
		switch row[0] {
		case 1:
			k.Reset()
		case 2:
			k.Output(y)
			out = append(out, y...)
		}
		if i := int(row[1]); i >= 0 {
			k.Drive(i, row[2] == 1)
			driven := 0.0
			if k.Driven(i) {
				driven = 1
			}
			out = append(out, k.Own(i), driven)
		}
		k.Step(y, row[3:])
		out = append(append(out, y...), y[p-1]) // "fault": the result of a step in C
	}
	return out
}

// buildDriver compiles the C of plants and drive.c to one program.
func buildDriver(t *testing.T, list []subject, flags ...string) (program string) {
	t.Helper()
	dir := t.TempDir()
	drive, err := filepath.Abs("c99/testdata/drive.c")
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "drive")
	flags = append([]string{"-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off", "-I" + dir}, flags...)
	sources := []string{drive}
	head, plants := "", "#define PLANTS"
	for _, s := range list {
		j := s.job()
		for name, text := range generatedC(t, j) {
			put(t, filepath.Join(dir, name), text)
		}
		head += "#include \"" + j.Package + ".h\"\n"
		plants += " X(" + j.Package + ", " + strings.ToUpper(j.Package) + ")"
		sources = append(sources, j.Package+".c")
	}
	put(t, filepath.Join(dir, "plants.h"), []byte(head+plants+"\n"))
	gcc := func(args ...string) {
		cmd := exec.Command("gcc", slices.Concat(flags, args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("gcc (Debian: apt install gcc libc6-dev): %v\n%.3000s", err, out)
		}
	}
	var compiling sync.WaitGroup
	slots := make(chan bool, runtime.NumCPU()) // one for each running compiler
	objects := make([]string, len(sources))
	for i, source := range sources {
		objects[i] = fmt.Sprintf("%d.o", i)
		compiling.Go(func() {
			slots <- true
			gcc("-c", "-o", objects[i], source)
			<-slots
		})
	}
	if compiling.Wait(); !t.Failed() {
		gcc(append(append([]string{"-o", program}, objects...), "-lm")...)
	}
	if t.Failed() {
		t.FailNow()
	}
	return program
}

func TestRandomPlantsInCGiveTheBitsOfTheTableKernel(t *testing.T) {
	t.Parallel()
	names, flags := []string{"random:1", "random:11", "random:33", "random:2003"}, []string{"-O1"}
	if breadth {
		flags = append(flags, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
		for seed := range 30 {
			names = append(names, fmt.Sprintf("random:%d", 100+seed), fmt.Sprintf("random:%d", carFrom+100+seed))
		}
	}
	compareC(t, names, flags...)
}

// The test is here because this package caches the Go of the plants. Package c99 tests some plants
// with other optimisations.
func TestPlantsInCGiveTheBitsOfTheTableKernel(t *testing.T) {
	t.Parallel()
	names := []string{"coupled-clutches", "powershift", "automatic-car", "hybrid-clearance", "blocks:driven"}
	if lab.LongTests() {
		names = append(embeddedNames(), "blocks:driven")
	}
	compareC(t, names, "-O1")
}

// compareC compares the results of plants in C with those of the table kernel, bit by bit.
func compareC(t *testing.T, names []string, flags ...string) {
	var list []subject
	for _, name := range names {
		s := load(t, name)
		if len(s.tables.StateName) > 40 { // a train, or a gearbox with dog clutches: slow
			s.ticks = 200
		}
		list = append(list, s)
	}
	program := buildDriver(t, list, flags...)
	for i, s := range list {
		t.Run(s.name, func(t *testing.T) {
			rows := tickCommands(s, uint64(1000+i))
			cmd := exec.Command(program, PackageName(s.name))
			cmd.Stdin, cmd.Stderr = bytes.NewReader(encodeCommands(rows)), os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			want := expectedResults(kernel.New(s.tables), rows)
			if len(out) != 8*len(want) {
				t.Fatalf("%d numbers in C, want %d", len(out)/8, len(want))
			}
			for n, w := range want {
				if got := binary.NativeEndian.Uint64(out[8*n:]); got != math.Float64bits(w) && !(w != w && math.IsNaN(math.Float64frombits(got))) {
					t.Fatalf("number %d is %v in C, %v in the table kernel", n, math.Float64frombits(got), w)
				}
			}
		})
	}
}
