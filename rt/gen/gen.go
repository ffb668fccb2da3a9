// Package gen owns the output of `lockstep gen`, which `lockstep run -kernel` starts: the kernel of
// a plant as a folder of files, and the target executable of a bench.
//
// It does not generate the source of a kernel (package codegen) and does not tick (package target).
//
// Reading order: gen.go (Request), folder.go (files are replaced as a whole), target.go (the
// sources of a target, and the mark that identifies the sources of an executable), build.go (the Go
// toolchain), choose.go (the executable for a run, and the cache of those built).
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
)

// Request is what is to be generated.
type Request struct {
	Plant   string        // file or embedded name; "" the bench's
	Bench   string        // of a target executable; "" the kernel alone
	Dir     string        // output folder
	Step    time.Duration // period of the grid of a plant; 0: 5 ms
	Scheme  string        // kernel.Scheme; "" the default
	Form    string        // kernel.Form; "" the default
	Drive   []string      // inputs that follow the caller from the start; "all"
	Lang    string        // "go" or "c"
	FMU     int           // version of the FMI, 2 or 3; 0: no FMU
	Factor  bool          // lock sets are factorised in the tick, whatever room they would take
	Package string        // name of the package; "" the plant's or the bench's
}

// command is the request as a command line, for the marker of each file: without the
// folder, so that the same text is generated into any.
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
	if r.Factor {
		words = append(words, "-factorise")
	}
	return strings.Join(words, " ")
}

// quoted is a word of a command line: in quotes and in ASCII where a shell, or the comment
// that it stands in, could take it for something else.
func quoted(word string) string {
	special := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./,:=+@%", c))
	}
	if strings.ContainsFunc(word, special) {
		return strconv.QuoteToASCII(word)
	}
	return word
}

// plantStep is the period of a plant that nobody names one for.
const plantStep = 5 * time.Millisecond

// Run generates, writes the files, and reports to out.
func (r Request) Run(out io.Writer) error {
	begun := time.Now()
	if err := r.check(); err != nil {
		return err
	}
	f := folder{path: r.Dir}
	if err := f.look(); err != nil { // before the work
		return fmt.Errorf("gen: %w", err)
	}
	files, report, err := r.files()
	if err != nil {
		return err
	}
	var notes []string
	if r.Bench != "" {
		notes = append(notes, vendored(files))
	}
	if err := f.write(files); err != nil {
		return err
	}
	total := 0
	for _, text := range files {
		total += len(text)
	}
	count := "1 file"
	if n := len(files); n > 1 {
		count = fmt.Sprintf("%d files", n)
	}
	fmt.Fprintf(out, "%s: %s, %s, in %.1f s\n", r.Dir, count, size(total), time.Since(begun).Seconds())
	for _, line := range append(lines(report), notes...) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	return nil
}

// lines are those of a report.
func lines(r codegen.Report) []string {
	if r.Code == 0 {
		return r.Lines
	}
	head := fmt.Sprintf("code of the tick %s, tables %s, a kernel %s", size(r.Code), size(r.Tables), size(r.State))
	return append([]string{head}, r.Lines...)
}

// size is a number of bytes as people read it.
func size(n int) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}

	return fmt.Sprintf("%d MB", n/1_000_000)
}

// check refuses what makes no sense together.
func (r *Request) check() error {
	switch {
	case r.Dir == "":
		return errors.New("gen: where to? Name a folder with -o DIR")
	case r.Plant == "" && r.Bench == "":
		return errors.New("gen: name a plant, or a bench with -bench BENCH.yaml")
	case r.FMU != 0 && r.FMU != 2 && r.FMU != 3:
		return fmt.Errorf("gen: -fmu %d: there are 2 and 3", r.FMU)
	case r.FMU != 0 && r.Lang == "go":
		return errors.New("gen: -lang go: an FMU is written in C: leave out -lang")
	case r.Bench == "":
		return nil
	case r.Lang == "c" || r.FMU != 0:
		return fmt.Errorf("gen: -bench %s: a target executable is written in Go: leave out -lang c and -fmu", r.Bench)
	}

	var extra []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"-step", r.Step != 0}, {"-scheme", r.Scheme != ""}, {"-form", r.Form != ""}, {"-drive", r.Drive != nil},
		{"-factorise", r.Factor},
	} {
		if flag.given {
			extra = append(extra, flag.name)
		}
	}

	if extra != nil {
		return fmt.Errorf("gen: -bench %s: the bench says it: leave out %s", r.Bench, strings.Join(extra, ", "))
	}
	return nil
}

