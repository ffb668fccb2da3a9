package fmu

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/model/units"

	"gonum.org/v1/gonum/floats/scalar"
)

// element is an XML element.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Inner   []element  `xml:",any"`
}

// attr returns the value of an attribute; a missing one fails the test.
func (e *element) attr(t *testing.T, name string) string {
	t.Helper()
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	t.Errorf("<%s> of %v has no %s", e.XMLName.Local, e.Attrs, name)
	return ""
}

// has reports whether the element has an attribute.
func (e *element) has(name string) bool {
	return slices.ContainsFunc(e.Attrs, func(a xml.Attr) bool { return a.Name.Local == name })
}

// part returns the first child of a name; a missing one fails the test.
func (e *element) part(t *testing.T, name string) element {
	t.Helper()
	for _, i := range e.Inner {
		if i.XMLName.Local == name {
			return i
		}
	}
	t.Fatalf("<%s> has no <%s>", e.XMLName.Local, name)
	return element{}
}

// described is a parsed modelDescription.xml.
type described struct {
	root      element
	variables []element // variables; in FMI 2 with the attributes and the name of their element, such as Real
}

// parse parses modelDescription.xml.
func parse(t *testing.T, version int, files map[string][]byte) described {
	t.Helper()
	var d described
	if err := xml.Unmarshal(files["modelDescription.xml"], &d.root); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.root.part(t, "ModelVariables").Inner {
		if version == 2 {
			v.XMLName, v.Attrs = v.Inner[0].XMLName, append(v.Attrs, v.Inner[0].Attrs...)
		}
		d.variables = append(d.variables, v)
	}
	return d
}

// forEachFMU runs a test for both versions of FMI and every embedded plant. The C files have their
// marker line only.
func forEachFMU(t *testing.T, test func(t *testing.T, j Plant, version int, files map[string][]byte)) {
	for _, e := range plants.List() {
		if e.Kind != "plant" {
			continue
		}
		j := OnGrid(t, e.Name, 5*time.Millisecond)
		j.Length = 12500 * time.Millisecond
		for version := 2; version <= 3; version++ {
			t.Run(e.Name+strconv.Itoa(version), func(t *testing.T) {
				marker := []byte("/* " + strings.TrimPrefix(j.Marker, "// ") + " */\n")
				files, err := j.Wrap(map[string][]byte{j.Package + ".c": marker, j.Package + ".h": marker}, version)
				if err != nil {
					t.Fatal(err)
				}
				test(t, j, version, files)
			})
		}
	}
}

// number returns an attribute as a number; a missing or infinite one fails the test.
func (e *element) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.attr(t, name), 64)
	if err != nil || !(math.Abs(v) <= math.MaxFloat64) {
		t.Errorf("%s of %v is not a finite number", name, e.Attrs)
	}
	return v
}

// A variable names the declared unit of its port as displayUnit, and its unit defines the conversion.
func TestModelDescriptionDefinesTheDeclaredUnits(t *testing.T) {
	checked := 0
	forEachFMU(t, func(t *testing.T, j Plant, version int, files map[string][]byte) {
		d := parse(t, version, files)
		for i, p := range slices.Concat(j.Tables.Inputs, j.Tables.Outputs) {
			v := d.variables[1+i]
			shown := slices.IndexFunc(v.Attrs, func(a xml.Attr) bool { return a.Name.Local == "displayUnit" })
			if p.Declared == "" && shown < 0 {
				continue
			}
			if shown < 0 || v.Attrs[shown].Value != p.Declared {
				t.Fatalf("%s, declared in %q: %v", p.Name, p.Declared, v.Attrs)
			}
			for _, u := range d.root.part(t, "UnitDefinitions").Inner {
				for _, s := range u.Inner {
					if u.attr(t, "name") == p.Unit && s.XMLName.Local == "DisplayUnit" && s.attr(t, "name") == p.Declared {
						checked++
						got, want := 5*s.number(t, "factor"), p.DeclaredUnit().FromSI(5)
						if slices.ContainsFunc(s.Attrs, func(a xml.Attr) bool { return a.Name.Local == "offset" }) {
							got += s.number(t, "offset")
						}
						if !scalar.EqualWithinRel(got, want, 1e-12) {
							t.Errorf("5 %s are %g %s, want %g", p.Unit, got, p.Declared, want)
						}
					}
				}
			}
		}
	})
	if checked < 100 {
		t.Errorf("%d declared units are defined; the embedded plants have more", checked)
	}
}

