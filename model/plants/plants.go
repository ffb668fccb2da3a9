// Package plants owns the files that are embedded in the command: plants, inputs for them, benches,
// scenarios, sweeps and databases. One template makes trains of any number of cars, and automatic-car is
// made from automatic4. It does not interpret the files.
package plants

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed *.yaml *.dbc *.csv
var files embed.FS

// Entry is one embedded file.
type Entry struct {
	Name  string // name for Read
	Kind  string // see Kind
	About string // the first line of the file, without its comment signs
}

// Read returns an embedded file; the extensions ".yaml" and ".csv" may be left out. "train1" to
// "train40" are trains of 1 to 40 cars.
func Read(name string) ([]byte, error) {
	for _, try := range []string{name, name + ".yaml", name + ".csv"} {
		if data, err := files.ReadFile(try); err == nil {
			return data, nil
		}
	}

	if data := madeOf(strings.TrimSuffix(name, ".yaml")); data != nil {
		return data, nil
	}
	return nil, fmt.Errorf("plants: %q is not embedded; there are %s", name, strings.Join(Names(), ", "))
}

// madeOf returns a file that is made from another one; nil for another name.
func madeOf(name string) []byte {
	if data := carOf(name); data != nil {
		return data
	}
	return trainOf(name)
}

// Names lists the names of the embedded files, in the order of List.
func Names() []string {
	var names []string
	for _, e := range List() {
		names = append(names, e.Name)
	}
	return names
}

// List returns every embedded file: plants, then inputs, benches, scenarios, sweeps and databases.
func List() []Entry {
	var list []Entry
	dir, _ := files.ReadDir(".") // embedded files can always be read
	for _, f := range dir {
		data, _ := files.ReadFile(f.Name())
		list = append(list, entry(f.Name(), string(data)))
	}

	made := []string{carName}
	for _, cars := range listed {
		made = append(made, train{cars}.name())
	}
	for _, name := range made {
		list = append(list, entry(name+".yaml", string(madeOf(name))))
	}

	kinds := []string{"plant", "inputs", "bench", "scenario", "sweep", "diagnosis", "database"}
	slices.SortStableFunc(list, func(a, b Entry) int {
		return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
	return list
}

// Kind returns the kind of a text: "plant", "inputs", "bench", "scenario", "sweep", "diagnosis" or "database"; ""
// for other texts. A file whose name key is missing has the kind of its other keys.
func Kind(file string, data []byte) string {
	switch {
	case path.Ext(file) == ".dbc" || database.Match(data):
		return "database"
	case path.Ext(file) == ".csv" || inputs.Match(data):
		return "inputs"
	}

	for _, k := range topKeys() {
		if k.form.Match(data) {
			return k.kind
		}
	}

	return ""
}

// Forms of a line of a database and of the header of inputs.
var (
	database = regexp.MustCompile(`(?m)^(VERSION\s*"|NS_\s*:|BS_\s*:|BU_\s*:|BO_ [0-9]+ )`)
	inputs   = regexp.MustCompile(`^(#[^\n]*\n|\s*\n)*"?time(\[|"?\s*[,;])`)
)

// topKey is the form of a line of a file of a kind.
type topKey struct {
	form *regexp.Regexp
	kind string
}

// topKeys holds keys at the top of a file in the order in which they decide: a sweep may have a key
// bench, plant or scenario, and a bench has a key plant. A target, which locks its memory, does not call it.
var topKeys = sync.OnceValue(func() []topKey {
	return []topKey{
		{lineWith("sweep|results"), "sweep"},
		{lineWith("bench|buses|period|overrun"), "bench"},
		{lineWith("scenario|stimuli|faults|expect"), "scenario"},
		{lineWith("plant|elements"), "plant"},
		{lineWith("uds|odx|j1939"), "diagnosis"},
	}
})

// lineWith returns the form of a line that begins with one of the keys.
func lineWith(keys string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(\{\s*)?["']?(` + keys + `)["']?\s*:(\s|$)`)
}

// firstComment matches the first line that begins with # or, in a database, with the comment CM_.
var firstComment = regexp.MustCompile(`(?m)^(?:# |CM_ ")(.*?)[";]*$`)

func entry(file, text string) Entry {
	e := Entry{Name: strings.TrimSuffix(strings.TrimSuffix(file, ".yaml"), ".csv"), Kind: Kind(file, []byte(text))}
	if about := firstComment.FindStringSubmatch(text); about != nil {
		e.About = strings.TrimSpace(about[1])
	}
	return e
}
