package fmu

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"lockstep/model/kernel"
	"lockstep/model/units"
)

// descriptions are the templates of the XML files: modelDescription.xml of FMI 2.0 ("model2") and
// of FMI 3.0 ("model3"), and buildDescription.xml of FMI 3.0 ("build"). The outputs at a grid point
// depend on no input at that point, so their lists of dependencies are empty.
var descriptions = template.Must(template.New("").Funcs(template.FuncMap{"xml": escaped, "bound": bound}).Parse(`
{{- define "opening"}}<?xml version="1.0" encoding="UTF-8"?>
<!-- {{.Marker}} -->
{{end}}

{{- define "unitDefinitions"}}  <UnitDefinitions>
{{range .Units}}    <Unit name="{{xml .Name}}">
      <BaseUnit{{.Powers}}/>
{{range .Shown}}      <DisplayUnit name="{{xml .Name}}" factor="{{.Factor}}"{{with .Offset}} offset="{{.}}"{{end}}/>
{{end}}    </Unit>
{{end}}  </UnitDefinitions>
{{end}}

{{- define "experiment"}}  <LogCategories>
    <Category name="logStatusError" description="reason for which a call failed"/>
  </LogCategories>
  <DefaultExperiment startTime="0"{{with .Stop}} stopTime="{{.}}"{{end}} stepSize="{{.Period}}"/>
{{end}}

{{- define "identity" -}}
name="{{xml .Name}}" valueReference="{{.Reference}}" causality="{{.Causality}}" variability="{{if .Form.Integer}}discrete{{else}}continuous{{end}}"
{{- if eq .Causality "output"}} initial="calculated"{{end}}
{{- with .About}} description="{{xml .}}"{{end}}
{{- end}}

{{- define "value" -}}
unit="{{xml .Unit}}"{{with .Declared}} displayUnit="{{xml .}}"{{end}}{{bound "min" .Min}}{{bound "max" .Max}}{{with .Start}} start="{{.}}"{{end}}
{{- end}}

{{- define "items"}}{{range .Modes}}        <Item name="{{.Name}}" value="{{.Value}}"/>
{{end}}{{end}}

{{- define "unknowns2"}}{{range .}}      <Unknown index="{{.Index}}" dependencies=""/>
{{end}}{{end}}

{{- define "model2"}}{{template "opening" .}}<fmiModelDescription fmiVersion="2.0" modelName="{{xml .Plant}}"
{{- /**/}} guid="{{.Token}}" generationTool="lockstep" variableNamingConvention="flat" numberOfEventIndicators="0">
  <CoSimulation modelIdentifier="{{.Package}}" canHandleVariableCommunicationStepSize="false"
{{- /**/}} canNotUseMemoryManagementFunctions="true" canGetAndSetFMUstate="true" canSerializeFMUstate="true">
    <SourceFiles>
{{range .Sources}}      <File name="{{.}}"/>
{{end}}    </SourceFiles>
  </CoSimulation>
{{template "unitDefinitions" .}}{{if .Modes}}  <TypeDefinitions>
    <SimpleType name="Mode" description="mode of a friction element">
      <Enumeration>
{{template "items" .}}      </Enumeration>
    </SimpleType>
  </TypeDefinitions>
{{end}}{{template "experiment" .}}  <ModelVariables>
{{range .Variables}}    <ScalarVariable {{template "identity" .}}>
      {{if .Form.Modes}}<Enumeration declaredType="Mode"/>{{else if .Form.Integer}}<Integer/>{{else}}<Real {{template "value" .}}/>{{end}}
    </ScalarVariable>
{{end}}  </ModelVariables>
  <ModelStructure>
    <Outputs>
{{template "unknowns2" .Outputs}}    </Outputs>
    <InitialUnknowns>
{{template "unknowns2" .Outputs}}    </InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
{{end}}

{{- define "model3"}}{{template "opening" .}}<fmiModelDescription fmiVersion="3.0" modelName="{{xml .Plant}}"
{{- /**/}} instantiationToken="{{.Token}}" generationTool="lockstep" variableNamingConvention="flat">
  <CoSimulation modelIdentifier="{{.Package}}" canGetAndSetFMUState="true" canSerializeFMUState="true"
{{- /**/}} canHandleVariableCommunicationStepSize="false" fixedInternalStepSize="{{.Period}}"/>
{{template "unitDefinitions" .}}{{if .Modes}}  <TypeDefinitions>
    <EnumerationType name="Mode" description="mode of a friction element">
{{template "items" .}}    </EnumerationType>
  </TypeDefinitions>
{{end}}{{template "experiment" .}}  <ModelVariables>
{{range .Variables}}    {{if .Form.Modes}}<Enumeration {{template "identity" .}} declaredType="Mode"/>
{{- else if .Form.Integer}}<Int64 {{template "identity" .}}/>
{{- else}}<Float64 {{template "identity" .}} {{template "value" .}}/>{{end}}
{{end}}  </ModelVariables>
  <ModelStructure>
{{range .Outputs}}    <Output valueReference="{{.Reference}}" dependencies=""/>
{{end}}{{range .Outputs}}    <InitialUnknown valueReference="{{.Reference}}" dependencies=""/>
{{end}}  </ModelStructure>
</fmiModelDescription>
{{end}}

{{- define "build"}}{{template "opening" .}}<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{{.Package}}">
    <SourceFileSet language="C99" compiler="gcc" compilerOptions="{{.Options}}">
{{range .Sources}}      <SourceFile name="{{.}}"/>
{{end}}    </SourceFileSet>
    <Library name="m" external="true"/>
  </BuildConfiguration>
</fmiBuildDescription>
{{end}}`))