func TestModelDescriptionListsThePortsOfThePlant(t *testing.T) {
	forEachFMU(t, func(t *testing.T, j Plant, version int, files map[string][]byte) {
		d := parse(t, version, files)
		units := map[string]bool{}
		for _, u := range d.root.part(t, "UnitDefinitions").Inner {
			units[u.attr(t, "name")] = true
		}
		m, ports := len(j.Tables.Inputs), slices.Concat(j.Tables.Inputs, j.Tables.Outputs)
		if len(d.variables) != 1+len(ports) {
			t.Fatalf("%d variables, want time and %d ports", len(d.variables), len(ports))
		}
		names := map[string]bool{}
		for i, v := range d.variables {
			if got := v.attr(t, "valueReference"); got != strconv.Itoa(i) {
				t.Errorf("variable %d has the value reference %s", i, got)
			}
			if name := v.attr(t, "name"); name == "" || names[name] {
				t.Errorf("name %q is empty or repeated", name)
			} else {
				names[name] = true
			}
			form := outputForm(&j, i)
			name := v.attr(t, "name")
			whole := strings.HasSuffix(name, ".region") || slices.Contains([]string{"events", "transitions", "fault"}, name)
			if isMode := strings.HasSuffix(name, ".mode"); form.Integer != (isMode || whole) || (form.Modes != nil) != isMode || !v.has("description") {
				t.Errorf("%v has the form %+v", v.Attrs, form)
			}
			if form.Integer {
				checkInteger(t, &d, &v, version, form)
				continue
			}
			if !units[v.attr(t, "unit")] {
				t.Errorf("unit of %v is not defined", v.Attrs)
			}
			want := "output"
			if i == 0 {
				want = "independent"
			} else if i <= m {
				want = "input"
				if got := v.number(t, "start"); got != j.Tables.Start[i-1] {
					t.Errorf("%v starts at %g, want %g", v.Attrs, got, j.Tables.Start[i-1])
				}
			}
			if got := v.attr(t, "causality"); got != want {
				t.Errorf("%v is an %s, want %s", v.Attrs, got, want)
			}
			if (want == "input") != v.has("start") || (want == "output") != v.has("initial") {
				t.Errorf("%v: only inputs have start, only outputs have initial", v.Attrs)
			}
			if i > 0 {
				checkPort(t, &v, ports[i-1])
			}
		}
	})
}

// outputForm returns the form of the output that is variable i; a number for an input and the time.
func outputForm(j *Plant, i int) kernel.OutputForm {
	if i -= 1 + len(j.Tables.Inputs); i >= 0 {
		return j.Tables.OutputForm(i)
	}
	return kernel.OutputForm{}
}

// checkInteger checks the type of a variable with whole numbers, and the values of an enumeration.
func checkInteger(t *testing.T, d *described, v *element, version int, form kernel.OutputForm) {
	t.Helper()
	kind := map[int]string{2: "Integer", 3: "Int64"}[version]
	if form.Modes != nil {
		kind = "Enumeration"
	}
	if v.XMLName.Local != kind || v.attr(t, "variability") != "discrete" || v.has("unit") || v.attr(t, "description") != form.About {
		t.Errorf("<%s> %v, want %s, %q", v.XMLName.Local, v.Attrs, kind, form.About)
	}
	if form.Modes == nil {
		return
	}
	types := d.root.part(t, "TypeDefinitions").Inner
	list := types[0].Inner
	if version == 2 {
		list = list[0].Inner
	}
	if len(types) != 1 || types[0].attr(t, "name") != v.attr(t, "declaredType") || len(list) != len(form.Modes) {
		t.Fatalf("types %v of %v", types, v.Attrs)
	}
	for i, item := range list {
		if item.attr(t, "name") != form.Modes[i] || item.attr(t, "value") != strconv.Itoa(int(kernel.Backward)+i) {
			t.Errorf("item %d is %v, want %s", i, item.Attrs, form.Modes[i])
		}
	}
}

