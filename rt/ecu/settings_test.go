package ecu

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"lockstep/rt/ecu/unit/unittest"
)

func TestDefaultsAreWithinTheirRanges(t *testing.T) {
	for _, name := range Names() {
		for _, p := range Parameters(name) {
			if !(*p.Value >= p.Least && *p.Value <= p.Most) {
				t.Errorf("%s: the default of %s, %g, is not from %g to %g", name, p.Name, *p.Value, p.Least, p.Most)
			}
			if err := Check(name, []Setting{{Name: p.Name, Value: *p.Value}}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSettingReachesItsController(t *testing.T) {
	for _, name := range []string{"abs", "wsp", "truck", "amt12", "hp8"} {
		for _, p := range Parameters(name) {
			want := p.Least + 0.437*(p.Most-p.Least) // no default
			u := unittest.New(t, types(), name, nil, &bytes.Buffer{}, Setting{Name: p.Name, Value: want})
			for _, q := range u.Law.Parameters() {
				if same := *q.Value == want; same != (q.Name == p.Name) {
					t.Errorf("%s: %s=%g makes %s %g", name, p.Name, want, q.Name, *q.Value)
				}
			}
		}
	}
}

func TestUnknownUnitIsRefused(t *testing.T) {
	if _, err := NewStepped("gearbox", nil, io.Discard); err == nil || !strings.Contains(err.Error(), `no control unit "gearbox"; there are: powershift`) {
		t.Errorf("an unknown unit: %v", err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		list []Setting
		want string
	}{
		{[]Setting{{Name: "slipp", Value: 0.1}}, `abs has no parameter "slipp"; it has slip (0.12), margin (0.05 m/s)`},
		{[]Setting{{Name: "slip", Value: 2}}, "slip of abs: 2 is not from 0 to 1"},
		{[]Setting{{Name: "margin", Value: math.NaN()}}, "margin of abs: NaN m/s is not from 0 to 10 m/s"},
		{[]Setting{{Name: "slip", Value: 0.1}, {Name: "slip", Value: 0.2}}, "slip is set twice"},
	} {
		if err := Check("abs", c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.list, err, c.want)
		}
	}
	if err := Check("powershift", []Setting{{Name: "slip", Value: 1}}); err == nil || !strings.Contains(err.Error(), "powershift has no parameters") {
		t.Error(err)
	}
}