// describe returns one of the XML files for a plant.
func (p *Plant) describe(name string, sources []string) ([]byte, error) {
	list := p.variables()
	defined, err := unitDefinitions(list)
	if err != nil {
		return nil, fmt.Errorf("codegen: plant %q: %w", p.Tables.Name, err)
	}

	marker := strings.TrimPrefix(p.Marker, "// ")
	for strings.Contains(marker, "--") { // XML forbids -- in a comment; --- needs two passes
		marker = strings.ReplaceAll(marker, "--", "- -")
	}
	stop := ""
	if p.Length > 0 {
		stop = decimal(p.Length.Seconds())
	}
	var b bytes.Buffer
	err = descriptions.ExecuteTemplate(&b, name, map[string]any{
		"Marker": marker, "Plant": p.Tables.Name, "Package": p.Package, "Token": p.token(), "Period": p.period(),
		"Sources": sources, "Options": strings.Join(slaveOptions, " "), "Units": defined,
		"Modes": modesOf(list), "Stop": stop, "Variables": list, "Outputs": list[1+len(p.Tables.Inputs):],
	})

	return b.Bytes(), err
}

// variable describes the time, an input or an output in modelDescription.xml.
type variable struct {
	units.Port
	Reference int    // value reference
	Causality string // "independent", "input" or "output"
	Start     string // start value of an input, SI
	About     string // text of the attribute description
	Form      kernel.OutputForm
}

// mode is a value of the type Mode.
type mode struct {
	Name  string
	Value int
}

// modesOf returns the values of the type Mode; nil if no variable is of this type.
func modesOf(list []variable) (modes []mode) {
	for i := range list {
		if names := list[i].Form.Modes; names != nil {
			for j, name := range names {
				modes = append(modes, mode{name, int(kernel.Backward) + j})
			}
			return modes
		}
	}
	return nil
}

// Index returns the index of the variable in FMI 2.0, from 1.
func (v variable) Index() int { return v.Reference + 1 }

