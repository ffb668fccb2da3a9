package plants_test

import (
	"strings"
	"testing"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

func TestEveryPlantLoadsAndAssembles(t *testing.T) {
	n := 0
	for _, e := range plants.List() {
		if e.Kind != "plant" {
			continue
		}
		n++
		data, err := plants.Read(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plantfile.Load(e.Name+".yaml", data, library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != e.Name || p.About == "" {
			t.Errorf("%s: plant is named %q, about %q", e.Name, p.Name, p.About)
		}
		if _, err := assemble.System(p); err != nil {
			t.Error(err)
		}
	}
	if n == 0 {
		t.Error("no plant is embedded")
	}
}

func TestListNamesKindAndContent(t *testing.T) {
	kinds := map[string]string{}
	for _, e := range plants.List() {
		kinds[e.Name] = e.Kind
		if e.About == "" || strings.ContainsAny(e.About, "\n\"") {
			t.Errorf("%s: about is %q", e.Name, e.About)
		}
		if _, err := plants.Read(e.Name); err != nil {
			t.Error(err)
		}
	}
	for name, kind := range map[string]string{
		"powershift": "plant", "automatic4": "plant", "hybrid": "plant", "coupled-clutches": "plant", "truck": "plant", "powershift-bench": "bench", "powershift.dbc": "database",
	} {
		if kinds[name] != kind {
			t.Errorf("%s is a %q, want %q", name, kinds[name], kind)
		}
	}
}

func TestReadOfAnUnknownNameListsTheEmbeddedFiles(t *testing.T) {
	_, err := plants.Read("nothing")
	if err == nil || !strings.Contains(err.Error(), "powershift") {
		t.Errorf("error %v does not list the embedded files", err)
	}
}
