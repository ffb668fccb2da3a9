package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/io/record"
	"lockstep/rt/host"
	"lockstep/rt/virtual"
)

const (
	replayUsage = "replay RECORD [-out FILE.csv]"
	exportUsage = "export RECORD -o FILE [-format candump|asc|blf|mdf4|csv]"
)

func runReplay(list []string) error {
	a := newArgs("replay", replayUsage)
	out := a.String("out", "", "write every port of every tick to this CSV file; - is the standard output")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	same, err := virtual.Replay{Record: a.names[0], Out: *out}.Run()
	if err != nil {
		return err
	}
	if *out == "-" {
		fmt.Fprintln(os.Stderr, same)
		return nil
	}
	fmt.Println(same)
	return nil
}

func runExport(list []string) error {
	a := newArgs("export", exportUsage)
	file := a.String("o", "", "the file to write")
	format := a.String("format", "", "candump, asc, blf, mdf4 or csv; without it the file's name tells: .log, .asc, .blf, .mf4, .csv")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if *file == "" {
		return usageError{"export: -o is missing; usage: lockstep " + exportUsage}
	}
	if *format == "" {
		*format = map[string]string{".log": "candump", ".asc": "asc", ".blf": "blf", ".mf4": "mdf4", ".csv": "csv"}[strings.ToLower(filepath.Ext(*file))]
	}
	if !slices.Contains(record.Formats(), *format) {
		return usageError{fmt.Sprintf("export: what %q is to be cannot be told: use -format %s", *file, strings.Join(record.Formats(), ", "))}
	}
	r, err := record.Open(a.names[0])
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.Create(*file)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer f.Close()
	if err := record.Export(r, *format, f); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	if torn := r.Torn(); torn != "" {
		fmt.Fprintf(os.Stderr, "lockstep: %s: %s\n", a.names[0], torn)
	}
	return f.Close()
}
