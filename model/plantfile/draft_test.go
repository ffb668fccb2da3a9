package plantfile_test

import (
	"os"
	"reflect"
	"testing"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

func TestDraftLoadedTwiceIsThePlantOfItsFile(t *testing.T) {
	for _, name := range []string{"automatic4", "car-abs", "rail17"} {
		data, err := os.ReadFile("../plants/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		once, err := plantfile.Load(name, data, library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		draft, err := plantfile.Parse(name, data, library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		want, err := assemble.System(once)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			plant, err := draft.Load()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := assemble.System(plant); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: a plant of the draft is not that of the file (%v)", name, err)
			}
		}
	}
}