// checkPort compares a variable with its port.
func checkPort(t *testing.T, v *element, p units.Port) {
	t.Helper()
	if got := v.attr(t, "name"); got != p.Name {
		t.Errorf("name %q, want %q", got, p.Name)
	}
	if got := v.attr(t, "unit"); got != p.Unit {
		t.Errorf("unit %q, want %q", got, p.Unit)
	}
	for name, limit := range map[string]float64{"min": p.Min, "max": p.Max} {
		if v.has(name) == math.IsInf(limit, 0) {
			t.Errorf("%s of %v, want %g", name, v.Attrs, limit)
		} else if v.has(name) && v.number(t, name) != limit {
			t.Errorf("%s of %v, want %g", name, v.Attrs, limit)
		}
	}
}

func TestModelDescriptionHasTheElementsOfTheStandard(t *testing.T) {
	order := []string{"CoSimulation", "UnitDefinitions", "LogCategories", "DefaultExperiment", "ModelVariables", "ModelStructure"}
	forEachFMU(t, func(t *testing.T, j Plant, version int, files map[string][]byte) {
		d := parse(t, version, files)
		var got []string
		for _, e := range d.root.Inner {
			got = append(got, e.XMLName.Local)
		}
		order := order
		if j.Tables.Mc > 0 {
			order = slices.Insert(slices.Clone(order), 2, "TypeDefinitions")
		}
		if !slices.Equal(got, order) {
			t.Errorf("elements %v, want %v", got, order)
		}
		slave, token := d.root.part(t, "CoSimulation"), "guid"
		if version == 3 {
			token = "instantiationToken"
			if got := slave.number(t, "fixedInternalStepSize"); got != 0.005 {
				t.Errorf("internal step %g s", got)
			}
		}
		for _, flag := range []string{"canGetAndSetFMUstate", "canSerializeFMUstate"} {
			if version == 3 {
				flag = strings.Replace(flag, "state", "State", 1)
			}
			if slave.attr(t, flag) != "true" {
				t.Errorf("%s is not true", flag)
			}
		}
		if slave.attr(t, "modelIdentifier") != j.Package || d.root.attr(t, "modelName") != j.Tables.Name || d.root.attr(t, token) != j.token() {
			t.Errorf("%v, %v do not name the plant", d.root.Attrs, slave.Attrs)
		}
		if slave.attr(t, "canHandleVariableCommunicationStepSize") != "false" {
			t.Error("canHandleVariableCommunicationStepSize is not false")
		}
		experiment := d.root.part(t, "DefaultExperiment")
		if got := experiment.number(t, "stepSize"); got != 0.005 {
			t.Errorf("step %g s", got)
		}
		if got := experiment.number(t, "stopTime"); got != 12.5 {
			t.Errorf("stop time %g s, want the length of the plant", got)
		}
		checkStructure(t, &d, version)
		checkSources(t, &d, version, files)
	})
}

