package c99_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/codegen"
	"lockstep/model/kernel"
)

// Inputs of coupled-clutches jump and ramp inside of the steps. The C kernel gives the bits of the table
// kernel; testdata/change.c steps it.
func TestChangesInsideAStepGiveTheBitsOfTheTableKernelInC(t *testing.T) {
	t.Parallel()
	needGcc(t)
	s, err := onGrid("coupled-clutches", true, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	m := len(s.tables.Inputs)
	opt := kernel.Options{
		Period: 5 * time.Millisecond, Driven: slices.Repeat([]bool{true}, m), Places: 3, Ramped: slices.Repeat([]bool{true}, m),
	}
	if s.tables, err = kernel.Prepare(s.system, opt); err != nil {
		t.Fatal(err)
	}
	s.name = "changing"
	c, _, err := codegen.GenerateC(s.job())
	if err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]files{"changing": c})
	text, err := os.ReadFile("testdata/change.c")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "change.c"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	compile(t, dir, "gcc", "-std=c99 -O2 "+sanitizers+" -o change change.c changing.c -lm")

	k, r := kernel.New(s.tables), rand.New(rand.NewPCG(1, 1))
	u, y := slices.Clone(s.tables.Start), make([]float64, len(s.tables.Outputs))
	var script bytes.Buffer
	var want []float64
	put := func(list ...float64) { _ = binary.Write(&script, binary.NativeEndian, list) }
	for range 1000 {
		n := r.IntN(6)
		put(float64(n))
		for range n {
			i, at, value, slope := r.IntN(m), r.Float64()*0.0055, r.Float64()*20, float64(r.IntN(2))*(r.Float64()-0.5)*1000
			put(float64(i), at, value, slope)
			k.Change(i, at, value, slope)
		}
		u[r.IntN(m)] = r.Float64() * 20
		put(u...)
		k.Step(y, u)
		want = append(want, y...)
	}

	cmd := exec.Command(filepath.Join(dir, "change"))
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = &script, &stderr
	out, err := cmd.Output()
	if err != nil || len(out) != 8*len(want) {
		t.Fatalf("%v, %d bytes, want %d\n%.3000s", err, len(out), 8*len(want), stderr.Bytes())
	}
	got := make([]float64, len(want))
	if err := binary.Read(bytes.NewReader(out), binary.NativeEndian, got); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s after step %d is %g in C, want %g", s.tables.Outputs[i%len(y)].Name, 1+i/len(y), got[i], want[i])
		}
	}
	if events := y[len(y)-3]; !(events >= 100) {
		t.Errorf("%g events in 1000 steps", events)
	}
	if without, _, err := codegen.GenerateC(embeddedPlain(t)); err != nil || strings.Contains(string(without["plain.h"]), "_change") {
		t.Errorf("a kernel without changes: %v, or it declares one", err)
	}
}

// embeddedPlain returns the job of a kernel that takes its inputs at the start of a step.
func embeddedPlain(t *testing.T) codegen.Job {
	t.Helper()
	s, err := onGrid("coupled-clutches", false, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	s.name = "plain"
	return s.job()
}
