package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/ecu"
)

// Program is a program that is the control unit of a bench.
type Program struct {
	Args []yamlfile.Scalar // file of the program, and its arguments
	// HangNs is the longest time that the program may take for an answer, real time, ns. It ends a
	// run and changes nothing else.
	HangNs int64
}

const defaultHang = 60e9 // default of Program.HangNs, ns

// readProgram reads "{exec: ./tcu.py, hang: 60 s}"; exec is a list if the program has arguments.
func readProgram(r *yamlfile.Reader, f yamlfile.Field) (yamlfile.Scalar, *Program) {
	s := r.Section(f, "control_unit", "exec", "hang")
	p := &Program{HangNs: defaultHang}
	for _, word := range r.OneOrItems(s["exec"], "control_unit: exec") {
		w := r.Scalar(word, "control_unit: exec")
		if strings.ContainsRune(w.Text, 0) {
			r.Fail(word, "control_unit: exec: %q has a NUL character", w.Text)
		}
		p.Args = append(p.Args, w)
	}
	if len(p.Args) == 0 || p.Args[0].Text == "" {
		r.Fail(f, "control_unit: exec: the program is missing: {exec: ./PROGRAM}, or {exec: [./PROGRAM, ARGUMENT]}")
	}
	if hang, ok := s["hang"]; ok {
		p.HangNs = readNanoseconds(r, hang, "control_unit: hang", 1e9, 3600e9)
	}
	return p.Args[0], p
}

// ProgramFile returns the file of the control unit's program and the folder in which it runs, that of
// the bench file. A name without a slash may also be a command of the PATH. The error is nil if the
// file can be executed.
func (b *Bench) ProgramFile() (file, dir string, err error) {
	name := b.Program.Args[0]
	if dir, err = filepath.Abs(b.dir); err != nil {
		return "", "", b.Errorf(name, "control_unit: exec: %w", err)
	}
	if file = name.Text; !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if _, missing := os.Stat(file); missing != nil && !strings.Contains(name.Text, "/") {
		if command, err := exec.LookPath(name.Text); err == nil {
			return command, dir, nil
		}
	}
	_, err = exec.LookPath(file) // file has a slash: the PATH is not searched
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		err = b.Errorf(name, "control_unit: exec: no program %s: %w", name.Text, path.Err)
	case errors.Is(err, os.ErrPermission):
		err = b.Errorf(name, "control_unit: exec: %s cannot be executed; make it executable: chmod +x %s",
			name.Text, file)
	case err != nil:
		err = b.Errorf(name, "control_unit: exec: no program %s: %w", name.Text, errors.Unwrap(err))
	default:
		if err = checkInterpreter(file, dir); err != nil {
			err = b.Errorf(name, "control_unit: exec: %s %w", name.Text, err)
		}
	}
	return file, dir, err
}

// checkInterpreter returns an error if file is a script whose first line names an interpreter that cannot
// be executed. The script runs in the folder dir.
func checkInterpreter(file, dir string) error {
	head, err := inputfile.ReadHead(file)
	line, isScript := strings.CutPrefix(string(head), "#!")
	if err != nil || !isScript { // a program that nobody may read can be executed all the same
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	interpreter, argument := strings.Trim(line, " \t"), ""
	if i := strings.IndexAny(interpreter, " \t"); i >= 0 {
		interpreter, argument = interpreter[:i], strings.Trim(interpreter[i:], " \t")
	}
	switch {
	case strings.HasSuffix(line, "\r"):
		return fmt.Errorf("has the line ends of Windows; remove them: sed -i 's/\\r$//' %s", file)
	case interpreter == "":
		return errors.New("has a first line without an interpreter; write one such as #!/usr/bin/python3")
	case !filepath.IsAbs(interpreter):
		interpreter = filepath.Join(dir, interpreter)
	}
	if _, err := exec.LookPath(interpreter); err != nil {
		return fmt.Errorf("names the interpreter %s in its first line, which cannot be executed; "+
			"write another one, such as #!/usr/bin/env python3", interpreter)
	}
	if command := commandOfEnv(interpreter, argument); command != "" {
		if _, err := exec.LookPath(command); err != nil {
			return fmt.Errorf("names the interpreter %s in its first line, which the PATH does not have; "+
				"install it, or write another one, such as #!/usr/bin/env python3", command)
		}
	}
	return nil
}

// commandOfEnv returns the command that env(1) looks up for the first line of a script; "": the
// interpreter is not env, or has options that are not read here. The kernel passes the rest of the line
// as one argument, which -S splits.
func commandOfEnv(interpreter, argument string) string {
	if filepath.Base(interpreter) != "env" {
		return ""
	}
	words := []string{argument}
	if split, ok := strings.CutPrefix(argument, "-S"); ok {
		words = strings.Fields(split)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.Contains(w, "=") })
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return ""
	}
	return words[0]
}

