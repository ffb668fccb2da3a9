package specialise

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// A quiet tick of a plant with few lock sets has a function for each of them. It multiplies by no matrix
// element that is 0 or 1, and holds the state at the end of the tick in variables.
func TestEachLockSetHasItsQuietTick(t *testing.T) {
	tables, err := kernel.Prepare(rig.Assemble(t, "coupled-clutches"), kernel.Options{Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Generate(Plant{Tables: tables, Package: "coupled"})
	if err != nil {
		t.Fatal(err)
	}
	product := regexp.MustCompile(`\w ?\* ?\w`)
	for set := range tables.Modes {
		_, text, found := strings.Cut(string(files["tick.go"]), fmt.Sprintf("func (k *Kernel) moveInLockSet%d(", set))
		text, _, _ = strings.Cut(text, "\n}\n")
		elements := 0
		for _, v := range tables.Modes[set].Phi {
			if v != 0 && v != 1 {
				elements++
			}
		}
		rows, _, _ := strings.Cut(text, "math.Abs")
		if products := len(product.FindAllString(rows, -1)); !found || products != elements {
			t.Errorf("lock set %d: %d products, want %d", set, products, elements)
		}
		for _, array := range []string{"k.x1[", "k.slip1[", "modes"} {
			if strings.Contains(text, array) {
				t.Errorf("lock set %d uses %s", set, array)
			}
		}
	}
}
