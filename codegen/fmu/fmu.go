package fmu

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/model/kernel"
)

// Plant is the plant of an FMU, and the texts that the files of the FMU quote.
type Plant struct {
	Tables  *kernel.Tables
	Hash    string // hash of the plant on its grid, 64 hex digits
	Marker  string // first line of each file, as a comment of Go
	Package string // prefix of the kernel's C, name of the FMU

	// Length is the length of a simulation by the plant's own tables, the stop time that the FMU proposes;
	// 0: not known.
	Length time.Duration
}

// Wrap returns the files of an FMU by path, without a binary. plant has the C of the kernel by
// name; version is 2 for FMI 2.0.4 or 3 for FMI 3.0.2.
func (p *Plant) Wrap(plant map[string][]byte, version int) (map[string][]byte, error) {
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("codegen: unknown FMI version %d; use 2 or 3", version)
	}
	marker, _, _ := bytes.Cut(plant[p.Package+".h"], []byte("\n")) // marker line as a comment of C
	marker = append(marker, '\n')
	files := map[string][]byte{"sources/fmi-plant.h": slices.Concat(marker, p.slavePlant())}
	for name, text := range plant {
		files["sources/"+name] = text
	}
	for _, name := range []string{"fmi-slave.h", slaveFile(version)} {
		text, err := Text.ReadFile("csource/" + name)
		if err != nil {
			return nil, fmt.Errorf("codegen: %w", err)
		}
		files["sources/"+name] = slices.Concat(marker, text)
	}

	sources := sourcesOf(files)
	text, err := p.describe(fmt.Sprintf("model%d", version), sources)
	if err != nil {
		return nil, err
	}
	files["modelDescription.xml"] = text
	if version == 3 {
		files["sources/buildDescription.xml"], err = p.describe("build", sources)
	}

	return files, err
}

// slaveFile returns the name of the interface's source. A package name has no hyphen, so the
// kernel's source has another name.
func slaveFile(version int) string { return fmt.Sprintf("fmi%d-slave.c", version) }

// sourcesOf returns the names of the C files, sorted.
func sourcesOf(files map[string][]byte) (names []string) {
	for path := range files {
		if name, ok := strings.CutPrefix(path, "sources/"); ok && strings.HasSuffix(name, ".c") {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}

// token returns the GUID (FMI 2) or instantiation token (FMI 3) of an FMU: the first half of the
// plant's hash in the form of a GUID.
func (p *Plant) token() string {
	h := p.Hash
	return fmt.Sprintf("{%s-%s-%s-%s-%s}", h[:8], h[8:12], h[12:16], h[16:20], h[20:32])
}

// slavePlant returns fmi-plant.h, which gives the interface the names and numbers of the plant.
func (p *Plant) slavePlant() []byte {
	var b strings.Builder
	name, upper := p.Package, strings.ToUpper(p.Package)
	fmt.Fprintf(&b, "#include %q\n\n#define PREFIX %s_\n#define TOKEN %q\n#define HASH %s_HASH\n#define PERIOD_NS INT64_C(%d)\n#define INPUTS %s_INPUTS\n#define OUTPUTS %s_OUTPUTS\n\n",
		name+".h", name, p.token(), upper, p.Tables.PeriodNs, upper, upper)
	fmt.Fprintf(&b, "#define plant_kernel %s_kernel\n", name)
	for _, f := range []string{"create", "step", "output", "drive", "driven", "own", "input_names", "input_start", "state_names"} {
		fmt.Fprintf(&b, "#define plant_%s %s_%s\n", f, name, f)
	}
	b.WriteString("\n/* INTEGERS holds 1 for each output whose values are whole numbers. */\n#define INTEGERS {")
	for i := range p.Tables.Outputs {
		if p.Tables.OutputForm(i).Integer {
			b.WriteString("1,")
		} else {
			b.WriteString("0,")
		}
	}
	b.WriteString("}\n")
	return []byte(b.String())
}
