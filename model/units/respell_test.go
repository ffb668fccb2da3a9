package units

import (
	"strings"
	"testing"
)

// A unit in another spelling is proposed as Parse reads it. Where the meaning is not clear nothing is
// proposed.
func TestAnUnknownSpellingOfAUnitGetsItsRightOne(t *testing.T) {
	for right, list := range map[string]string{
		"kg.m2":    "kgm2, kg*m^2, kg m2, kg-m2, kgm^2, kg*m**2, kg m^2, Kg.m2, KG.m2, KGM2, [kg.m2], kg × m2, kilogram meter squared",
		"kg.m²":    "kg*m², kgm²",
		"kg.mm2":   "kgmm2, kg*mm2, kg mm2",
		"N.m":      "N-m, N*m, N m, NM, nm, N_m, Newtonmeter, newton meter, Unit_NewtoMeter, N . m",
		"kN.m":     "kNm, kN*m, KN.m, kN m",
		"N.m.s":    "Nms, N*m*s, N m s",
		"N.mm":     "Nmm, N*mm",
		"N.m/rad":  "N*m/rad, N m/rad, N*m / rad, N m per rad, N.m/Rad",
		"Nm/rad":   "Nm / rad, Nm/RAD, Nm per rad",
		"N.s/m":    "Ns/m, N*s/m, N s/m, N s per m",
		"rpm":      "RPM, Rpm, min-1, r/min, 1 / min, U / min, UPM, /min, rev / min, Unit_MinutInver",
		"rad/s":    "rad/sec, Rad/s, rad per second, radians/second, rad / s",
		"rad.s^-1": "rad s-1, rad*s^-1, rad s^-1",
		"m.s^-2":   "m s-2, m*s^-2",
		"m/s2":     "Unit_MeterPerSeconSquar, m / s2, meter/sec2, m/sec^2, m/s**2",
		"km/h":     "km/hr, KM/H, Km/h, Unit_KiloMeterPerHour, km / h, km per hour",
		"kg.m":     "kilogram meter",
		"%":        "percent, Unit_PerCent, per cent",
		"degC":     "C, celsius, °c, DegC, Unit_DegreCelsi",
		"deg/s":    "Unit_DegreOfArcPerSecon, deg/sec",
		"bar":      "BAR, Bar, bars, Unit_Bar",
		"mbar":     "Unit_MilliBar, MBAR",
		"ms":       "msec, Unit_MilliSecon",
		"Hz":       "hz, HZ, Unit_Hertz",
		"kN":       "KN, Unit_KiloNewto",
		"":         "rads, rps, lbf.ft, mpa, x, N/m*s:, J_wheel, pi, a, s_x, kg.m2, rpm, Nm, 1/s, m", // not clear, or right already
	} {
		for unit := range strings.SplitSeq(list, ", ") {
			if got := Respell(unit); got != right {
				t.Errorf("%q: %q is proposed, want %q", unit, got, right)
			}
		}
	}
}

// A quantity that a person spells in another way is refused with the text to write.
func TestARefusedQuantityProposesItsRightSpelling(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0.2 kgm2", `"0.2 kgm2": "kgm2" is not a known unit; write 0.2 kg.m2`},
		{"0.2 kg*m^2", `"0.2 kg*m^2": "kg*m^2" is not a known unit; write 0.2 kg.m2`},
		{"-5 N-m", `"-5 N-m": "N-m" is not a known unit; write -5 N.m`},
		{"1500RPM", `"1500RPM": "RPM" is not a known unit; write 1500 rpm`},
		{"0,2 kg.m2", `"0,2 kg.m2": a number has a decimal point and no other separators; write 0.2 kg.m2`},
		{"0,2 kgm2", `"0,2 kgm2": a number has a decimal point and no other separators; write 0.2 kg.m2`},
		{"-0,05", `"-0,05": a number has a decimal point and no other separators; write -0.05`},
		{"1.200,5 rpm", `"1.200,5 rpm": a number has a decimal point and no other separators; write 1200.5 rpm`},
		{"1,200.5 rpm", `"1,200.5 rpm": a number has a decimal point and no other separators; write 1200.5 rpm`},
		{"1,500 rpm", `"1,500 rpm": a number has a decimal point and no other separators; write 1500 rpm or 1.500 rpm`},
		{"1 000 000 Pa", `"1 000 000 Pa": a number has a decimal point and no other separators; write 1000000 Pa`},
		{"2·10^-3 m", `"2·10^-3 m": a number has a decimal point and no other separators; write 2e-3 m`},
		{"3 kgm2 + J", `"3 kgm2 + J": "kgm2" is not a known unit; write kg.m2`},
		{"J + 3 N*m", `"J + 3 N*m": "m" is not a known parameter; the factors of a unit are joined with a dot, as in N.m`},
		{"3 rps", "\"3 rps\": \"rps\" is not a known unit; `lockstep help numbers-and-units` lists the units"},
		{"3 bars", `"3 bars": "bars" is not a known unit; write 3 bar`},
		{"0,2 + J", `"0,2 + J": unexpected ",2 + J"; decimals follow a point, as in 0.2`},
	} {
		_, err := Evaluate(c.text, map[string]Value{"J": {SI: 1, Bare: true}})
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for unit, want := range map[string]string{
		"kgm2": `model: unit "kgm2": "kgm2" is not a known unit; write kg.m2`,
		"RPM":  `model: unit "RPM": "RPM" is not a known unit; write rpm`,
		"N m":  `model: unit "N m": "N m" is not a known unit; write N.m`,
	} {
		if _, err := Parse(unit); err == nil || err.Error() != want {
			t.Errorf("unit %q: %v, want %s", unit, err, want)
		}
	}
}
