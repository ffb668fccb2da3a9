package csvfile

import (
	"strings"
	"testing"
)

// The unit of a column is in the brackets at its end. A missing bracket is named with the column.
func TestHeaderOfAColumn(t *testing.T) {
	for _, c := range []struct{ text, name, unit, bad string }{
		{text: "w[rpm]", name: "w", unit: "rpm"},
		{text: "w", name: "w"},
		{text: "gear[1][rpm]", name: "gear[1]", unit: "rpm"},
		{text: "w[rpm] old", name: "w[rpm] old"},
		{text: "w[rpm", bad: `f.csv:1:9: plot: column "w[rpm": a bracket of the unit is missing: write w[rpm]`},
		{text: "wrpm]", bad: `f.csv:1:9: plot: column "wrpm]": a bracket of the unit is missing: write name[unit]`},
	} {
		var got Column
		err := Read("f.csv", strings.NewReader("time[s],"+c.text+"\n0,1\n"), "plot", func(i int, head Column) error {
			got = head
			return nil
		}, func(int, float64, string) error { return nil })
		switch {
		case c.bad != "" && (err == nil || err.Error() != c.bad):
			t.Errorf("%s: error %v, want %s", c.text, err, c.bad)
		case c.bad == "" && (err != nil || got != Column{c.name, c.unit}):
			t.Errorf("%s: column %+v, error %v", c.text, got, err)
		}
	}
}
