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
	"text/template"

	"lockstep/model/units"
)

// descriptions are the XML files of an FMU: modelDescription.xml of FMI 2.0 ("model2") and of FMI 3.0
// ("model3"), and buildDescription.xml of FMI 3.0 ("build"). Outputs at a grid point follow from the
// steps before it: they depend on no input there.
var descriptions = template.Must(template.New("").Funcs(template.FuncMap{"xml": escaped, "bound": bound}).Parse(`
{{- define "opening"}}<?xml version="1.0" encoding="UTF-8"?>
<!-- {{.Marker}} -->
{{end}}

{{- define "unitDefinitions"}}  <UnitDefinitions>
{{range .Units}}    <Unit name="{{xml .Name}}">
      <BaseUnit{{.Powers}}/>
    </Unit>
{{end}}  </UnitDefinitions>
{{end}}

{{- define "experiment"}}  <LogCategories>
    <Category name="logStatusError" description="why a call failed"/>
  </LogCategories>
  <DefaultExperiment startTime="0" stepSize="{{.Period}}"/>
{{end}}

{{- define "identity" -}}
name="{{xml .Name}}" valueReference="{{.Reference}}" causality="{{.Causality}}" variability="continuous"
{{- if eq .Causality "output"}} initial="calculated"{{end}}
{{- with .About}} description="{{xml .}}"{{end}}
{{- end}}

{{- define "value" -}}
unit="{{xml .Unit}}"{{bound "min" .Min}}{{bound "max" .Max}}{{with .Start}} start="{{.}}"{{end}}
{{- end}}

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
{{template "unitDefinitions" .}}{{template "experiment" .}}  <ModelVariables>
{{range .Variables}}    <ScalarVariable {{template "identity" .}}>
      <Real {{template "value" .}}/>
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
{{template "unitDefinitions" .}}{{template "experiment" .}}  <ModelVariables>
{{range .Variables}}    <Float64 {{template "identity" .}} {{template "value" .}}/>
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

// describe executes one of the descriptions for a plant.
func (j *Plant) describe(name string, sources []string) ([]byte, error) {
	list := j.variables()
	defined, err := unitDefinitions(list)
	if err != nil {
		return nil, fmt.Errorf("codegen: plant %q: %w", j.Tables.Name, err)
	}

	marker := strings.TrimPrefix(j.Marker, "// ")
	for strings.Contains(marker, "--") { // of three there are two left
		marker = strings.ReplaceAll(marker, "--", "- -")
	}
	var b bytes.Buffer
	err = descriptions.ExecuteTemplate(&b, name, map[string]any{
		"Marker": marker, "Plant": j.Tables.Name, "Package": j.Package, "Token": j.token(), "Period": j.period(),
		"Sources": sources, "Options": strings.Join(slaveOptions, " "), "Units": defined,
		"Variables": list, "Outputs": list[1+len(j.Tables.Inputs):],
	})

	return b.Bytes(), err
}

// variable is what a description says of time, an input or an output.
type variable struct {
	units.Port
	Reference int
	Causality string // "independent", "input" or "output"
	Start     string // of an input
	About     string
}

// Index is how FMI 2.0 counts the variable.
func (v variable) Index() int { return v.Reference + 1 }

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
		list = append(list, variable{p, len(list), "input", decimal(j.Tables.Start[i]), about})
	}

	for _, p := range j.Tables.Outputs {
		p.Name = free(p.Name)
		list = append(list, variable{Port: p, Reference: len(list), Causality: "output"})
	}

	time := units.Port{Name: free("time"), Unit: "s", Min: math.Inf(-1), Max: math.Inf(1)}
	list[0] = variable{Port: time, Causality: "independent"}

	return list
}

// unitDefinition is a unit by the powers of its base units, as attributes.
type unitDefinition struct{ Name, Powers string }

// unitDefinitions are those of all units. FMI counts radians, which are numbers otherwise: their
// power is what the power of amperes grows by with these in their place.
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
		defined = append(defined, unitDefinition{name, text})
	}

	return defined, nil
}

// bound is an attribute for a finite limit of a value.
func bound(name string, v float64) string {
	if math.IsInf(v, 0) {
		return ""
	}
	return fmt.Sprintf(" %s=%q", name, decimal(v))
}

// period is that of the grid in seconds.
func (j *Plant) period() string { return decimal(float64(j.Tables.PeriodNs) / 1e9) }

// decimal is a value as XML reads it, with the same bits.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// escaped is a text as the value of an attribute.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
