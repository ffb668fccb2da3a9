// Package plants owns the files that come with the command: plants, inputs for them, benches,
// scenarios, sweeps and databases. Its trains are one text for any number of cars. It does not
// read them.
package plants

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml *.dbc *.csv
var files embed.FS

// Entry is one embedded file.
type Entry struct {
	Name  string // as Read takes it
	Kind  string // "plant", "inputs", "bench", "scenario", "sweep" or "database"
	About string // the first line of the file, without its comment signs
}

// Read returns a file: "powershift" and "powershift.yaml" are the same one, and so
// for inputs without their ".csv". "train1" to "train40" are trains of so many cars.
func Read(name string) ([]byte, error) {
	for _, try := range []string{name, name + ".yaml", name + ".csv"} {
		if data, err := files.ReadFile(try); err == nil {
			return data, nil
		}
	}
	if data := trainOf(strings.TrimSuffix(name, ".yaml")); data != nil {
		return data, nil
	}
	var names []string
	for _, e := range List() {
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("plants: %q is not embedded; there are %s", name, strings.Join(names, ", "))
}

// List returns every embedded file: plants, then inputs, benches, scenarios, sweeps and databases.
func List() []Entry {
	dir, err := files.ReadDir(".")
	if err != nil {
		panic("plants: the embedded directory cannot be read")
	}
	kinds := []string{"plant", "inputs", "bench", "scenario", "sweep", "database"}
	var list []Entry
	for _, f := range dir {
		data, err := files.ReadFile(f.Name())
		if err != nil {
			panic("plants: an embedded file cannot be read")
		}
		list = append(list, entry(f.Name(), string(data)))
	}
	for _, cars := range listed {
		t := train{cars}
		list = append(list, entry(t.name()+".yaml", string(trainOf(t.name()))))
	}
	slices.SortStableFunc(list, func(a, b Entry) int {
		return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
	return list
}

// entry tells the kind of a file from its ending and its first key.
func entry(file, text string) Entry {
	e := Entry{Name: strings.TrimSuffix(strings.TrimSuffix(file, ".yaml"), ".csv"), Kind: "plant"}
	switch {
	case path.Ext(file) == ".csv":
		e.Kind = "inputs"
	case path.Ext(file) == ".dbc":
		e.Kind = "database"
	case strings.Contains("\n"+text, "\nbench:"):
		e.Kind = "bench"
	case strings.Contains("\n"+text, "\nscenario:"):
		e.Kind = "scenario"
	case strings.Contains("\n"+text, "\nsweep:"):
		e.Kind = "sweep"
	}
	for line := range strings.Lines(text) {
		if about, ok := strings.CutPrefix(line, "# "); ok {
			e.About = strings.TrimSpace(about)
			break
		}
		if about, ok := strings.CutPrefix(line, "CM_ \""); ok {
			e.About = strings.TrimRight(strings.TrimSpace(about), "\";")
			break
		}
	}
	return e
}
