package codegen_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/codegen"
	"lockstep/model/kernel"
	"lockstep/rt/virtual"
)

const grid = 5 * time.Millisecond

// sanitized has gcc watch over memory and undefined behaviour.
var sanitized = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"}

// importer is the program of testdata/fmu for a version.
func importer(t *testing.T, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "importer")
	args := []string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-DVERSION=" + strconv.Itoa(version), "-o", path, "testdata/fmu/importer.c", "-ldl", "-lm"}
	if out, err := exec.Command("gcc", append(args, sanitized...)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc (Debian: apt install gcc libc6-dev): %v\n%s", err, out)
	}
	return path
}

// fmu is an FMU from the C that was made before.
func fmu(t *testing.T, j codegen.Job, version int) codegen.Files {
	t.Helper()
	files, err := codegen.WrapFMU(&j, codegen.COf(t, j), version)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// object writes the shared object of an FMU to a folder, built with all warnings and
// more options.
func object(t *testing.T, j codegen.Job, version int, more ...string) string {
	t.Helper()
	files := fmu(t, j, version)
	if err := codegen.BuildFMUWith(files, "", append([]string{"-Wall", "-Wextra", "-Werror", "-pedantic"}, more...)...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), j.Package+".so")
	for name, content := range files {
		if strings.HasSuffix(name, ".so") {
			if err := os.WriteFile(path, content, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return path
}

// inform runs an importer on an object.
func inform(t *testing.T, program, object string, j codegen.Job, in []byte, more ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, append([]string{object, codegen.Token(&j), codegen.Period(&j), strconv.Itoa(len(j.Tables.Inputs)), strconv.Itoa(len(j.Tables.Outputs))}, more...)...)
	cmd.Stdin = bytes.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		tail := out.String()
		t.Fatalf("%s: %v\n%s\n%s", j.Package, err, tail[max(0, len(tail)-500):], said.String())
	}
	return out.Bytes()
}

func TestFMULivesAndRefusesAsTheStandardSays(t *testing.T) {
	j, other := codegen.OnGrid(t, "oscillator", grid), codegen.OnGrid(t, "oscillator", grid/5)
	clutches := codegen.OnGrid(t, "coupled-clutches", grid)
	for version := 2; version <= 3; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			program, one := importer(t, version), object(t, j, version, sanitized...)
			inform(t, program, one, j, nil, "life")
			inform(t, program, object(t, clutches, version), clutches, nil, "life")
			inform(t, program, one, j, nil, object(t, other, version, sanitized...), codegen.Token(&other))
		})
	}
}

// commands are rows of inputs for a plant, as its clutches see them: ramps, jumps and
// chatter. Some inputs are never set, some later than the first step: those are NaN.
func commands(j *codegen.Job, rows int) [][]float64 {
	r := rand.New(rand.NewPCG(7, uint64(len(j.Tables.Outputs))))
	list := make([][]float64, rows)
	for k := range list {
		list[k] = make([]float64, len(j.Tables.Inputs))
	}
	for i, p := range j.Tables.Inputs {
		begin := []int{0, rows / 3, rows}[r.IntN(3)]
		lo, hi := max(p.Min, min(0, j.Tables.Start[i])), min(p.Max, max(1, 2*j.Tables.Start[i]))
		if j.Tables.Start[i] == 0 && p.Unit == "Pa" {
			hi = min(hi, 1e6)
		}
		v, slope := 0.0, 0.0
		for k := range list {
			switch {
			case k < begin:
				list[k][i] = math.NaN()
				continue
			case r.IntN(40) == 0:
				v, slope = lo+r.Float64()*(hi-lo), 0
			case r.IntN(40) == 0:
				slope = (r.Float64() - 0.5) * (hi - lo) / 20
			}
			v = min(max(v+slope, lo), hi)
			list[k][i] = v
		}
	}
	return list
}

// stepped are the outputs that the table kernel gives, at the start and after each row.
func stepped(j *codegen.Job, rows [][]float64) (list [][]float64) {
	k := kernel.New(j.Tables)
	m, p := k.Dims()
	u := make([]float64, m)
	copy(u, j.Tables.Start)
	y := make([]float64, p)
	k.Output(y)
	list = append(list, append([]float64(nil), y...))
	for _, row := range rows {
		for i, v := range row {
			if math.IsNaN(v) {
				continue
			}
			if !k.Driven(i) {
				k.Drive(i, true)
			}
			u[i] = v
		}
		k.Step(y, u)
		list = append(list, append([]float64(nil), y...))
	}
	return list
}

// run steps an FMU over rows of inputs: its outputs at the start and after each row, then
// once more those behind the middle.
func run(t *testing.T, program, object string, j codegen.Job, rows [][]float64) [][]float64 {
	t.Helper()
	var in []byte
	for _, row := range rows {
		for _, v := range row {
			in = binary.NativeEndian.AppendUint64(in, math.Float64bits(v))
		}
	}
	out := inform(t, program, object, j, in, "run")
	p := len(j.Tables.Outputs)
	if want := 8 * p * (1 + len(rows) + len(rows) - len(rows)/2); len(out) != want {
		t.Fatalf("%s: %d bytes of outputs, want %d", j.Package, len(out), want)
	}
	list := make([][]float64, len(out)/(8*p))
	for k := range list {
		for i := range p {
			list[k] = append(list[k], math.Float64frombits(binary.NativeEndian.Uint64(out[8*(k*p+i):])))
		}
	}
	return list
}

