package main

import (
	"errors"
	"flag"
	"fmt"
	"go/doc/comment"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lockstep/model/units"
	"lockstep/rt/host"
)

// usageError is a wrong command line: exit code 2.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// args holds the flags and arguments of one command line. A command declares a flag as its usage
// shows it: "report FILE.json" declares -report, whose value is shown as FILE.json.
type args struct {
	*flag.FlagSet
	command  command
	run      func() error
	options  []option // flags, sorted by name
	required string   // name of the mandatory flag; "": none
	outputs  []string // names of the flags that name a result
	operands []string // arguments given, without flags
}

// option describes a flag: -Name Value. Value is "" for a flag without a value.
type option struct{ Name, Value, About string }

// args returns the flags of a command, ready to be parsed.
func (c command) args() *args {
	a := &args{command: c, FlagSet: flag.NewFlagSet(c.name, flag.ContinueOnError)}
	a.run = c.define(a)
	declared := a.FlagSet
	a.FlagSet = flag.NewFlagSet(c.name, flag.ContinueOnError)
	a.SetOutput(io.Discard)
	declared.VisitAll(func(f *flag.Flag) {
		quoted, about := flag.UnquoteUsage(f)
		name, value, named := strings.Cut(f.Name, " ")
		if !named {
			value = quoted
		}
		if d := f.DefValue; d != "" && d != "0" && d != "false" {
			about += fmt.Sprintf(" (default %s)", d)
		}
		a.Var(f.Value, name, about)
		a.options = append(a.options, option{name, value, about})
	})

	return a
}

// operand returns the operand of a command that takes at most one; "" if it is not given.
func (a *args) operand() string { return strings.Join(a.operands, "") }

// execute reads flags before, between and after the arguments, and runs the command.
func (a *args) execute(list []string) error {
	for len(list) > 0 {
		end := a.findNumber(list)
		if err := a.Parse(list[:end]); errors.Is(err, flag.ErrHelp) {
			a.help()
			return nil
		} else if err != nil {
			return a.explain(err)
		}

		if list = slices.Concat(a.Args(), list[end:]); len(list) > 0 {
			a.operands = append(a.operands, list[0])
			list = list[1:]
		}
	}

	known := a.command.operands
	mandatory := len(slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name[0] == '[' }))
	repeats := len(known) > 0 && strings.Contains(known[len(known)-1], "...")
	switch n := len(a.operands); {
	case n < mandatory:
		return usageError{fmt.Sprintf("%s: an argument is missing; usage: lockstep %s", a.Name(), a.usage())}
	case n > len(known) && !repeats:
		return usageError{fmt.Sprintf("%s: %.60q is one argument too many; usage: lockstep %s", a.Name(), a.operands[len(known)], a.usage())}
	}
	if a.required != "" && a.Lookup(a.required).Value.String() == "" {
		return usageError{fmt.Sprintf("%s: -%s is missing; usage: lockstep %s", a.Name(), a.required, a.usage())}
	}

	if err := a.checkOutputs(); err != nil {
		return err
	}
	return a.run()
}

// findNumber returns the index of the first negative number that is an argument, as -3 in "power -3 V", and not the value
// of a flag; len(list) if there is no such number.
func (a *args) findNumber(list []string) int {
	for i, text := range list {
		if len(text) < 2 || text[0] != '-' || !strings.ContainsRune(".0123456789", rune(text[1])) {
			continue
		}
		if i == 0 || !a.takesValue(list[i-1]) {
			return i
		}
	}
	return len(list)
}

// takesValue reports whether an argument is a flag that takes the next argument as its value.
func (a *args) takesValue(text string) bool {
	f := a.Lookup(strings.TrimLeft(text, "-"))
	if text[:min(1, len(text))] != "-" || f == nil {
		return false
	}
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return !ok || !b.IsBoolFlag()
}

// output declares a flag that names a result: a file or folder that the command writes.
func (a *args) output(name, text string) *string {
	file := new(string)
	a.outputVar(file, name, text)
	return file
}

// outputVar is output with a given variable.
func (a *args) outputVar(file *string, name, text string) {
	a.StringVar(file, name, "", text)
	flag, _, _ := strings.Cut(name, " ")
	a.outputs = append(a.outputs, flag)
}

// sameFileError is the error of two results with one name.
type sameFileError struct{ command, one, other, file string }

func (e *sameFileError) Error() string {
	return fmt.Sprintf("%s: -%s and -%s are the same file, %s: name two files", e.command, e.one, e.other, e.file)
}

// checkOutputs refuses to write two results to one file.
func (a *args) checkOutputs() error {
	for i, one := range a.outputs {
		for _, other := range a.outputs[:i] {
			x, y := a.Lookup(one).Value.String(), a.Lookup(other).Value.String()
			if x != "" && y != "" && isSameFile(x, y) {
				return &sameFileError{a.Name(), other, one, x}
			}
		}
	}
	return nil
}

