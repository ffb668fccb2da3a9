package model_test

import (
	"lockstep/model"
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
		once, err := model.Load(name, data, model.Elements())
		if err != nil {
			t.Fatal(err)
		}
		draft, err := model.Parse(name, data, model.Elements())
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.Assemble(once)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			plant, err := draft.Load()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := model.Assemble(plant); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: a plant of the draft is not that of the file (%v)", name, err)
			}
		}
	}
}
