package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"lockstep/codegen"
	"lockstep/deploy"
	hiltest "lockstep/hil_test"
	"lockstep/io/wire"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/diagnosis"
	"lockstep/rt/guide"
	"lockstep/rt/host"
	"lockstep/rt/live"
	"lockstep/rt/metrics"
	"lockstep/rt/network"
	"lockstep/rt/scenario"
	"lockstep/rt/soak"
	"lockstep/rt/sweep"
)

// guides returns all guides, in the order in which `lockstep help` searches them for a topic.
func guides() []guide.Guide {
	return []guide.Guide{
		{Name: "plant", Source: model.Guide},
		{Name: "bench", Source: bench.Guide},
		{Name: "wire", Source: wire.Guide},
		{Name: "scenario", Source: scenario.Guide},
		{Name: "network", Source: network.Guide},
		{Name: "control", Source: control.Guide},
		{Name: "diagnosis", Source: diagnosis.Guide},
		{Name: "live", Source: live.Guide},
		{Name: "fleet", Source: metrics.Guide},
		{Name: "python", Source: deploy.Python},
		{Name: "sweep", Source: sweep.Guide},
		{Name: "generate", Source: codegen.Guide},
		{Name: "install", Source: deploy.Install},
		{Name: "host", Source: deploy.Host},
		{Name: "certificate", Source: deploy.Certificate},
		{Name: "failures", Source: deploy.Failures},
		{Name: "soak", Source: soak.Guide},
		{Name: "method", Source: kernel.Method},
		{Name: "labs", Source: hiltest.Labs},
	}
}

// guideTexts returns the texts of all guides, 0.5 MB. They are never written.
func guideTexts() (list [][]byte) {
	for _, g := range guides() {
		list = append(list, g.Source)
	}
	return list
}

func guideNames() string {
	var names []string
	for _, g := range guides() {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

// printGuide prints the guide or section called topic in lines that fit the terminal, or as HTML.
// It reports whether there is one.
func printGuide(topic string, html bool) (found bool, err error) {
	g, found := guide.Find(guides(), topic)
	switch {
	case !found:
		return false, nil
	case html:
		return true, g.HTML(plainOut)
	}
	return true, g.Text(plainOut, min(cmp.Or(host.TerminalWidth(os.Stdout), 80), 100))
}

// printManual prints the manual page of a guide.
func printManual(name, date string) error {
	for _, g := range guides() {
		if g.Name == name {
			return g.Manual(plainOut, strings.Fields(host.Version())[0], date)
		}
	}
	return usageError{fmt.Sprintf("man: no guide %q; the guides are %s", name, guideNames())}
}