// isSameFile reports whether two names are of the same file. Devices such as /dev/null may be shared.
func isSameFile(a, b string) bool {
	if a == "-" || b == "-" {
		return a == b
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y) && (x.Mode().IsRegular() || x.IsDir())
	}
	a, errX = filepath.Abs(a)
	b, errY = filepath.Abs(b)
	return errX == nil && errY == nil && a == b
}

// explain turns an error of package flag into one line with the most similar flag.
func (a *args) explain(err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "flag provided but not defined: -")
	if !unknown {
		return usageError{a.Name() + ": " + text}
	}
	var known []string
	for _, o := range a.options {
		known = append(known, o.Name)
	}
	hint := "; its flags are -" + strings.Join(known, ", -")
	if len(known) == 0 {
		hint = "; this command has no flags"
	}
	if near := units.Nearest(name, known); near != "" {
		hint = " (did you mean -" + near + "?)"
	}

	return usageError{fmt.Sprintf("%s: unknown flag -%s%s", a.Name(), name, hint)}
}

// usage returns a line like "sim PLANT|BENCH [-every N] [-for 25s]".
func (a *args) usage() string {
	words := append([]string{a.Name()}, a.command.operands...)
	for _, o := range a.options {
		word := "-" + o.Name
		switch {
		case o.Value != "":
			word += " " + o.Value
		case a.Lookup(o.Name).DefValue == "true":
			word += "=false"
		}

		if o.Name != a.required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}

	return strings.Join(words, " ")
}

// help prints the usage and the description of each flag.
func (a *args) help() {
	fmt.Fprint(plainOut, wrap(os.Stdout, "usage: lockstep ", a.usage()))
	for _, o := range a.options {
		fmt.Fprintln(plainOut, strings.TrimRight("  -"+o.Name+" "+o.Value, " "))
		fmt.Fprint(plainOut, wrap(os.Stdout, "        ", o.About))
	}
}

// wrap returns head and text for a file. For a terminal the text is broken into lines of its width,
// indented behind the head; for any other file it is one line.
func wrap(to *os.File, head, text string) string {
	p := comment.Printer{TextWidth: -1, TextPrefix: strings.Repeat(" ", utf8.RuneCountInString(head))}
	if width := host.TerminalWidth(to); width > 0 {
		p.TextWidth = max(20, width-len(p.TextPrefix))
	}
	lines := p.Text(&comment.Doc{Content: []comment.Block{&comment.Paragraph{Text: []comment.Text{comment.Plain(text)}}}})
	return head + string(lines[len(p.TextPrefix):])
}

// duration declares a flag for a duration > 0. Its default def is 0 where the flag has none.
func (a *args) duration(name string, def time.Duration, text string) *time.Duration {
	return a.time(name, def, text, 1, "it must be greater than 0")
}

// instant declares a flag for a time since the start of a run, 0 or later; 0 is the default.
func (a *args) instant(name, text string) *time.Duration {
	return a.time(name, 0, text, 0, "it must not be negative")
}

// time declares a flag for a time of at least least ns; a shorter one gives the error short.
func (a *args) time(name string, def time.Duration, text string, least time.Duration, short string) *time.Duration {
	d := def
	a.Func(name, text, func(s string) (err error) {
		if d, err = time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(s)); err != nil {
			missing := new(units.MissingUnit)
			if _, bare := units.Typed(s, "s"); errors.As(bare, &missing) {
				return missing
			}
			return errors.New("use a duration such as 10s or 500ms, at most 2562047h") // 63 bits of ns
		}
		if d < least {
			return errors.New(short)
		}
		return nil
	})
	return &d
}

// gridFlags declares the flags for scheme, form and period of a plant; the period is 0 if not
// given.
func (a *args) gridFlags(scheme, form *string) (step *time.Duration) {
	a.choice(scheme, "scheme", "what a plant does after an event in a step: complete (finishes the step, unless it has too many events; the default) or "+
		"papers (puts the rest into the lag buffer); a bench file sets its own", "complete", "papers")
	a.choice(form, "form", "how a plant keeps an element locked: projected (exact, the default) or "+
		"held (lock torque constant over the step, as in the papers)", "projected", "held")
	return a.duration("step 5ms", 0, "period of a plant (default 5ms); a bench file sets its own")
}

// list declares a repeatable flag whose value is a list, separated by commas.
func (a *args) list(dst *[]string, name, text string) {
	a.Func(name, text, func(s string) error {
		*dst = append(*dst, strings.Split(s, ",")...)
		return nil
	})
}

// choice declares a flag whose value is one of words.
func (a *args) choice(dst *string, name, text string, words ...string) {
	a.Func(name+" "+strings.Join(words, "|"), text, func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("it must be " + strings.Join(words, " or "))
		}
		*dst = s
		return nil
	})
}
