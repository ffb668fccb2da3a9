package codegen

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"lockstep/model"
)

// C writes a plant's kernel as one C99 file and its header, named after the package. It is
// the Go of the same job, statement by statement: without contraction of products and sums
// both give the same bits.
func C(j Job) (Files, Report, error) {
	files, report, err := Go(j)
	if err != nil {
		return nil, Report{}, err
	}
	texts := map[string][]byte{}
	for name, text := range files {
		if path.Ext(name) == ".go" && path.Base(name) == name && !strings.HasSuffix(name, "_test.go") {
			texts[name] = text
		}
	}
	body, err := translate(texts, j.Package)
	if err != nil {
		return nil, Report{}, err
	}
	about := cAbout{
		name: j.Tables.Name, marker: j.marker(), hash: j.Hash, period: float64(j.Tables.PeriodNs) * 1e-9,
		inputs: j.Tables.Inputs, outputs: j.Tables.Outputs, start: j.Tables.Start,
		fault: slices.IndexFunc(j.Tables.Outputs, func(p model.Port) bool { return p.Name == "fault" }),
	}
	out := body.files(j.Package, about)
	report.Code, report.Tables, report.State = len(out[j.Package+".c"])-body.tables, body.tables, body.state
	return out, report, nil
}

// cAbout is what a C kernel says of itself.
type cAbout struct {
	name, marker, hash string
	period             float64 // s
	inputs, outputs    []model.Port
	start              []float64 // of the inputs
	fault              int       // the output that is not 0 where a state is no longer finite
}

// mark is the marker line as a comment that C had before C99.
func (a *cAbout) mark() string {
	line := strings.TrimPrefix(a.marker, "// ")
	return "/* " + strings.ReplaceAll(line, "*/", "* /") + " */"
}

// files are the C file and its header.
func (b *cBody) files(prefix string, about cAbout) Files {
	join := func(text []string) []byte { return []byte(strings.Join(text, "\n") + "\n") }
	return Files{prefix + ".h": join(b.header(prefix, about)), prefix + ".c": join(b.source(prefix, about))}
}

// cHeader is the header around the types and numbers of a plant; NAME and name stand for
// its prefix.
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
// name_create sets up a kernel at rest at time 0. It needs nothing else: no memory, no
// file, no clock.
void name_create(name_kernel *k);

// name_reset puts the plant back to time 0 and its initial state.
void name_reset(name_kernel *k);

// name_step takes the plant from one grid time to the next: u holds the inputs from now
// on, y receives the outputs at the new grid time, both in the units below. It gives 0, or
// 1 + the index of a state that is no longer finite: the output "fault". Memory of k, y and
// u must not overlap.
int name_step(name_kernel *k, double *y, const double *u);

// name_output writes the outputs at the current grid time, at time 0 before the first step.
void name_output(name_kernel *k, double *y);

// name_drive lets input i follow u from the next step on, or its own source again. Without
// a source of its own an input always follows u.
void name_drive(name_kernel *k, int64_t i, bool on);

// name_driven says whether input i follows u.
bool name_driven(name_kernel *k, int64_t i);

// name_own is what the source of input i gives in the middle of the next step.
double name_own(name_kernel *k, int64_t i);

// The ports by their index; a list without entries has one that is empty. input_start is
// what each input's own source gives at time 0.
extern const char *const name_input_names[], *const name_input_units[];
extern const char *const name_output_names[], *const name_output_units[];
extern const double name_input_start[];

#ifdef __cplusplus
}
#endif

#endif`

// header writes the header.
func (b *cBody) header(prefix string, about cAbout) []string {
	w := lines{}
	w.put("%s", about.mark())
	w.put("")
	title := "The plant " + about.name + " on a grid of " + floatLiteral(about.period) + " s."
	w.text = append(w.text, commentText("// "+title), "//")
	b.ports(&w, "u", about.inputs)
	b.ports(&w, "y", about.outputs)
	kernel := lines{}
	for _, s := range b.structs {
		if s.public {
			kernel.text = append(kernel.text, "")
			if s.name == prefix+"_kernel" {
				kernel.put("// A kernel is plain data: a copy of its bytes saves and restores a state. Its members are its own.")
			}
			kernel.text = append(kernel.text, s.body...)
		}
	}
	text := strings.NewReplacer("name_", prefix+"_", "NAME_", strings.ToUpper(prefix)+"_").Replace(cHeader)
	text = fmt.Sprintf(text, b.inputs, b.outputs, floatLiteral(about.period), cString(about.hash), strings.Join(kernel.text, "\n")+"\n")
	return append(w.text, strings.Split(text, "\n")...)
}

// ports lists the entries of u or y with their units.
func (b *cBody) ports(w *lines, vector string, ports []model.Port) {
	for i, p := range ports {
		w.text = append(w.text, commentText(fmt.Sprintf("//  %s[%d]  %s  %s", vector, i, p.Name, p.Unit)))
	}
}

// cOpening is what stands before the translated text.
const cOpening = `
// Built with any C99 compiler. For the bits of the Go kernel products and sums must not be
// contracted: gcc contracts unless told -std=c99 or -ffp-contract=off, clang is told here.
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

// cClosing are the public functions.
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

// source writes the C file.
func (b *cBody) source(prefix string, about cAbout) []string {
	named := strings.NewReplacer("name_", prefix+"_", "name.h", prefix+".h", "NAME_", strings.ToUpper(prefix)+"_")
	text := append([]string{about.mark(), "// " + about.hash}, strings.Split(named.Replace(cOpening), "\n")...)
	for _, s := range b.structs {
		if !s.public {
			text = append(append(text, s.body...), "")
		}
	}
	text = append(text, b.code...)
	e := b.entry
	closing := fmt.Sprintf(cClosing, e["create"], e["reset"], e["step"], e["output"], e["drive"], e["driven"], e["own"], max(0, about.fault))
	text = append(text, strings.Split(named.Replace(closing), "\n")...)
	w := lines{}
	names := func(p model.Port) string { return cString(p.Name) }
	units := func(p model.Port) string { return cString(p.Unit) }
	portTable(&w, prefix+"_input_names", about.inputs, names)
	portTable(&w, prefix+"_input_units", about.inputs, units)
	portTable(&w, prefix+"_output_names", about.outputs, names)
	portTable(&w, prefix+"_output_units", about.outputs, units)
	starts := []string{}
	for _, v := range about.start {
		starts = append(starts, floatLiteral(v))
	}
	if len(starts) == 0 {
		starts = []string{"0.0"}
	}
	w.put("const double %s_input_start[] = {%s};", prefix, strings.Join(starts, ", "))
	return append(text, w.text...)
}

func portTable(w *lines, name string, ports []model.Port, text func(model.Port) string) {
	var list []string
	for _, p := range ports {
		list = append(list, text(p))
	}
	if len(list) == 0 {
		list = []string{`""`}
	}
	w.put("const char *const %s[] = {%s};", name, strings.Join(list, ", "))
}
