package fmu

import (
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/model/units"
)

// markup is XML as it is written, one element a line.
type markup struct {
	strings.Builder
	open []string
}

// newMarkup begins a file with the marker line.
func newMarkup(j *Plant) *markup {
	m := new(markup)
	marker := strings.TrimPrefix(j.Marker, "// ")
	for strings.Contains(marker, "--") { // of three there are two left
		marker = strings.ReplaceAll(marker, "--", "- -")
	}
	m.WriteString(xml.Header + "<!-- " + marker + " -->\n")
	return m
}

// attribute is one of an element.
type attribute struct{ name, value string }

// tag writes an element that is complete.
func (m *markup) tag(name string, list ...attribute) { m.line(name, "/>", list) }

// begin writes the head of an element; end its tail, and that of none other.
func (m *markup) begin(name string, list ...attribute) {
	m.line(name, ">", list)
	m.open = append(m.open, name)
}

func (m *markup) end() {
	name := m.open[len(m.open)-1]
	m.open = m.open[:len(m.open)-1]
	m.WriteString(strings.Repeat("  ", len(m.open)) + "</" + name + ">\n")
}

func (m *markup) line(name, close string, list []attribute) {
	m.WriteString(strings.Repeat("  ", len(m.open)) + "<" + name)
	for _, a := range list {
		m.WriteString(" " + a.name + `="`)
		xml.EscapeText(m, []byte(a.value)) // a Builder never fails
		m.WriteByte('"')
	}
	m.WriteString(close + "\n")
}

// variable is what a description says of time, an input or an output.
type variable struct {
	units.Port
	causality string // "independent", "input" or "output"
	start     string // of an input
	about     string
}

// variables are those of the plant, by value reference. No two have one name: an output
// or the time gives way.
func (j *Plant) variables() []variable {
	taken := map[string]bool{}
	free := func(name string) string {
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		return name
	}
	list := []variable{{}}
	for i, p := range j.Tables.Inputs {
		about := "follows the plant's own source until it is set"
		if d := j.Tables.Delay[i]; d > 0 {
			about += "; acts " + decimal(d) + " s later"
		}
		p.Name = free(p.Name)
		list = append(list, variable{p, "input", decimal(j.Tables.Start[i]), about})
	}
	for _, p := range j.Tables.Outputs {
		p.Name = free(p.Name)
		list = append(list, variable{Port: p, causality: "output"})
	}
	list[0] = variable{Port: units.Port{Name: free("time"), Unit: "s", Min: math.Inf(-1), Max: math.Inf(1)}, causality: "independent"}
	return list
}

// attributes are those that say who a variable is, and those of its value.
func (v *variable) attributes(reference int) (who, value []attribute) {
	who = []attribute{{"name", v.Name}, {"valueReference", strconv.Itoa(reference)}, {"causality", v.causality}, {"variability", "continuous"}}
	if v.causality == "output" {
		who = append(who, attribute{"initial", "calculated"})
	}
	if v.about != "" {
		who = append(who, attribute{"description", v.about})
	}
	value = []attribute{{"unit", v.Unit}}
	if !math.IsInf(v.Min, 0) {
		value = append(value, attribute{"min", decimal(v.Min)})
	}
	if !math.IsInf(v.Max, 0) {
		value = append(value, attribute{"max", decimal(v.Max)})
	}
	if v.start != "" {
		value = append(value, attribute{"start", v.start})
	}
	return who, value
}

// units writes the definitions of all units. FMI counts radians, which are numbers
// otherwise: their power is what the power of amperes grows by with these in their place.
func (m *markup) units(list []variable) error {
	names := map[string]bool{}
	for _, v := range list {
		names[v.Unit] = true
	}
	m.begin("UnitDefinitions")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		u, err := units.Parse(name)
		if err != nil {
			return err
		}
		other, err := units.Parse(strings.ReplaceAll(u.SI, "rad", "A"))
		if err != nil {
			return err
		}
		var powers []attribute
		for i, base := range []string{"m", "kg", "s", "A", "K"} {
			if p := u.Dim[i]; p != 0 {
				powers = append(powers, attribute{base, strconv.Itoa(int(p))})
			}
		}
		factor := u.Factor
		turns := int(u.Dim[5]) // a cycle is 2π rad
		if p := int(other.Dim[3]-u.Dim[3]) + turns; p != 0 {
			powers = append(powers, attribute{"rad", strconv.Itoa(p)})
		}
		if factor *= math.Pow(2*math.Pi, float64(turns)); factor != 1 {
			powers = append(powers, attribute{"factor", decimal(factor)})
		}
		m.begin("Unit", attribute{"name", name})
		m.tag("BaseUnit", powers...)
		m.end()
	}
	m.end()
	return nil
}