// differ reports what differs, bit for bit, and how many values changed from row to row.
func differ(t *testing.T, j codegen.Job, got, want [][]float64) (moved int) {
	t.Helper()
	wrong := 0
	for k, row := range want {
		for i, v := range row {
			if math.Float64bits(got[k][i]) != math.Float64bits(v) {
				if wrong++; wrong < 5 {
					t.Errorf("%s, row %d: %s is %v, want %v", j.Package, k, j.Tables.Outputs[i].Name, got[k][i], v)
				}
			}
			if k > 0 && v != want[k-1][i] {
				moved++
			}
		}
	}
	return moved
}

// fmuPlants are of different kinds: clutches that hold each other, impacts, regions with
// hysteresis.
var fmuPlants = []string{"coupled-clutches", "two-masses", "oscillator"}

func TestFMUGivesTheBitsOfTheTableKernel(t *testing.T) {
	const rows = 2000
	for n, name := range fmuPlants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := 2 + n%2
			j := codegen.OnGrid(t, name, grid)
			in := commands(&j, rows)
			want := stepped(&j, in)
			got := run(t, importer(t, version), object(t, j, version), j, in)
			moved := differ(t, j, got[:1+rows], want)
			differ(t, j, got[1+rows:], want[1+rows/2:]) // again, from the state in the middle
			if last := want[rows]; moved < rows || last[len(last)-1] != 0 {
				t.Errorf("%d outputs moved, fault %g: the inputs do not try the plant", moved, last[len(last)-1])
			}
		})
	}
}

// A simulation reads inputs from a file; those that it has none for follow the plant's own
// sources in both.
func TestFMUGivesWhatASimulationGives(t *testing.T) {
	const rows = 1500
	j := codegen.OnGrid(t, "coupled-clutches", grid)
	in := commands(&j, rows)
	out := filepath.Join(t.TempDir(), "out.csv")
	var text strings.Builder
	text.WriteString("time[s]")
	for i, p := range j.Tables.Inputs {
		if !math.IsNaN(in[0][i]) {
			fmt.Fprintf(&text, ",%s[%s]", p.Name, p.Unit)
		}
	}
	for k := range rows + 1 {
		fmt.Fprintf(&text, "\n%v", float64(k)*0.005)
		for i, first := range in[0] {
			if !math.IsNaN(first) {
				fmt.Fprintf(&text, ",%v", in[min(k, rows-1)][i])
			} else if k < rows {
				in[k][i] = math.NaN() // those that come later: a file has them from the start or not
			}
		}
	}
	inputs := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(inputs, []byte(text.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (virtual.Simulation{Plant: "coupled-clutches", In: inputs, Out: out, Every: 1}).Run(); err != nil {
		t.Fatal(err)
	}
	got := run(t, importer(t, 3), object(t, j, 3), j, in)
	want := table(t, out, len(j.Tables.Outputs))
	if len(want) != rows+1 {
		t.Fatalf("%d rows, want %d", len(want), rows+1)
	}
	if moved := differ(t, j, got[:1+rows], want); moved < rows {
		t.Errorf("%d outputs moved: the inputs do not try the plant", moved)
	}
}

// table reads the outputs from a simulation's file: the columns after the time.
func table(t *testing.T, file string, columns int) (list [][]float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records[1:] {
		row := make([]float64, columns)
		for i := range row {
			if row[i], err = strconv.ParseFloat(record[1+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, row)
	}
	return list
}

func TestFMUHasTheSameBytesEachTime(t *testing.T) {
	j := codegen.OnGrid(t, "oscillator", grid)
	again, err := codegen.FMU(j, 3)
	if err != nil {
		t.Fatal(err)
	}
	var packed [2][]byte
	for i, files := range []codegen.Files{fmu(t, j, 3), again} {
		if err := codegen.BuildFMU(files, "gcc"); err != nil {
			t.Fatal(err)
		}
		if packed[i], err = codegen.PackFMU(files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Errorf("%d and %d bytes that differ", len(packed[0]), len(packed[1]))
	}
	z, err := zip.NewReader(bytes.NewReader(packed[0]), int64(len(packed[0])))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if text, err := fs.ReadFile(z, f.Name); err != nil || !bytes.Equal(text, again[f.Name]) {
			t.Errorf("%s: %v, or not what was packed", f.Name, err)
		}
	}
	if len(z.File) != len(again) || again["binaries/x86_64-linux/oscillator.so"] == nil && runtime.GOARCH == "amd64" {
		t.Errorf("%d files in the zip, want the %d with their binary", len(z.File), len(again))
	}
}

// Several plants in one program are told apart by their names, the standard's way for
// sources.
func TestSourcesOfAnFMUExportOnlyNamesOfThePlant(t *testing.T) {
	j := codegen.OnGrid(t, "oscillator", grid)
	for version, calls := range map[int]int{2: 34, 3: 75} { // those of co-simulation; all of FMI 3
		dir := t.TempDir()
		for path, text := range fmu(t, j, version) {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		source := fmt.Sprintf("fmi%d-slave", version)
		cmd := exec.Command("sh", "-c", "gcc -std=c99 -c "+source+".c && nm -g --defined-only --format=posix "+source+".o")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(string(out)) {
			if found++; !strings.HasPrefix(line, fmt.Sprintf("oscillator_fmi%d", version)) {
				t.Errorf("FMI %d: %s", version, line)
			}
		}
		if found != calls {
			t.Errorf("FMI %d: %d functions, want %d", version, found, calls)
		}
	}
}

func TestFMUWithoutACompilerIsRefusedInOneLine(t *testing.T) {
	j := codegen.OnGrid(t, "oscillator", grid)
	files := fmu(t, j, 3)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no space left\necho more\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for gcc, want := range map[string]string{
		"gcc-of-nobody": "codegen: gcc-of-nobody is not to be had (Debian: apt install gcc libc6-dev): the FMU has its sources only",
		broken:          "codegen: " + broken + ": exit status 3: no space left",
	} {
		if err := codegen.BuildFMU(files, gcc); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
