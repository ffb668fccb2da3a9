package ecu

import (
	"bytes"
	"strings"
	"testing"
)

func TestDefaultsAreWithinTheirRangesAndReadAsWritten(t *testing.T) {
	for _, name := range Names() {
		for _, p := range Parameters(name) {
			if !(*p.Value >= p.Least && *p.Value <= p.Most) {
				t.Errorf("%s: the default of %s, %g, is not from %g to %g", name, p.Name, *p.Value, p.Least, p.Most)
			}
			if err := Check(name, []Setting{{p.Name, *p.Value}}); err != nil {
				t.Error(err)
			}
			if s, err := ParseSetting(Setting{p.Name, *p.Value}.String()); err != nil || s != (Setting{p.Name, *p.Value}) {
				t.Errorf("%s=%g is read as %v (%v)", p.Name, *p.Value, s, err)
			}
		}
	}
}

func TestSettingReachesItsController(t *testing.T) {
	for _, name := range []string{"abs", "wsp", "truck"} {
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
		text string
		want string
	}{
		{"slipp=0.1", `abs has no parameter "slipp"; it has slip (0.12), margin (0.05 m/s)`},
		{"slip=2", "slip of abs: 2 is not from 0 to 1"},
		{"margin=NaN", "margin of abs: NaN is not from 0 to 10 m/s"},
		{"slip=0.1 slip=0.2", "slip is set twice"},
		{"slip", `"slip" is not NAME=VALUE`},
		{"slip=0.1m", "with a bare number"},
	} {
		var list []Setting
		var err error
		for word := range strings.FieldsSeq(c.text) {
			var s Setting
			if s, err = ParseSetting(word); err == nil {
				list = append(list, s)
			}
		}
		if err == nil {
			_, err = NewStepped("abs", &bytes.Buffer{}, &bytes.Buffer{}, list...)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	if err := Check("powershift", []Setting{{"slip", 1}}); err == nil || !strings.Contains(err.Error(), "powershift has no parameters") {
		t.Error(err)
	}
}
