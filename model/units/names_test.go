package units

import "testing"

func TestNearestNameIsFoundIfItIsSimilar(t *testing.T) {
	known := []string{"run", "sim", "check", "clutch1.pressure", "clutch2.pressure"}
	for name, want := range map[string]string{
		"rum": "run", "Sim": "sim", "chek": "check", "clutch1.presure": "clutch1.pressure",
		"gearbox": "", "xyzzy": "", "x": "", "run": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", name, got, want)
		}
	}
}

func TestDistanceIgnoresCase(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"Flaw", "lawn", 2}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("distance from %q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
