package model

import (
	"os"
	"reflect"
	"testing"
)

func TestADraftThatIsLoadedTwiceIsThePlantOfItsFile(t *testing.T) {
	for _, name := range []string{"automatic4", "car-abs", "rail17"} {
		data, err := os.ReadFile("plants/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		once, err := Load(name, data, Elements())
		if err != nil {
			t.Fatal(err)
		}
		draft, err := Parse(name, data, Elements())
		if err != nil {
			t.Fatal(err)
		}
		want, err := Assemble(once)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			plant, err := draft.Load()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Assemble(plant); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: a plant of the draft is not that of the file (%v)", name, err)
			}
		}
	}
}
