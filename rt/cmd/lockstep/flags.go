package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep/model/units"
)

// usageError is a wrong command line: exit code 2 and the command's own help.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// helpAsked ends a command whose help was asked for. It carries the flags: main prints
// them, the manual and the completion are made of them.
type helpAsked struct {
	*args
	out io.Writer
}

func (helpAsked) Error() string { return "help" }

// helped prints the help where that is what ended a command.
func helped(err error) bool {
	var h helpAsked
	if !errors.As(err, &h) {
		return false
	}
	h.help(h.out)
	return true
}

// args are the flags of one command and its names.
type args struct {
	*flag.FlagSet
	usage string // "sim PLANT [-for 25s] ..."
	names []string
	words map[string][]string // of the flags that take one of some words
}

func newArgs(name, usage string) *args {
	a := &args{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), usage: usage, words: map[string][]string{}}
	a.SetOutput(io.Discard)
	return a
}

// parse reads flags before, between and after the names; there must be from lo
// to hi names.
func (a *args) parse(list []string, lo, hi int, out io.Writer) error {
	for len(list) > 0 {
		if err := a.Parse(list); errors.Is(err, flag.ErrHelp) {
			return helpAsked{a, out}
		} else if err != nil {
			return a.explain(err)
		}
		if list = a.Args(); len(list) > 0 {
			a.names = append(a.names, list[0])
			list = list[1:]
		}
	}
	if n := len(a.names); n < lo || n > hi {
		return usageError{fmt.Sprintf("%s: %d names given; usage: lockstep %s", a.Name(), n, a.usage)}
	}
	return nil
}

// explain turns an error of package flag into one line with the nearest flag.
func (a *args) explain(err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "flag provided but not defined: -")
	if !unknown {
		return usageError{a.Name() + ": " + text}
	}
	var known []string
	a.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	hint := "; its flags are -" + strings.Join(known, ", -")
	if len(known) == 0 {
		hint = "; it has none"
	}
	if near := units.Nearest(name, known); near != "" {
		hint = " (did you mean -" + near + "?)"
	}
	return usageError{fmt.Sprintf("%s: unknown flag -%s%s", a.Name(), name, hint)}
}

func (a *args) help(out io.Writer) {
	fmt.Fprintf(out, "usage: lockstep %s\n", a.usage)
	a.SetOutput(out)
	a.PrintDefaults()
}

// aTime matches what time.ParseDuration reads unless it is too long.
const aTime = `^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// span is a flag for a time that is more than 0; def 0 means not given.
func (a *args) span(name string, def time.Duration, text string) *time.Duration {
	d := def
	a.Func(name, text, func(s string) (err error) {
		if d, err = time.ParseDuration(s); err != nil {
			if ok, _ := regexp.MatchString(aTime, s); ok {
				return fmt.Errorf("it is too long; at most %.0fh are counted", math.Floor(time.Duration(math.MaxInt64).Hours()))
			}
			return errors.New("a time is wanted, like 10s or 500ms")
		}
		if d <= 0 {
			return errors.New("it must be more than 0")
		}
		return nil
	})
	return &d
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
	a.words[name] = words
	a.Func(name, text, func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("it must be " + strings.Join(words, " or "))
		}
		*dst = s
		return nil
	})
}
