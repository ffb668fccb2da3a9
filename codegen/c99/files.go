package c99

import (
	"fmt"
	"strings"
)

// Metadata describes the plant in the files of a C kernel.
type Metadata struct {
	Name            string  // name of the plant
	Marker          string  // first line of each file, as a comment of Go
	Hash            string  // hash of the plant on its grid
	Period          float64 // period of the grid, s
	Inputs, Outputs []Port
	Start           []float64 // values of the inputs' own sources at time 0, SI
	States          []string  // names of the states
	Fault           int       // index of the output "fault"; -1: none
}

// Port is an input or output.
type Port struct{ Name, Unit string }

// mark returns the marker line as a comment of C90. The marker must stay one line: gen
// recognises its own files by this line, and an FMU repeats it in each source.
func (a *Metadata) mark() string {
	line := strings.TrimPrefix(a.Marker, "// ")
	return "/* " + strings.ReplaceAll(line, "*/", "* /") + " */"
}

// Files returns the C file and its header, by name.
func (b *Translation) Files(about Metadata) map[string][]byte {
	join := func(text []string) []byte { return []byte(strings.Join(text, "\n") + "\n") }
	return map[string][]byte{b.prefix + ".h": join(b.header(b.prefix, about)), b.prefix + ".c": join(b.source(b.prefix, about))}
}

// cHeader is the template of the header. NAME and name stand for the prefix.
const cHeader = `
#ifndef NAME_H
#define NAME_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NAME_INPUTS %d
#define NAME_OUTPUTS %d
#define NAME_PERIOD %s // s
#define NAME_HASH %s
%s
// name_create sets up a kernel at rest at time 0. It allocates no memory and uses no file and no
// clock.
void name_create(name_kernel *k);

// name_reset returns the plant to time 0 and its initial state.
void name_reset(name_kernel *k);

// name_step advances the plant by one period. u holds the inputs from now on, y receives the
// outputs at the new grid time, both in the units listed above. It returns the output "fault": 0,
// or 1 + the index of a state that is no longer finite. k, y and u must not overlap in memory.
int name_step(name_kernel *k, double *y, const double *u);

// name_output writes the outputs at the current grid time, at time 0 before the first step.
void name_output(name_kernel *k, double *y);

// name_drive makes input i follow u from the next step on, or its own source again. An input
// without a source of its own always follows u.
void name_drive(name_kernel *k, int64_t i, bool on);

// name_driven reports whether input i follows u.
bool name_driven(name_kernel *k, int64_t i);

// name_own returns the value of input i's own source in the middle of the next step.
double name_own(name_kernel *k, int64_t i);
CHANGE
// Names and units of the ports, by index. An empty list has one empty entry. input_start holds the
// values of the inputs' own sources at time 0. The result of name_step counts state_names from 1.
extern const char *const name_input_names[], *const name_input_units[];
extern const char *const name_output_names[], *const name_output_units[];
extern const double name_input_start[];
extern const char *const name_state_names[];

#ifdef __cplusplus
}
#endif

#endif`

// cChangeHeader and cChange are the declaration and the definition of name_change.
const (
	cChangeHeader = `
// name_change makes input i follow the line value + slope * (t - at) in the next step, from t = at, s
// after its start, to its next change or the end of the step. The step after it begins with its own
// u. Changes of one input must come in the order of their instants. If a step has more instants than
// places, the changes beyond act at the last one.
void name_change(name_kernel *k, int64_t i, double at, double value, double slope);

`
	cChange = `
void name_change(name_kernel *k, int64_t i, double at, double value, double slope) {
	if (i >= 0 && i < NAME_INPUTS) {
		%s(k, i, at, value, slope);
	}
}
`
)

// ifChanges returns a text with the names of this kernel if its commands change inside of a step,
// otherwise an empty line.
func (b *Translation) ifChanges(text string) string {
	if b.entryPoints[changeEntry] == "" {
		return "\n"
	}
	return strings.NewReplacer("name_", b.prefix+"_", "NAME_", strings.ToUpper(b.prefix)+"_").Replace(text)
}

