package main

import (
	"errors"
	"flag"
	"fmt"
	"go/doc/comment"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"lockstep/model/units"
)

// usageError is a wrong command line: exit code 2.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// args are the flags and names of one command line. A command declares its flags as its usage
// shows them: a flag called "report FILE.json" is -report, and FILE.json stands for its value.
type args struct {
	*flag.FlagSet
	command command
	run     func() error
	options []option // the flags, by name
	needed  string   // the flag that cannot be left out; "" none
	names   []string // given
}

// option is a flag: -name VALUE, and what it does; Value is "" where nothing follows.
type option struct{ Name, Value, About string }

// args are the flags of a command, ready to be parsed.
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

// name is the one name that was given; "" none.
func (a *args) name() string { return strings.Join(a.names, "") }

// execute reads flags before, between and after the names, and runs the command.
func (a *args) execute(list []string) error {
	for len(list) > 0 {
		if err := a.Parse(list); errors.Is(err, flag.ErrHelp) {
			a.help()
			return nil
		} else if err != nil {
			return a.explain(err)
		}

		if list = a.Args(); len(list) > 0 {
			a.names = append(a.names, list[0])
			list = list[1:]
		}
	}

	known := a.command.names
	lo := len(slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name[0] == '[' }))
	endless := len(known) > 0 && strings.Contains(known[len(known)-1], "...")
	if n := len(a.names); n < lo || n > len(known) && !endless {
		return usageError{fmt.Sprintf("%s: %d names given; usage: lockstep %s", a.Name(), n, a.usage())}
	}
	if a.needed != "" && a.Lookup(a.needed).Value.String() == "" {
		return usageError{fmt.Sprintf("%s: -%s is missing; usage: lockstep %s", a.Name(), a.needed, a.usage())}
	}

	return a.run()
}

// explain turns an error of package flag into one line with the nearest flag.
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
		hint = "; it has none"
	}
	if near := units.Nearest(name, known); near != "" {
		hint = " (did you mean -" + near + "?)"
	}

	return usageError{fmt.Sprintf("%s: unknown flag -%s%s", a.Name(), name, hint)}
}

// usage is a line like "sim PLANT|BENCH [-every N] [-for 25s]".
func (a *args) usage() string {
	words := append([]string{a.Name()}, a.command.names...)
	for _, o := range a.options {
		word := "-" + o.Name
		switch {
		case o.Value != "":
			word += " " + o.Value
		case a.Lookup(o.Name).DefValue == "true":
			word += "=false"
		}

		if o.Name != a.needed {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}

	return strings.Join(words, " ")
}

// help prints the usage and what each flag does.
func (a *args) help() {
	fmt.Print(wrap(os.Stdout, "usage: lockstep ", a.usage()))
	for _, o := range a.options {
		fmt.Println(strings.TrimRight("  -"+o.Name+" "+o.Value, " "))
		fmt.Print(wrap(os.Stdout, "        ", o.About))
	}
}

// wrap is a head with a text that a terminal shows in lines of its width, all of them behind the
// head; elsewhere it is one line.
func wrap(to *os.File, head, text string) string {
	p := comment.Printer{TextWidth: -1, TextPrefix: strings.Repeat(" ", utf8.RuneCountInString(head))}
	if width := terminalWidth(to); width > 0 {
		p.TextWidth = max(20, width-len(p.TextPrefix))
	}
	lines := p.Text(&comment.Doc{Content: []comment.Block{&comment.Paragraph{Text: []comment.Text{comment.Plain(text)}}}})
	return head + string(lines[len(p.TextPrefix):])
}

// terminalWidth returns the width of a terminal; 0 where the file is none.
func terminalWidth(to *os.File) int {
	width, _, err := term.GetSize(int(to.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// span is a flag for a time that is more than 0; def 0 means not given.
func (a *args) span(name string, def time.Duration, text string) *time.Duration {
	d := def
	a.Func(name, text, func(s string) (err error) {
		if d, err = time.ParseDuration(s); err != nil {
			return errors.New("a time of at most 2562047h is wanted, like 10s or 500ms") // of 63 bits, ns
		}
		if d <= 0 {
			return errors.New("it must be more than 0")
		}
		return nil
	})
	return &d
}

// gridFlags are the flags that say how a plant is stepped; the period is 0 where none is given.
func (a *args) gridFlags(scheme, form *string) (step *time.Duration) {
	a.choice(scheme, "scheme", "of a plant, after an event in a step: complete (the step is finished, the default) or "+
		"papers (the rest goes into the lag buffer); a bench has its own", "complete", "papers")
	a.choice(form, "form", "of a plant, what holds a lock: projected (exact, the default) or "+
		"held (the papers' torque held over the step)", "projected", "held")
	return a.span("step 5ms", 0, "period of the grid of a plant (default 5ms); a bench has its own")
}

// several is a flag that may be given several times, each time with a list.
func (a *args) several(dst *[]string, name, text string) {
	a.Func(name, text, func(s string) error {
		*dst = append(*dst, strings.Split(s, ",")...)
		return nil
	})
}

// choice is a flag whose value is one of words.
func (a *args) choice(dst *string, name, text string, words ...string) {
	a.Func(name+" "+strings.Join(words, "|"), text, func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("it must be " + strings.Join(words, " or "))
		}
		*dst = s
		return nil
	})
}
