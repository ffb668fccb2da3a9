package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lockstep/model/plants"
	"lockstep/rt/control"
	"lockstep/rt/ecu"
)

//go:embed completion
var shells embed.FS

// completeCommand is the command that the shells' scripts ask: it gets the words of
// the line behind `lockstep`, the last of them unfinished, and prints a line "word",
// or "word<tab>about", for each way to finish it, and ":files" where a file will do.
const completeCommand = "complete"

func runCompletion(list []string) error {
	a := newArgs("completion", "completion bash|zsh|fish")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	text, err := shells.ReadFile("completion/lockstep." + filepath.Base(a.names[0]))
	if err != nil {
		return usageError{fmt.Sprintf("completion: no shell %q: bash, zsh or fish", a.names[0])}
	}
	_, err = os.Stdout.Write(text)
	return err
}

// runComplete prints how the last of words can go on. What it does not know it says
// nothing of: it stands behind somebody's Tab key.
func runComplete(words []string) error {
	if len(words) == 0 {
		return nil
	}
	last, done := words[len(words)-1], map[string]bool{}
	for _, p := range complete(words) {
		if (p.word == files || strings.HasPrefix(p.word, last)) && !done[p.word] {
			fmt.Println(strings.TrimSuffix(p.word+"\t"+p.about, "\t"))
			done[p.word] = true
		}
	}
	return nil
}

// files stands for the names of files.
const files = ":files"

// proposal is a word that may stand at a place.
type proposal struct{ word, about string }

func complete(words []string) (list []proposal) {
	n := len(words) - 1
	if n == 0 {
		return commandNames()
	}
	c, err := find(words[0])
	if err != nil {
		return nil
	}
	a, err := c.flags()
	if err != nil {
		return nil
	}
	if name, ok := a.wants(words[n-1]); ok && n > 1 {
		return a.values(name)
	}
	if strings.HasPrefix(words[n], "-") {
		return a.options()
	}
	place := 0
	for i := 1; i < n; i++ {
		if _, ok := a.wants(words[i]); ok {
			i++ // its value
		} else if !strings.HasPrefix(words[i], "-") {
			place++
		}
	}
	return c.names(place)
}

func commandNames() (list []proposal) {
	for _, c := range commands() {
		list = append(list, proposal{c.name, c.about})
	}
	return list
}

// options are the flags of a command.
func (a *args) options() (list []proposal) {
	for _, o := range a.list() {
		list = append(list, proposal{"-" + o.Name, o.About})
	}
	return list
}

// wants tells whether a word is a flag whose value is the next word.
func (a *args) wants(word string) (name string, ok bool) {
	name = strings.TrimLeft(word, "-")
	return name, name != word && a.Lookup(name) != nil && a.value(name) != ""
}

// values are those that a flag can have.
func (a *args) values(name string) []proposal {
	switch name {
	case "bus", "unitbus":
		return interfaces()
	case "scenario":
		return embedded("scenario")
	}
	return meaning(a.value(name))
}

// names are what may stand at the place of a name, 0 for the first, as the usage
// writes it: "sim PLANT|BENCH [-for 25s]", "ctl BENCH status | faults | ...".
func (c command) names(place int) []proposal {
	usage, _, _ := strings.Cut(c.usage+" ", " -")
	usage, _, _ = strings.Cut(usage, " [-")
	part := strings.Fields(usage)[1:]
	switch {
	case c.name == "help" && place == 0:
		return commandNames()
	case c.name == "ecu" && place == 0:
		return literals(ecu.Names())
	case c.name == "plants" && place == 0:
		return embedded("")
	case len(part) == 0:
		return nil
	case place == 0 || strings.HasSuffix(part[len(part)-1], "..."):
		return meaning(strings.Trim(part[0], "[]"))
	case place == 1 && len(part) > 1:
		var list []string
		for _, way := range strings.Split(strings.Join(part[1:], " "), " | ") {
			list = append(list, strings.Fields(way)[0])
		}
		return literals(list)
	}
	return nil
}

// meaning is what a word of a usage stands for: alternatives with a bar between them,
// small letters for themselves.
func meaning(text string) (list []proposal) {
	for _, word := range strings.Split(strings.TrimRight(text, "."), "|") {
		switch base, _, _ := strings.Cut(word, "."); {
		case base == "BENCH" && !strings.Contains(text, "PROCESS"):
			list = append(list, embedded("bench")...)
		case base == "PROCESS": // or BENCH: one that runs
			list = append(append(list, running()...), proposal{word: files})
		case base == "PLANT":
			list = append(list, embedded("plant")...)
		case base == "SWEEP":
			list = append(list, embedded("sweep")...)
		case base == "FILE" || base == "DIR" || base == "RECORD" || base == "OLD" || base == "NEW" || strings.Contains(word, ".csv"):
			list = append(list, proposal{word: files})
		case strings.ToLower(word) == word && !strings.ContainsAny(word[:1], "0123456789"):
			list = append(list, proposal{word: word})
		}
	}
	return list
}

// embedded are the embedded files of a kind, "" for all, or a file of one's own.
func embedded(kind string) (list []proposal) {
	for _, e := range plants.List() {
		if kind == "" || e.Kind == kind {
			list = append(list, proposal{e.Name, e.About})
		}
	}
	if kind != "" {
		list = append(list, proposal{word: files})
	}
	return list
}

// interfaces are the CAN interfaces of this host: type 280 is ARPHRD_CAN.
func interfaces() (list []proposal) {
	paths, _ := filepath.Glob("/sys/class/net/*/type")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == "280" {
			list = append(list, proposal{word: filepath.Base(filepath.Dir(path))})
		}
	}
	return list
}

// running are the benches that run, by name.
func running() (list []proposal) {
	for _, r := range control.List() {
		list = append(list, proposal{r.Bench, "runs"})
	}
	return list
}

func literals(words []string) (list []proposal) {
	for _, w := range words {
		list = append(list, proposal{word: w})
	}
	return list
}
