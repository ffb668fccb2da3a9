package plantfile_test

import (
	"strings"
	"testing"

	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
)

const tunablePlant = `plant: car
parameters:
  m_car: {value: 1500 kg, min: 800 kg, max: 3500 kg, tune: true}
  share: 0.5
  m_half: share*m_car
elements:
  car: {type: mass, m: m_half}
outputs: {v: {speed: car}}
`

func loadWith(text string, set ...string) (*network.Plant, error) {
	d, err := plantfile.Parse("car.yaml", []byte(text), library.Elements())
	if err != nil {
		return nil, err
	}
	var list []plantfile.Assignment
	for _, s := range set {
		a, err := plantfile.ParseAssignment(s)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	d.Assign(list)
	return d.Load()
}

func TestParametersThatDependOnASetOneFollowIt(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want [3]float64
	}{
		{nil, [3]float64{1500, 0.5, 750}},
		{[]string{"m_car=2t"}, [3]float64{2000, 0.5, 1000}},
		{[]string{"share=0.25", "m_car = 2000 kg"}, [3]float64{2000, 0.25, 500}},
		{[]string{"m_half=100 kg"}, [3]float64{1500, 0.5, 100}},
		{[]string{"m_half=m_car/3"}, [3]float64{1500, 0.5, 500}},
	} {
		p, err := loadWith(tunablePlant, c.set...)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if q := p.Parameters[i]; !(q.Value == want) {
				t.Errorf("set %v: %s is %g, want %g", c.set, q.Name, q.Value, want)
			}
		}
	}

	p, err := loadWith(tunablePlant)
	if err != nil {
		t.Fatal(err)
	}
	m, share := p.Parameters[0], p.Parameters[1]
	if !m.Tunable || m.Min != 800 || m.Max != 3500 || m.Unit != "kg" || share.Tunable {
		t.Errorf("parameters are %+v, %+v", m, share)
	}
}

func TestWrongParametersAreRefusedWithTheirPosition(t *testing.T) {
	for _, c := range []struct{ old, new, set, want string }{
		{"", "", "m_car=5t", `car.yaml:3:18: model: set m_car=5t: 5000 kg is outside 800 to 3500 kg`},
		{"", "", "m_car=2000", `car.yaml:3:18: model: set m_car=2000: 2000 needs a unit: 2000 kg?`},
		{"", "", "m_car=2 m", `unit m does not fit, kg is wanted`},
		{"", "", "m_car=NaN", `"NaN" is not a known parameter`},
		{"", "", "m_car=1e400 kg", `set m_car=1e400 kg:`},
		{"", "", "share=2 kg", `unit kg does not fit, 1 is wanted`},
		{"", "", "m_cra=2 t", `the plant has no parameter "m_cra" (did you mean m_car?)`},
		{"", "", "m_car", `"m_car" is not NAME=VALUE`},
		{"1500 kg", "15 kg", "", `car.yaml:3:18: model: parameter "m_car": 15 kg is outside 800 to 3500 kg`},
		{", max: 3500 kg", "", "", `parameter "m_car": tune needs min and max`},
		{"value: 1500 kg, ", "", "", `parameter "m_car": value is missing`},
		{"max: 3500 kg", "max: 3500 m", "", `unit m does not fit, kg is wanted`},
		{"max: 3500 kg", "max: 100 kg", "", `max 100 kg is below min 800 kg`},
		{"tune: true", "tune: yes", "", `tune`},
		{"tune: true", "tuned: true", "", `unknown key "tuned"`},
	} {
		text := tunablePlant
		if c.old != "" {
			text = strings.Replace(text, c.old, c.new, 1)
		}
		var set []string
		if c.set != "" {
			set = append(set, c.set)
		}
		if _, err := loadWith(text, set...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s, set %q: error %v, want %q", c.old, c.new, c.set, err, c.want)
		}
	}

	if _, err := loadWith(tunablePlant, "m_car=1t", "m_car=2t"); err == nil || !strings.Contains(err.Error(), "m_car is set twice") {
		t.Errorf("a parameter set twice: error %v", err)
	}
}

func TestLongAssignmentIsRefusedInAShortMessage(t *testing.T) {
	if _, err := plantfile.ParseAssignment("m=" + strings.Repeat("(", 50_000)); err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "has 50002 bytes") {
		t.Errorf("%.300v", err)
	}
}
