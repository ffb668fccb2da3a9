package main

import (
	"embed"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"lockstep/io/can"
	"lockstep/model/plants"
	"lockstep/rt/control"
	"lockstep/rt/guide"
	"lockstep/rt/host"
)

//go:embed man.tmpl
var manual string

// manualPage is the data of the template man.tmpl.
type manualPage struct {
	Version  string
	Date     string // day of SOURCE_DATE_EPOCH (reproducible-builds.org); "": not set
	Commands []section
}

// section describes a command on the manual page.
type section struct {
	Name, Usage, About string
	Flags              []option
}

func defineMan(a *args) func() error {
	return func() error {
		p := manualPage{Version: strings.Fields(host.Version())[0]}
		if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
			p.Date = time.Unix(s, 0).UTC().Format(time.DateOnly)
		}
		if len(a.operands) > 0 {
			return printManual(a.operands[0], p.Date)
		}
		for _, c := range commands() {
			a := c.args()
			p.Commands = append(p.Commands, section{c.name, a.usage(), c.about, a.options})
		}

		t, err := template.New("man").Funcs(template.FuncMap{"roff": guide.Roff}).Parse(manual)
		if err != nil {
			return err
		}

		return t.Execute(plainOut, p)
	}
}

//go:embed completion
var shells embed.FS

// completeCommand is the hidden command that the completion scripts call. Its arguments are the
// words of the command line after `lockstep`; the last one may be unfinished. It prints a line
// "word" or "word<tab>about" for each completion, and ":files" where a file name is possible.
const completeCommand = "complete"

func defineCompletion(a *args) func() error {
	return func() error {
		text, err := shells.ReadFile("completion/lockstep." + filepath.Base(a.operands[0]))
		if err != nil {
			return usageError{fmt.Sprintf("completion: unknown shell %q; use bash, zsh or fish", a.operands[0])}
		}
		_, err = plainOut.Write(text)

		return err
	}
}

// proposal is a possible word of a command line with its description.
type proposal struct{ word, about string }

// files is the proposal of any file name.
const files = ":files"

// printCompletions prints the completions of the last word. For unknown words it prints nothing,
// because its output goes to the user's command line.
func printCompletions(words []string) {
	if len(words) == 0 {
		return
	}
	last, done := words[len(words)-1], map[string]bool{}
	for _, p := range complete(words[:len(words)-1], last) {
		if (p.word == files || strings.HasPrefix(p.word, last)) && !done[p.word] {
			fmt.Fprintln(plainOut, strings.TrimSuffix(p.word+"\t"+p.about, "\t"))
			done[p.word] = true
		}
	}
}

// complete returns proposals for the word after words; last is its beginning.
func complete(words []string, last string) (list []proposal) {
	if len(words) == 0 {
		return proposals("COMMAND")
	}
	c, err := find(words[0])
	if err != nil {
		return nil
	}
	a, value, position := c.args(), "", 0
	for _, word := range words[1:] {
		switch name := strings.TrimLeft(word, "-"); {
		case value != "": // word is the value of the flag before
			value = ""
		case name == word:
			position++
		default:
			value = a.value(name)
		}
	}

	if value != "" {
		return proposals(value)
	}
	if strings.HasPrefix(last, "-") {
		for _, o := range a.options {
			list = append(list, proposal{"-" + o.Name, o.About})
		}
		return list
	}

	if n := len(c.operands); n > 0 && strings.HasSuffix(c.operands[n-1], "...") {
		position = min(position, n-1)
	}
	if position >= len(c.operands) {
		return nil
	}

	return proposals(c.operands[position])
}

// value returns the value of a flag as the usage shows it; "" for a flag without a value.
func (a *args) value(name string) string {
	for _, o := range a.options {
		if o.Name == name {
			return o.Value
		}
	}

	return ""
}

// proposals returns the words for an argument or value of the usage: alternatives separated by
// bars. Capitals name a kind of word, small letters are the word itself. Where blanks surround the
// bars, only the first word of an alternative counts.
func proposals(shown string) (list []proposal) {
	if shown = strings.Trim(shown, "[]."); shown == "BENCH|PROCESS" {
		return append(running(), proposal{word: files})
	}
	bar := "|"
	if strings.Contains(shown, " | ") {
		bar = " | "
	}
	for alternative := range strings.SplitSeq(shown, bar) {
		word, _, _ := strings.Cut(alternative, " ")
		switch kind, _, _ := strings.Cut(word, "."); kind {
		case "BENCH", "PLANT", "SWEEP", "SCENARIO":
			list = append(embedded(list, strings.ToLower(kind)), proposal{word: files})
		case "NAME":
			list = embedded(list, "")
		case "COMMAND":
			for _, c := range commands() {
				list = append(list, proposal{c.name, c.about})
			}
		case "GUIDE", "TOPIC":
			for _, g := range guides() {
				list = append(list, proposal{g.Name, g.Title()})
			}
		case "INTERFACE":
			for _, name := range can.Interfaces("/sys/class/net") {
				list = append(list, proposal{word: name})
			}
		case "FILE", "DIR", "RECORD", "OLD", "NEW":
			list = append(list, proposal{word: files})
		default:
			if strings.ToLower(word) == word && !strings.ContainsAny(word[:1], "0123456789") {
				list = append(list, proposal{word: word})
			}
		}
	}

	return list
}

// embedded appends the embedded files of a kind to list; "" is every kind.
func embedded(list []proposal, kind string) []proposal {
	for _, e := range plants.List() {
		if kind == "" || e.Kind == kind {
			list = append(list, proposal{e.Name, e.About})
		}
	}

	return list
}

// running returns the names of the running benches.
func running() (list []proposal) {
	for _, r := range control.List() {
		list = append(list, proposal{r.Bench, "runs"})
	}
	return list
}