// files generates.
func (r *Request) files() (codegen.Files, codegen.Report, error) {
	if r.Bench != "" {
		b, h, err := r.bench()
		if err != nil {
			return nil, codegen.Report{}, err
		}
		return targetFiles(h, r.packageName(b.Name), r.command())
	}

	job, err := r.job()
	if err != nil {
		return nil, codegen.Report{}, err
	}
	make := codegen.Go
	switch {
	case r.FMU != 0:
		make = func(j codegen.Job) (codegen.Files, codegen.Report, error) { return packFMU(j, r.FMU) }
	case r.Lang == "c":
		make = codegen.C
	}

	files, report, err := make(job)
	if n := job.Tables.Bytes(); n >= muchTable {
		report.Lines = append(report.Lines, fmt.Sprintf("%s of tables are the matrices of %d lock sets: "+
			"-factorise has the tick solve them instead, in little text, slower at events, "+
			"and rounded otherwise than in sim", size(n), len(job.Tables.Modes)))
	}

	return files, report, err
}

// muchTable is the size of precomputed lock sets from which on the report names the other
// way, bytes: their text is about as long.
const muchTable = 4 << 20

// packFMU makes one file, with a binary for this machine where there is a compiler.
func packFMU(job codegen.Job, version int) (codegen.Files, codegen.Report, error) {
	files, err := codegen.FMU(job, version)
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

// bench prepares the bench, whose plant must be the one named, if one is.
func (r *Request) bench() (*bench.Bench, *bench.Handover, error) {
	b, err := bench.Load(r.Bench)
	if err != nil {
		return nil, nil, err
	}
	if r.Plant != "" {
		_, one, err := bench.ReadAny(r.Plant)
		if err != nil {
			return nil, nil, err
		}
		if _, other, err := b.Read(b.Plant); err != nil {
			return nil, nil, err
		} else if string(one) != string(other) {
			return nil, nil, fmt.Errorf("gen: bench %s is of plant %s, not of %[3]s: leave out %[3]s",
				r.Bench, b.Plant.Text, r.Plant)
		}
	}

	h, err := bench.Prepare(b)
	return b, h, err
}

// job prepares the plant.
func (r *Request) job() (codegen.Job, error) {
	sys, err := bench.LoadPlant("gen", r.Plant)
	if err != nil {
		return codegen.Job{}, err
	}
	driven, err := r.driven(sys)
	if err != nil {
		return codegen.Job{}, err
	}
	period := r.Step
	if period == 0 {
		period = plantStep
	}
	opt := kernel.Options{Period: period, Driven: driven, Scheme: kernel.Scheme(r.Scheme), Form: kernel.Form(r.Form)}
	if r.Factor {
		opt.Memory = 1
	}
	t, err := kernel.Prepare(sys, opt)
	if err != nil {
		return codegen.Job{}, fmt.Errorf("gen: %s: %w", r.Plant, err)
	}
	return codegen.Job{
		Tables: t, System: sys, Hash: codegen.HashOf(t), Command: r.command(), Package: r.packageName(t.Name),
	}, nil
}

// driven tells which inputs follow the caller from the start; the others follow their
// own sources until Drive.
func (r *Request) driven(sys *model.System) ([]bool, error) {
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

// packageName is the one asked for, or one made of a name.
func (r *Request) packageName(name string) string {
	if r.Package != "" {
		return r.Package
	}
	return codegen.PackageOf(name)
}

// sorted are the paths of files.
func sorted(files codegen.Files) []string { return slices.Sorted(maps.Keys(files)) }
