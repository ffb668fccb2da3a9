package codegen

import (
	"fmt"
	"path"
	"slices"

	"lockstep/codegen/c99"
	"lockstep/codegen/fmu"
	"lockstep/codegen/specialise"
	"lockstep/model/units"
)

// Go writes the Go package of a plant's kernel.
func Go(j Job) (Files, Report, error) {
	if err := j.check(); err != nil {
		return nil, Report{}, err
	}
	return specialise.Generate(specialise.Plant{Tables: j.Tables, Signals: j.signals(), Hash: j.Hash, Marker: j.marker(), Package: j.Package})
}

// C writes a plant's kernel as one C99 file and its header, named after the package. It is
// the Go of the same job, statement by statement: without contraction of products and sums
// both give the same bits.
func C(j Job) (Files, Report, error) {
	files, report, err := Go(j)
	if err != nil {
		return nil, Report{}, err
	}
	return j.InC(files, report)
}

// InC is the C of a job whose Go is there.
func (j Job) InC(files Files, report Report) (Files, Report, error) {
	if slices.Contains(headers, j.Package) {
		return nil, Report{}, fmt.Errorf("codegen: %q is the name of a header that the kernel includes; name the package otherwise", j.Package)
	}
	texts := map[string][]byte{}
	for name, text := range files {
		if path.Ext(name) == ".go" && path.Base(name) == name {
			texts[name] = text
		}
	}
	body, err := c99.Translate(texts, j.Package)
	if err != nil {
		return nil, Report{}, err
	}
	report.State, report.Tables = body.State, body.Tables
	files = body.Files(c99.About{
		Name: j.Tables.Name, Marker: j.marker(), Hash: j.Hash, Period: float64(j.Tables.PeriodNs) * 1e-9,
		Inputs: cPorts(j.Tables.Inputs), Outputs: cPorts(j.Tables.Outputs), Start: j.Tables.Start, States: j.Tables.StateName,
		Fault: slices.IndexFunc(j.Tables.Outputs, func(p units.Port) bool { return p.Name == "fault" }),
	})
	report.Code = len(files[j.Package+".c"]) - body.Tables
	return files, report, nil
}

// FMU writes a plant as a functional mock-up unit for co-simulation, of FMI 2.0 or 3.0:
// the tree of its files with the sources. fmu.Build adds a binary, fmu.Pack makes the file.
//
// Time is value reference 0, then come the inputs, then the outputs, each in the order of
// the tables. A step is a whole multiple of the period. Inputs hold from the step's start;
// one that is never set follows the plant's own source.
func FMU(j Job, version int) (Files, error) {
	if err := fmu.CheckVersion(version); err != nil {
		return nil, err
	}
	plant, _, err := C(j)
	if err != nil {
		return nil, err
	}
	p := fmu.Plant{Tables: j.Tables, Hash: j.Hash, Marker: j.marker(), Package: j.Package}
	return p.Wrap(plant, version)
}

// headers are those of C that a kernel includes, or what an FMU has around it: a header beside
// it of that name would be taken for one of them.
var headers = []string{"float", "math", "stdarg", "stdbool", "stdint", "stdio", "stdlib", "string"}

func cPorts(list []units.Port) (ports []c99.Port) {
	for _, p := range list {
		ports = append(ports, c99.Port{Name: p.Name, Unit: p.Unit})
	}
	return ports
}
