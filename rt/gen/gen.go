// Package gen owns the output of `lockstep gen`, which `lockstep run -kernel` starts: the kernel of
// a plant as a folder of files, and the target executable of a bench.
//
// It does not generate the text of kernels (package codegen) and does not run the loop (package
// target).
//
// Reading order: gen.go (Request), folder.go (files are replaced as a whole), target.go (the
// sources of a target, and the mark that identifies the sources of an executable), build.go (the Go
// toolchain), choose.go (the executable for a run, and the cache of executables).
package gen

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/codegen"
	"lockstep/codegen/fmu"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/progress"
)

// Request describes what to generate.
type Request struct {
	Plant   string        // file or embedded name; "": the plant of the bench
	Bench   string        // bench of a target executable; "": generate the kernel only
	Dir     string        // output folder
	Step    time.Duration // period of a plant; 0: 5 ms
	Scheme  string        // kernel.Scheme; "": the default
	Form    string        // kernel.Form; "": the default
	Drive   []string      // inputs commanded by the caller from the start; "all"
	Lang    string        // "go" or "c"
	FMU     int           // version of the FMI, 2 or 3; 0: no FMU
	Changes int           // instants of a step at which commands may change; 0: only its start
	Factor  bool          // factorise lock sets in the tick, even if their matrices fit in memory
	Package string        // name of the package; "": that of the plant or bench

	Progress *progress.Line // nil: none
}

// command returns the request as a command line, for the marker of each file. It omits the folder,
// so that the text is the same in every folder.
func (r *Request) command() string {
	words := []string{"lockstep", "gen"}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, quoted(value))
		}
	}

	if r.Plant != "" {
		words = append(words, quoted(r.Plant))
	}
	add("-bench", r.Bench)
	add("-lang", r.Lang)
	if r.FMU != 0 {
		add("-fmu", strconv.Itoa(r.FMU))
	}
	add("-package", r.Package)
	if r.Step != 0 {
		add("-step", r.Step.String())
	}
	add("-scheme", r.Scheme)
	add("-form", r.Form)
	add("-drive", strings.Join(r.Drive, ","))
	if r.Changes != 0 {
		words = append(words, "-changes", strconv.Itoa(r.Changes))
	}
	if r.Factor {
		words = append(words, "-factorise")
	}
	return strings.Join(words, " ")
}

// quoted returns a word of a command line. A word with characters that a shell or a comment could
// interpret is quoted and in ASCII.
func quoted(word string) string {
	special := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./,:=+@%", c))
	}
	if strings.ContainsFunc(word, special) {
		return strconv.QuoteToASCII(word)
	}
	return word
}

// plantStep is the default period of a plant.
const plantStep = 5 * time.Millisecond

// Run generates, writes the files, and reports to out.
func (r Request) Run(out io.Writer) error {
	begun := time.Now()
	defer r.Progress.End()
	if err := r.check(); err != nil {
		return err
	}
	f := folder{path: r.Dir}
	if err := f.scan(); err != nil { // before the work
		return fmt.Errorf("gen: %w", err)
	}
	files, report, err := r.files()
	if err != nil {
		return err
	}
	if r.Bench != "" {
		report.Lines = append(report.Lines, addVendored(files))
	}
	if err := f.write(files); err != nil {
		return err
	}
	r.Progress.End()
	total := 0
	for _, text := range files {
		total += len(text)
	}
	count := "1 file"
	if n := len(files); n > 1 {
		count = fmt.Sprintf("%d files", n)
	}
	fmt.Fprintf(out, "%s: %s, %s, in %.1f s\n", r.Dir, count, size(total), time.Since(begun).Seconds())
	for _, line := range lines(report) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
}

// lines returns the lines of a report.
func lines(r codegen.Report) []string {
	if r.Code == 0 {
		return r.Lines
	}
	head := fmt.Sprintf("code of the tick %s, tables %s, a kernel %s", size(r.Code), size(r.Tables), size(r.State))
	return append([]string{head}, r.Lines...)
}

// size returns a number of bytes as text, in bytes, kB or MB.
func size(n int) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}

	return fmt.Sprintf("%d MB", n/1_000_000)
}

// check refuses missing and contradicting fields.
func (r *Request) check() error {
	switch {
	case r.Dir == "":
		return errors.New("gen: -o DIR is missing: the output folder")
	case r.Plant == "" && r.Bench == "":
		return errors.New("gen: name a plant, or a bench with -bench BENCH.yaml")
	case r.FMU != 0 && r.FMU != 2 && r.FMU != 3:
		return fmt.Errorf("gen: -fmu %d: use 2 or 3", r.FMU)
	case r.FMU != 0 && r.Lang == "go":
		return errors.New("gen: -lang go: an FMU is written in C: omit -lang")
	case r.FMU != 0 && r.Changes != 0:
		return fmt.Errorf("gen: -changes %d: the inputs of an FMU for co-simulation change between its steps only: omit -changes", r.Changes)
	case r.Bench == "":
		return nil
	case r.Lang == "c" || r.FMU != 0:
		return fmt.Errorf("gen: -bench %s: a target executable is written in Go: omit -lang c and -fmu", r.Bench)
	}

	var extra []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"-step", r.Step != 0}, {"-scheme", r.Scheme != ""}, {"-form", r.Form != ""}, {"-drive", r.Drive != nil},
		{"-factorise", r.Factor}, {"-changes", r.Changes != 0},
	} {
		if flag.given {
			extra = append(extra, flag.name)
		}
	}

	if extra != nil {
		return fmt.Errorf("gen: -bench %s: the bench file sets these values: omit %s", r.Bench, strings.Join(extra, ", "))
	}
	return nil
}