// ProgramDigest returns a digest of the program of the control unit, and of its arguments that name files
// in the folder of the bench file: a script of an interpreter is one.
func (b *Bench) ProgramDigest() string {
	file, dir, _ := b.ProgramFile()
	names := []string{file}
	for _, arg := range b.Program.Args[1:] {
		if name := arg.Text; !filepath.IsAbs(name) {
			names = append(names, filepath.Join(dir, name))
		} else {
			names = append(names, name)
		}
	}
	var list [][]byte
	for _, name := range names {
		data, _ := inputfile.Read(name, inputfile.Executable) // the start of the program names an error
		list = append(list, data)
	}
	return DigestOfBytes(list...)
}

// checkProgram returns an error if the control unit is a program that cannot be executed.
func (b *Bench) checkProgram() error {
	if b.Program == nil {
		return nil
	}
	_, _, err := b.ProgramFile()
	return err
}

// HasUnit reports whether the control unit is at the other end of a bus: a virtual control unit has the
// first pair, a program has all pairs.
func (b *Bench) HasUnit(bus int) bool {
	isPair := func(bus Bus) bool { return bus.Interface.Text == PairInterface }
	if b.Unit.Text == "" || !isPair(b.Buses[bus]) {
		return false
	}
	return b.Program != nil || !slices.ContainsFunc(b.Buses[:bus], isPair)
}

// ReadControlUnit reads "abs", "{name: abs, slip: 0.14}" with values of parameters, or
// "{exec: ./tcu.py}". program is nil except in the last case.
func ReadControlUnit(r *yamlfile.Reader, f yamlfile.Field) (w yamlfile.Scalar, set []ecu.Setting, program *Program) {
	name, list := f, []yamlfile.Field(nil)
	if yamlfile.IsMapping(f.Node) {
		list = r.FieldsOf(f, "control_unit")
		if slices.ContainsFunc(list, func(f yamlfile.Field) bool { return f.Key == "exec" }) {
			w, program = readProgram(r, f)
			return w, nil, program
		}
		at := slices.IndexFunc(list, func(f yamlfile.Field) bool { return f.Key == "name" })
		if at < 0 {
			r.Fail(f, "control_unit: name is missing: {name: %s, PARAMETER: VALUE}, or {exec: ./PROGRAM}", ecu.Names()[0])
		}
		name = list[at]
		list = slices.Delete(list, at, at+1)
	}

	w = r.Scalar(name, "control_unit")
	if !slices.Contains(ecu.Names(), w.Text) {
		r.Fail(name, "control_unit: no control unit %q%s; there are %s; a program is {exec: ./PROGRAM}",
			w.Text, units.Meant(w.Text, ecu.Names()), strings.Join(ecu.Names(), ", "))
	}

	for _, p := range list {
		s, err := ReadSetting(w.Text, p.Key, r.Scalar(p, "control_unit").Text)
		if set = append(set, s); err == nil {
			err = ecu.Check(w.Text, set)
		}
		if err != nil {
			r.FailAt(p.KeyAt, "control_unit: %s", strings.TrimPrefix(err.Error(), "ecu: "))
		}
	}

	return w, set, nil
}

// ReadSetting reads a value of a parameter of the control unit called name. ecu.Check refuses
// parameters that the unit does not have.
func ReadSetting(name, parameter, text string) (ecu.Setting, error) {
	unit := settingUnit(name, parameter)
	si, err := unit.Typed(text)
	if err != nil {
		return ecu.Setting{}, fmt.Errorf("ecu: %s: %s", parameter, QuantityError(text, err))
	}
	return ecu.Setting{Name: parameter, Value: unit.FromSI(si)}, nil
}

// FormatSetting formats the value of a setting for ReadSetting.
func FormatSetting(name string, s ecu.Setting) string {
	return units.WithUnit(strconv.FormatFloat(s.Value, 'g', -1, 64), settingUnit(name, s.Name).Spelled)
}

// settingUnit returns the unit of a parameter; 1 for an unknown parameter.
func settingUnit(name, parameter string) units.Wanted {
	for _, p := range ecu.Parameters(name) {
		if p.Name == parameter && p.Unit != "" {
			return units.Want(p.Unit)
		}
	}
	return units.Want("1")
}

// ControlUnitArgs returns the arguments that start the virtual control unit on a bus.
func (b *Bench) ControlUnitArgs(bus string) []string {
	args := []string{"ecu", b.Unit.Text, "-bus", bus}
	if box := b.VirtualBox(); box != "" {
		args = append(args, "-box", box)
	}
	for _, s := range b.Settings {
		args = append(args, "-set", s.Name+"="+FormatSetting(b.Unit.Text, s))
	}
	return args
}