// header returns the lines of the header.
func (b *Translation) header(prefix string, about Metadata) []string {
	w := lines{text: []string{about.mark(), ""}}
	title := "The plant " + about.Name + " on a grid of " + floatLiteral(about.Period) + " s."
	w.text = append(w.text, commentText("// "+title), "//")
	b.ports(&w, "u", about.Inputs)
	b.ports(&w, "y", about.Outputs)
	kernel := lines{}
	for _, s := range b.structs {
		if s.public {
			kernel.text = append(kernel.text, "")
			if s.name == prefix+"_kernel" {
				kernel.put("// A kernel is plain data: a copy of its bytes saves and restores a state. Its members are private.")
			}
			kernel.text = append(kernel.text, s.body...)
		}
	}

	text := strings.NewReplacer("name_", prefix+"_", "NAME_", strings.ToUpper(prefix)+"_").Replace(cHeader)
	text = strings.Replace(text, "CHANGE\n", b.ifChanges(cChangeHeader), 1)
	text = fmt.Sprintf(text, b.inputs, b.outputs, floatLiteral(about.Period), cString(about.Hash), strings.Join(kernel.text, "\n")+"\n")
	return append(w.text, strings.Split(text, "\n")...)
}

// ports writes the entries of u or y and their units as comments.
func (b *Translation) ports(w *lines, vector string, ports []Port) {
	for i, p := range ports {
		w.text = append(w.text, commentText(fmt.Sprintf("//  %s[%d]  %s  %s", vector, i, p.Name, p.Unit)))
	}
}

// cOpening is the template of the lines before the translated text.
const cOpening = `
// Compile with any C99 compiler. For the bits of the Go kernel, products and sums must not be
// fused: gcc needs -std=c99 or -ffp-contract=off; clang reads the pragma below.
#include "name.h"

#include <math.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math: this kernel needs the order of its operations, NaN and infinity"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
`

// cClosing is the template of the public functions.
const cClosing = `
void name_create(name_kernel *k) {
	memset(k, 0, sizeof *k);
	%[1]s(k);
}

void name_reset(name_kernel *k) { %[2]s(k); }

int name_step(name_kernel *k, double *y, const double *u) {
	%[3]s(k, y, u);
	return (int)y[%[8]d];
}

void name_output(name_kernel *k, double *y) { %[4]s(k, y); }

void name_drive(name_kernel *k, int64_t i, bool on) {
	if (i >= 0 && i < NAME_INPUTS) {
		%[5]s(k, i, on);
	}
}

bool name_driven(name_kernel *k, int64_t i) { return i >= 0 && i < NAME_INPUTS && %[6]s(k, i); }

double name_own(name_kernel *k, int64_t i) { return i >= 0 && i < NAME_INPUTS ? %[7]s(k, i) : 0.0; }
`

// source returns the lines of the C file.
func (b *Translation) source(prefix string, about Metadata) []string {
	named := strings.NewReplacer("name_", prefix+"_", "name.h", prefix+".h", "NAME_", strings.ToUpper(prefix)+"_")
	text := append([]string{about.mark(), "// " + about.Hash}, strings.Split(named.Replace(cOpening), "\n")...)
	for _, s := range b.structs {
		if !s.public {
			text = append(append(text, s.body...), "")
		}
	}

	text = append(text, b.code...)
	e := b.entryPoints
	closing := fmt.Sprintf(cClosing, e["create"], e["reset"], e["step"], e["output"], e["drive"], e["driven"], e["own"], max(0, about.Fault))
	text = append(text, strings.Split(named.Replace(closing), "\n")...)
	if change := e[changeEntry]; change != "" {
		text = append(text, strings.Split(fmt.Sprintf(b.ifChanges(cChange), change), "\n")...)
	}
	w := lines{}
	names := func(p Port) string { return cString(p.Name) }
	units := func(p Port) string { return cString(p.Unit) }
	portTable(&w, prefix+"_input_names", about.Inputs, names)
	portTable(&w, prefix+"_input_units", about.Inputs, units)
	portTable(&w, prefix+"_output_names", about.Outputs, names)
	portTable(&w, prefix+"_output_units", about.Outputs, units)
	states := make([]Port, len(about.States))
	for i, name := range about.States {
		states[i].Name = name
	}
	portTable(&w, prefix+"_state_names", states, names)
	starts := []string{}
	for _, v := range about.Start {
		starts = append(starts, floatLiteral(v))
	}
	if len(starts) == 0 {
		starts = []string{"0.0"}
	}
	w.put("const double %s_input_start[] = {%s};", prefix, strings.Join(starts, ", "))
	return append(text, w.text...)
}

// portTable writes a table of one text for each port.
func portTable(w *lines, name string, ports []Port, text func(Port) string) {
	var list []string
	for _, p := range ports {
		list = append(list, text(p))
	}
	if len(list) == 0 {
		list = []string{`""`}
	}
	w.put("const char *const %s[] = {%s};", name, strings.Join(list, ", "))
}