// variables returns the variables of the plant by value reference. An output or the time gets _ at
// the end of a name that is already in use.
func (p *Plant) variables() []variable {
	taken := map[string]bool{}
	unused := func(name string) string {
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		return name
	}

	list := []variable{{}} // entry 0 is the time; it is named last, so that a port "time" keeps its name
	for i, port := range p.Tables.Inputs {
		about := "follows the plant's own source until it is set"
		if d := p.Tables.Delay[i]; d > 0 {
			about += "; acts " + decimal(d) + " s later"
		}
		port.Name = unused(port.Name)
		list = append(list, variable{port, len(list), "input", decimal(p.Tables.Start[i]), about, kernel.OutputForm{}})
	}

	for i, port := range p.Tables.Outputs {
		form := p.Tables.OutputForm(i)
		port.Name = unused(port.Name)
		list = append(list, variable{Port: port, Reference: len(list), Causality: "output", Form: form,
			About: cmp.Or(form.About, "output of the plant file")})
	}

	time := units.Port{Name: unused("time"), Unit: "s", Min: math.Inf(-1), Max: math.Inf(1)}
	list[0] = variable{Port: time, Causality: "independent", About: "simulated time"}

	return list
}

// unitDefinition is a unit with the exponents of its base units, as attributes of XML, and the units
// that the plant file declares for quantities in it.
type unitDefinition struct {
	Name, Powers string
	Shown        []displayUnit
}

// displayUnit is a unit in which people read a quantity: number = value·Factor + Offset.
type displayUnit struct {
	Name, Factor string
	Offset       string // "": 0
}

// displayUnits returns the units that variables declare for quantities in a unit.
func displayUnits(list []variable, unit string) (shown []displayUnit) {
	for i := range list {
		v := &list[i]
		w := v.DeclaredUnit()
		known := slices.ContainsFunc(shown, func(d displayUnit) bool { return d.Name == v.Declared })
		if v.Unit != unit || v.Declared == "" || known {
			continue
		}
		d := displayUnit{Name: v.Declared, Factor: decimal(1 / w.Factor)}
		if w.Zero != 0 {
			d.Offset = decimal(-w.Zero / w.Factor)
		}
		shown = append(shown, d)
	}

	return shown
}

// unitDefinitions returns the definitions of the units of all variables. FMI has an exponent for
// rad, package units has none. The function finds the exponent by parsing the unit again with A in
// place of rad: the exponent of A grows by that of rad.
func unitDefinitions(list []variable) (defined []unitDefinition, err error) {
	names := map[string]bool{}
	for _, v := range list {
		names[v.Unit] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		u, err := units.Parse(name)
		if err != nil {
			return nil, err
		}
		other, err := units.Parse(strings.ReplaceAll(u.SI, "rad", "A"))
		if err != nil {
			return nil, err
		}

		turns := int(u.Dim[5]) // a cycle is 2π rad
		powers := []int{int(u.Dim[0]), int(u.Dim[1]), int(u.Dim[2]), int(u.Dim[3]), int(u.Dim[4]),
			int(other.Dim[3]-u.Dim[3]) + turns}
		text := ""
		for i, base := range []string{"m", "kg", "s", "A", "K", "rad"} {
			if powers[i] != 0 {
				text += fmt.Sprintf(" %s=%q", base, strconv.Itoa(powers[i]))
			}
		}

		if factor := u.Factor * math.Pow(2*math.Pi, float64(turns)); factor != 1 {
			text += fmt.Sprintf(" factor=%q", decimal(factor))
		}
		defined = append(defined, unitDefinition{name, text, displayUnits(list, name)})
	}

	return defined, nil
}

// bound returns the attribute of a limit; "" for an infinite one.
func bound(name string, v float64) string {
	if math.IsInf(v, 0) {
		return ""
	}
	return fmt.Sprintf(" %s=%q", name, decimal(v))
}

// period returns the period of the grid, s.
func (p *Plant) period() string { return decimal(float64(p.Tables.PeriodNs) / 1e9) }

// decimal returns a number as text with the same bits.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// escaped returns a text as the value of an attribute of XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
