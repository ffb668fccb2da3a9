package fmu

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"lockstep/model/kernel"
)

// Plant is what an FMU is made of, beside the C of its kernel, and what its files say of it.
type Plant struct {
	Tables  *kernel.Tables
	Hash    string // of the plant on its grid
	Marker  string // first line of each file
	Package string // prefix of the kernel's C
}

// Wrap puts the C of a plant into an FMU: fmi2-slave.c or fmi3-slave.c is the interface of
// the standard (FMI 2.0.4, FMI 3.0.2), fmi-slave.h what they share.
func (j *Plant) Wrap(plant map[string][]byte, version int) (map[string][]byte, error) {
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("codegen: FMI %d is not known; there are 2 and 3", version)
	}
	marker, _, _ := bytes.Cut(plant[j.Package+".h"], []byte("\n")) // as C has it
	marker = append(marker, '\n')
	files := map[string][]byte{"sources/fmi-plant.h": slices.Concat(marker, j.slavePlant())}
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
	text, err := j.describe(fmt.Sprintf("model%d", version), sources)
	if err != nil {
		return nil, err
	}
	files["modelDescription.xml"] = text
	if version == 3 {
		files["sources/buildDescription.xml"], err = j.describe("build", sources)
	}

	return files, err
}

// slaveFile is the name of the interface's source; no package can have its name.
func slaveFile(version int) string { return fmt.Sprintf("fmi%d-slave.c", version) }

// sourcesOf are the names of what a compiler takes, sorted.
func sourcesOf(files map[string][]byte) (names []string) {
	for path := range files {
		if name, ok := strings.CutPrefix(path, "sources/"); ok && strings.HasSuffix(name, ".c") {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}

// token is by what an FMU and its description know each other: the first half of the
// plant's hash, in the form of a GUID.
func (j *Plant) token() string {
	h := j.Hash
	return fmt.Sprintf("{%s-%s-%s-%s-%s}", h[:8], h[8:12], h[12:16], h[16:20], h[20:32])
}

// slavePlant is the header that tells the interface which plant it has.
func (j *Plant) slavePlant() []byte {
	var b strings.Builder
	name, upper := j.Package, strings.ToUpper(j.Package)
	fmt.Fprintf(&b, "#include %q\n\n#define PREFIX %s_\n#define TOKEN %q\n#define HASH %s_HASH\n#define PERIOD_NS INT64_C(%d)\n#define INPUTS %s_INPUTS\n#define OUTPUTS %s_OUTPUTS\n\n",
		name+".h", name, j.token(), upper, j.Tables.PeriodNs, upper, upper)
	fmt.Fprintf(&b, "#define plant_kernel %s_kernel\n", name)
	for _, f := range []string{"create", "step", "output", "drive", "driven", "own", "input_names", "input_start", "state_names"} {
		fmt.Fprintf(&b, "#define plant_%s %s_%s\n", f, name, f)
	}
	return []byte(b.String())
}