// checkStructure checks that the model structure lists all outputs, in order, as outputs and as
// initial unknowns.
func checkStructure(t *testing.T, d *described, version int) {
	t.Helper()
	var want []string
	for i, v := range d.variables {
		if v.attr(t, "causality") == "output" {
			want = append(want, strconv.Itoa(i+3-version)) // FMI 2 counts variables from 1
		}
	}
	lists, key := map[string][]string{}, "valueReference"
	parts := d.root.part(t, "ModelStructure").Inner
	if version == 2 {
		key = "index"
		for _, part := range parts {
			for _, u := range part.Inner {
				lists[strings.TrimSuffix(part.XMLName.Local, "s")] = append(lists[strings.TrimSuffix(part.XMLName.Local, "s")], u.attr(t, key))
			}
		}
	} else {
		for _, u := range parts {
			lists[u.XMLName.Local] = append(lists[u.XMLName.Local], u.attr(t, key))
		}
	}
	if names := slices.Sorted(maps.Keys(lists)); !slices.Equal(names, []string{"InitialUnknown", "Output"}) {
		t.Errorf("ModelStructure has %v", names)
	}
	for name, got := range lists {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// checkSources checks that every C file is listed once, and that every file has the marker.
func checkSources(t *testing.T, d *described, version int, files map[string][]byte) {
	t.Helper()
	slave := d.root.part(t, "CoSimulation")
	list := &slave
	if version == 2 {
		list = &slave.Inner[0]
	} else {
		var build element
		if err := xml.Unmarshal(files["sources/buildDescription.xml"], &build); err != nil {
			t.Fatal(err)
		}
		configuration := build.part(t, "BuildConfiguration")
		set := configuration.part(t, "SourceFileSet")
		list = &set
	}
	var names []string
	for _, f := range list.Inner {
		names = append(names, f.attr(t, "name"))
	}
	if !slices.Equal(names, sourcesOf(files)) || len(names) != 2 {
		t.Errorf("sources %v, want %v", names, sourcesOf(files))
	}
	for path, text := range files {
		head := strings.Join(strings.SplitN(string(text), "\n", 3)[:2], " ")
		if !strings.Contains(head, "Code generated by lockstep gen ") || !strings.Contains(head, "; DO NOT EDIT.") {
			t.Errorf("%s begins with %q, without the marker", path, head)
		}
	}
}

func TestUnitDefinitionsHaveExponentsOfBaseUnits(t *testing.T) {
	want := map[string]string{
		"1": "", "s": "s 1", "N.m": "m 2 kg 1 s -2", "rad/s": "s -1 rad 1", "N.m.s/rad": "m 2 kg 1 s -1 rad -1",
		"Pa": "m -1 kg 1 s -2", "m/s2": "m 1 s -2", "rad": "rad 1", "Hz": "s -1 rad 1 factor 6.283185307179586",
		"bar": "m -1 kg 1 s -2 factor 100000", "rpm": "s -1 rad 1 factor 0.10471975511965978", "V": "m 2 kg 1 s -3 A -1", "N/(rad/s)": "m 1 kg 1 s -1 rad -1",
	}
	var list []variable
	for unit := range want {
		list = append(list, variable{Port: units.Port{Unit: unit}})
	}
	defined, err := unitDefinitions(list)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	err = descriptions.ExecuteTemplate(&text, "unitDefinitions", map[string]any{"Units": defined})
	if err != nil {
		t.Fatal(err)
	}
	var d element
	if err := xml.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Inner) != len(want) {
		t.Errorf("%d units, want %d", len(d.Inner), len(want))
	}
	for _, u := range d.Inner {
		base, got := u.part(t, "BaseUnit"), ""
		for _, a := range base.Attrs {
			got += " " + a.Name.Local + " " + a.Value
		}
		if name := u.attr(t, "name"); strings.TrimSpace(got) != want[name] {
			t.Errorf("%s is%s, want %s", name, got, want[name])
		}
	}
}

func TestVariablesOfAnFMUHaveDistinctNames(t *testing.T) {
	tables := &kernel.Tables{
		Inputs:  []units.Port{{Name: "time", Unit: "1"}, {Name: "a<&\">", Unit: "1"}},
		Outputs: []units.Port{{Name: "a<&\">", Unit: "1"}, {Name: "time", Unit: "1"}, {Name: "time_", Unit: "1"}, {Name: "eta", Unit: "1"}, {Name: "lag", Unit: "s"}, {Name: "events"}, {Name: "transitions"}, {Name: "fault"}},
		Start:   []float64{1, 2}, Delay: []float64{0, 0.25}, PeriodNs: 1e6,
	}
	j := Plant{Tables: tables, Hash: strings.Repeat("0123456789abcdef", 4), Marker: `// Code generated by lockstep gen "a -- b" */; DO NOT EDIT.`, Package: "a"}
	for version := 2; version <= 3; version++ {
		text, err := j.describe(fmt.Sprintf("model%d", version), []string{"a.c"})
		if err != nil {
			t.Fatal(err)
		}
		d := parse(t, version, map[string][]byte{"modelDescription.xml": text})
		var got []string
		for _, v := range d.variables {
			got = append(got, v.attr(t, "name"))
		}
		if want := []string{"time___", "time", "a<&\">", "a<&\">_", "time_", "time__", "eta", "lag", "events", "transitions", "fault"}; !slices.Equal(got, want) {
			t.Errorf("FMI %d: names %q, want %q", version, got, want)
		}
		if about := d.variables[2].attr(t, "description"); !strings.Contains(about, "0.25 s later") {
			t.Errorf("FMI %d: the description of an input with a dead time is %q", version, about)
		}
	}
}

func TestUnknownVersionOfFMIIsRefused(t *testing.T) {
	if _, err := new(Plant).Wrap(nil, 1); err == nil || err.Error() != "codegen: unknown FMI version 1; use 2 or 3" {
		t.Errorf("%v", err)
	}
}