// head writes what both versions have between the interface and the variables.
func (m *markup) head(j *Plant, list []variable) error {
	if err := m.units(list); err != nil {
		return fmt.Errorf("codegen: plant %q: %w", j.Tables.Name, err)
	}
	m.begin("LogCategories")
	m.tag("Category", attribute{"name", "logStatusError"}, attribute{"description", "why a call failed"})
	m.end()
	m.tag("DefaultExperiment", attribute{"startTime", "0"}, attribute{"stepSize", j.period()})
	return nil
}

// period is that of the grid in seconds.
func (j *Plant) period() string { return decimal(float64(j.Tables.PeriodNs) / 1e9) }

// describe2 is modelDescription.xml of FMI 2.0. Outputs at a grid point follow from the
// steps before it: no input acts on them there.
func (j *Plant) describe2(sources []string) ([]byte, error) {
	m, list := newMarkup(j), j.variables()
	m.begin("fmiModelDescription", attribute{"fmiVersion", "2.0"}, attribute{"modelName", j.Tables.Name}, attribute{"guid", j.token()},
		attribute{"generationTool", "lockstep"}, attribute{"variableNamingConvention", "flat"}, attribute{"numberOfEventIndicators", "0"})
	m.begin("CoSimulation", attribute{"modelIdentifier", j.Package}, attribute{"canHandleVariableCommunicationStepSize", "false"},
		attribute{"canNotUseMemoryManagementFunctions", "true"}, attribute{"canGetAndSetFMUstate", "true"}, attribute{"canSerializeFMUstate", "true"})
	m.begin("SourceFiles")
	for _, s := range sources {
		m.tag("File", attribute{"name", s})
	}
	m.end()
	m.end()
	if err := m.head(j, list); err != nil {
		return nil, err
	}
	m.begin("ModelVariables")
	for i := range list {
		who, value := list[i].attributes(i)
		m.begin("ScalarVariable", who...)
		m.tag("Real", value...)
		m.end()
	}
	m.end()
	m.begin("ModelStructure")
	for _, part := range []string{"Outputs", "InitialUnknowns"} {
		m.begin(part)
		for i := 1 + len(j.Tables.Inputs); i < len(list); i++ {
			m.tag("Unknown", attribute{"index", strconv.Itoa(i + 1)}, attribute{"dependencies", ""})
		}
		m.end()
	}
	m.end()
	m.end()
	return []byte(m.String()), nil
}

// describe3 is modelDescription.xml of FMI 3.0.
func (j *Plant) describe3() ([]byte, error) {
	m, list := newMarkup(j), j.variables()
	m.begin("fmiModelDescription", attribute{"fmiVersion", "3.0"}, attribute{"modelName", j.Tables.Name}, attribute{"instantiationToken", j.token()},
		attribute{"generationTool", "lockstep"}, attribute{"variableNamingConvention", "flat"})
	m.tag("CoSimulation", attribute{"modelIdentifier", j.Package}, attribute{"canGetAndSetFMUState", "true"}, attribute{"canSerializeFMUState", "true"},
		attribute{"canHandleVariableCommunicationStepSize", "false"}, attribute{"fixedInternalStepSize", j.period()})
	if err := m.head(j, list); err != nil {
		return nil, err
	}
	m.begin("ModelVariables")
	for i := range list {
		who, value := list[i].attributes(i)
		m.tag("Float64", append(who, value...)...)
	}
	m.end()
	m.begin("ModelStructure")
	for _, part := range []string{"Output", "InitialUnknown"} {
		for i := 1 + len(j.Tables.Inputs); i < len(list); i++ {
			m.tag(part, attribute{"valueReference", strconv.Itoa(i)}, attribute{"dependencies", ""})
		}
	}
	m.end()
	m.end()
	return []byte(m.String()), nil
}

// describeBuild is sources/buildDescription.xml of FMI 3.0.
func (j *Plant) describeBuild(sources []string) []byte {
	m := newMarkup(j)
	m.begin("fmiBuildDescription", attribute{"fmiVersion", "3.0"})
	m.begin("BuildConfiguration", attribute{"modelIdentifier", j.Package})
	m.begin("SourceFileSet", attribute{"language", "C99"}, attribute{"compiler", "gcc"}, attribute{"compilerOptions", strings.Join(slaveOptions, " ")})
	for _, s := range sources {
		m.tag("SourceFile", attribute{"name", s})
	}
	m.end()
	m.tag("Library", attribute{"name", "m"}, attribute{"external", "true"})
	m.end()
	m.end()
	return []byte(m.String())
}

// decimal is a value as XML reads it, with the same bits.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
