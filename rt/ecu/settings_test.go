package ecu

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestDefaultsAreWithinTheirRanges(t *testing.T) {
	for _, name := range Names() {
		for _, p := range Parameters(name) {
			if !(*p.Value >= p.Least && *p.Value <= p.Most) {
				t.Errorf("%s: the default of %s, %g, is not from %g to %g", name, p.Name, *p.Value, p.Least, p.Most)
			}
			if err := Check(name, []Setting{{p.Name, *p.Value}}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSettingReachesItsController(t *testing.T) {
	for _, name := range []string{"abs", "wsp", "truck", "amt12", "hp8"} {
		for _, p := range Parameters(name) {
			want := p.Least + 0.437*(p.Most-p.Least) // no default
			u, err := NewStepped(name, nil, &bytes.Buffer{}, Setting{p.Name, want})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range u.unit.parameters() {
				if same := *q.Value == want; same != (q.Name == p.Name) {
					t.Errorf("%s: %s=%g makes %s %g", name, p.Name, want, q.Name, *q.Value)
				}
			}
		}
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		list []Setting
		want string
	}{
		{[]Setting{{"slipp", 0.1}}, `abs has no parameter "slipp"; it has slip (0.12), margin (0.05 m/s)`},
		{[]Setting{{"slip", 2}}, "slip of abs: 2 is not from 0 to 1"},
		{[]Setting{{"margin", math.NaN()}}, "margin of abs: NaN m/s is not from 0 to 10 m/s"},
		{[]Setting{{"slip", 0.1}, {"slip", 0.2}}, "slip is set twice"},
	} {
		if err := Check("abs", c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.list, err, c.want)
		}
	}
	if err := Check("powershift", []Setting{{"slip", 1}}); err == nil || !strings.Contains(err.Error(), "powershift has no parameters") {
		t.Error(err)
	}
}
