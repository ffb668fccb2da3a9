package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"lockstep/rt/host"
)

//go:embed man.tmpl
var manual string

// page is what the manual page is made of.
type page struct {
	Version  string
	Date     string // of SOURCE_DATE_EPOCH, reproducible-builds.org; "" none
	Commands []section
}

// section is a command of the page.
type section struct {
	Name, Usage, About string
	Flags              []option
}

// option is a flag: -name VALUE, and what it does, as in the command's help.
type option struct{ Name, Value, About string }

func runMan(list []string) error {
	a := newArgs("man", "man")
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	p := page{Version: strings.Fields(host.Version())[0]}
	if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		p.Date = time.Unix(s, 0).UTC().Format(time.DateOnly)
	}
	for _, c := range commands() {
		s := section{Name: c.name, Usage: c.usage, About: c.about}
		flags, err := c.flags()
		if err != nil {
			return err
		}
		s.Flags = flags.list()
		p.Commands = append(p.Commands, s)
	}
	t, err := template.New("man").Funcs(template.FuncMap{"roff": roff}).Parse(manual)
	if err != nil {
		return err
	}
	return t.Execute(os.Stdout, p)
}

// list is every flag, by name.
func (a *args) list() (list []option) {
	a.VisitAll(func(f *flag.Flag) {
		_, about := flag.UnquoteUsage(f)
		if d := f.DefValue; d != "" && d != "0" && d != "false" {
			about += fmt.Sprintf(" (default %s)", d)
		}
		list = append(list, option{f.Name, a.value(f.Name), about})
	})
	return list
}

// value is what follows a flag, as the usage writes it: go|c of "[-lang go|c]"; "" where
// nothing does.
func (a *args) value(name string) string {
	if words := a.words[name]; words != nil {
		return strings.Join(words, "|")
	}
	if found := regexp.MustCompile(`-` + regexp.QuoteMeta(name) + ` ([^] ]+)`).FindStringSubmatch(a.usage); found != nil {
		return found[1]
	}
	if b, is := a.Lookup(name).Value.(interface{ IsBoolFlag() bool }); is && b.IsBoolFlag() {
		return ""
	}
	value, _ := flag.UnquoteUsage(a.Lookup(name))
	return value
}

// flags are those of a command, with its usage.
func (c command) flags() (*args, error) {
	var asked helpAsked
	if err := c.run([]string{"-h"}); !errors.As(err, &asked) {
		return nil, fmt.Errorf("%s: it has no help: %w", c.name, err)
	}
	return asked.args, nil
}

// roff is text as troff prints it unchanged, hyphens that can be copied included.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "\n", " ", "µ", `\[u00B5]`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