// files generates the files and their report.
func (r *Request) files() (codegen.Files, codegen.Report, error) {
	if r.Bench != "" {
		b, h, err := r.bench()
		if err != nil {
			return nil, codegen.Report{}, err
		}
		files, report, err := targetFiles(h, r.packageName(b.Name), r.command(), r.countPasses())
		if names := h.Tunable(); names != nil {
			report.Lines = append(report.Lines, fmt.Sprintf("parameters that cannot change in a run with this target: %s", strings.Join(names, ", ")))
		}
		return files, report, err
	}

	job, err := r.job()
	if err != nil {
		return nil, codegen.Report{}, err
	}
	make := codegen.GenerateGo
	switch {
	case r.FMU != 0:
		make = func(j codegen.Job) (codegen.Files, codegen.Report, error) { return packFMU(j, r.FMU) }
	case r.Lang == "c":
		make = codegen.GenerateC
	}

	files, report, err := make(job)
	if n := job.Tables.Bytes(); n >= largeTables {
		report.Lines = append(report.Lines, fmt.Sprintf("%s of tables are the matrices of %d lock sets: "+
			"-factorise computes them in the tick instead, with less text, slower at events, "+
			"and rounded differently from sim", size(n), len(job.Tables.Modes)))
	}

	return files, report, err
}

// countPasses begins the progress of the generator; the function returned counts its passes over the tick.
func (r *Request) countPasses() func(passes, expected int) {
	r.Progress.Begin(progress.Work{What: "generating the tick", Unit: "passes"})
	return func(passes, expected int) { r.Progress.Count(int64(passes), int64(expected)) }
}

// largeTables is the size of precomputed lock sets, bytes, from which the report recommends
// -factorise. The generated text is about as long.
const largeTables = 4 << 20

// packFMU returns an FMU as one file, with a binary for this machine if a compiler is installed.
func packFMU(job codegen.Job, version int) (codegen.Files, codegen.Report, error) {
	files, err := codegen.GenerateFMU(job, version)
	if err != nil {
		return nil, codegen.Report{}, err
	}
	var report codegen.Report
	if err := fmu.Build(files, ""); err != nil {
		report.Lines = append(report.Lines, err.Error())
	}
	packed, err := fmu.Pack(files)
	return codegen.Files{job.Package + ".fmu": packed}, report, err
}

// bench prepares the bench. A plant in the request must be the plant of the bench.
func (r *Request) bench() (*bench.Bench, *bench.Handover, error) {
	b, err := bench.Load(r.Bench)
	if err != nil {
		return nil, nil, err
	}
	if r.Plant != "" {
		_, one, _, err := bench.ReadKind("gen", r.Plant, "plant")
		if err != nil {
			return nil, nil, err
		}
		if _, other, err := b.Read(b.Plant, "plant"); err != nil {
			return nil, nil, err
		} else if string(one) != string(other) {
			return nil, nil, fmt.Errorf("gen: the plant of bench %s is %s, not %[3]s: omit %[3]s",
				r.Bench, b.Plant.Text, r.Plant)
		}
	}

	b.Progress = r.Progress.BeginPreparation(r.Bench)
	h, err := bench.Prepare(b)
	return b, h, err
}

// job prepares the plant.
func (r *Request) job() (codegen.Job, error) {
	sys, err := bench.LoadPlant("gen", r.Plant, nil, nil)
	if err != nil {
		return codegen.Job{}, err
	}
	commanded, err := r.commanded(sys)
	if err != nil {
		return codegen.Job{}, err
	}
	period := r.Step
	if period == 0 {
		period = plantStep
	}
	opt := kernel.Options{Period: period, Driven: commanded, Scheme: kernel.Scheme(r.Scheme), Form: kernel.Form(r.Form)}
	if r.Factor {
		opt.Memory = 1
	}
	if r.Changes != 0 {
		opt.Places, opt.Ramped = r.Changes, slices.Repeat([]bool{true}, len(sys.Inputs))
	}
	opt.Progress = r.Progress.BeginPreparation(r.Plant)
	t, err := kernel.Prepare(sys, opt)
	if err != nil {
		return codegen.Job{}, fmt.Errorf("gen: %s: %w", r.Plant, err)
	}
	return codegen.Job{
		Tables: t, System: sys, Hash: codegen.HashOf(t), Command: r.command(), Package: r.packageName(t.Name),
		Length: bench.OwnLength(sys, commanded, period), Progress: r.countPasses(),
	}, nil
}

// commanded reports for each input whether the caller commands it from the start. Any other input
// follows its own waveform until Drive is called.
func (r *Request) commanded(sys *model.System) ([]bool, error) {
	list := make([]bool, len(sys.Inputs))
	var names []string
	for i := range sys.Inputs {
		names = append(names, sys.Inputs[i].Name)
	}
	for _, name := range r.Drive {
		i := slices.Index(names, name)
		switch {
		case name == "all":
			for i := range list {
				list[i] = true
			}
		case i < 0 && len(names) == 0:
			return nil, fmt.Errorf("gen: -drive %s: the plant has no inputs", name)
		case i < 0:
			return nil, fmt.Errorf("gen: -drive %s: the plant has no such input%s; it has %s",
				name, units.Meant(name, names), strings.Join(names, ", "))
		default:
			list[i] = true
		}
	}

	return list, nil
}

// packageName returns the requested package name, otherwise one derived from name.
func (r *Request) packageName(name string) string {
	if r.Package != "" {
		return r.Package
	}
	return codegen.PackageName(name)
}

// sorted returns the paths of files in order.
func sorted(files codegen.Files) []string { return slices.Sorted(maps.Keys(files)) }
