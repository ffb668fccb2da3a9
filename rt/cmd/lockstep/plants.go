package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"lockstep/model/plants"
	"lockstep/model/units"
)

func runPlants(list []string) error {
	a := newArgs("plants", "plants [NAME]")
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
	if len(a.names) == 0 {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, e := range plants.List() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Kind, e.About)
		}
		return w.Flush()
	}
	data, err := plants.Read(a.names[0])
	if err != nil {
		var names []string
		for _, e := range plants.List() {
			names = append(names, e.Name)
		}
		return fmt.Errorf("%w%s", err, units.Meant(a.names[0], names))
	}
	_, err = os.Stdout.Write(data)
	return err
}
