// Package plants owns the files that come with the command: plants, inputs for them, benches,
// scenarios, sweeps and databases. One text describes trains of any number of cars. The package
// does not read the files.
package plants

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"regexp"
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
	return nil, fmt.Errorf("plants: %q is not embedded; there are %s", name, strings.Join(Names(), ", "))
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
	dir, _ := files.ReadDir(".") // what is embedded can be read
	for _, f := range dir {
		data, _ := files.ReadFile(f.Name())
		list = append(list, entry(f.Name(), string(data)))
	}

	for _, cars := range listed {
		name := train{cars}.name()
		list = append(list, entry(name+".yaml", string(trainOf(name))))
	}

	kinds := []string{"plant", "inputs", "bench", "scenario", "sweep", "database"}
	slices.SortStableFunc(list, func(a, b Entry) int {
		return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
	return list
}

// Kind tells what a file is: a "bench", a "scenario", a "sweep", a file of "inputs", a "database"
// or else a "plant".
func Kind(file string, data []byte) string {
	switch {
	case path.Ext(file) == ".dbc":
		return "database"
	case path.Ext(file) == ".csv" || bytes.Contains(data, []byte("\ntime[s],")):
		return "inputs"
	}

	for _, kind := range []string{"bench", "scenario", "sweep"} {
		if bytes.HasPrefix(data, []byte(kind+":")) || bytes.Contains(data, []byte("\n"+kind+":")) {
			return kind
		}
	}

	return "plant"
}

// firstComment finds the first line that begins with # or, in a database, with the comment CM_.
var firstComment = regexp.MustCompile(`(?m)^(?:# |CM_ ")(.*?)[";]*$`)

func entry(file, text string) Entry {
	e := Entry{Name: strings.TrimSuffix(strings.TrimSuffix(file, ".yaml"), ".csv"), Kind: Kind(file, []byte(text))}
	if about := firstComment.FindStringSubmatch(text); about != nil {
		e.About = strings.TrimSpace(about[1])
	}
	return e
}
