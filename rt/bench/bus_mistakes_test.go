package bench

import (
	"errors"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench/benchtest"
)

func TestErrorsOfProtectionsAndMessagesHaveAPosition(t *testing.T) {
	for _, c := range []struct{ old, new, at, want string }{
		{"profile: e2e-2", "profile: e2e-3", "e2e-3", `"e2e-3"`},
		{"profile: e2e-2, ", "", "{data_ids", "frame Torque: protect: the profile is missing"},
		{"[0, 1, 2, ", "[0, 1, 256, ", "e2e-2", "0x100"},
		{"poly: 0x1D", "poly: x1D", "x1D", `protect: poly: "x1D" is not a whole number from 0 to 18446744073709551615`},
		{"poly: 0x1D", "polly: 0x1D", "polly", `unknown key "polly" (did you mean poly?)`},
		{"counter_P1, check", "counter_P9, check", "crc8", `no signal "counter_P9"`},
		{"cycle: 10 ms\n        timeout", "cycle: 10 bar\n        timeout", "10 bar", "message TCU_Pressure_1: cycle:"},
		{"dlc: 8", "dlc: 65", "65\n", `dlc: "65" is not a whole number from 1 to 64`},
		{"dlc: 8", "dlc: 5", "crc8", "5"},
		{"{clutch1.pressure: 3 bar}", "{clutch9.pressure: 3 bar}", "clutch9", `no input "clutch9.pressure"`},
		{"{clutch1.pressure: 3 bar}", "{clutch8.pressure: 3 bar}", "clutch8.pressure: 3", "clutch8.pressure"},
		{"{clutch1.pressure: 3 bar}", "{clutch1.pressure: 3 rpm}", "clutch1.pressure: 3", "on_timeout: clutch1.pressure: unit rpm does not fit, bar is wanted"},
		{"on_error: safe", "on_error: sage", "sage\n", `"sage" is unknown (did you mean safe?); known are hold, safe`},
		{"[0xFFF, 4000-4094]", "[4096]", "pressure_C4: [", "4095"},
		{"dlc: 8", "dlc: 8\n        brs: needed", "needed", `brs: "needed" is unknown; known are counted, required`},
		{"dlc: 8", "dlc: 8\n        brs: required", "TCU_Pressure_1:\n", "brs: the database has a classic message"},
		{"{pressure_C4: [0xFFF, 4000-4094]}", "frames", "frames\n", `invalid (or {SIGNAL: raw values}): "frames" is unknown (did you mean frame?); known are frame, signal`},
		{"{pressure_C4: [0xFFF, 4000-4094]}", "[frame, signal]", "signal]", "invalid: expected one of frame and signal, and one {SIGNAL: raw values}"},
		{"{pressure_C4: [0xFFF, 4000-4094]}", "[{pressure_C4: 1}, {pressure_C3: 1}]", "{pressure_C3", "invalid: expected one of frame and signal, and one"},
		{"{pressure_C4: [0xFFF, 4000-4094]}", "[{pressure_C4: 4096}, frame]", "pressure_C4: 4096", "4095"},
		{"mode: running", "mode: run", "mode: run", `"run"`},
		{"data_ids: [0,", "data_id: 3, data_ids: [0,", "[0, 1, 2", "data_ids: expected one of data_id and data_ids, got both"},
		{"protect: [{profile: crc8, poly: 0x1D, init: 0xFF, xor_out: 0xFF, counter: counter_P1, checksum: \"56|8\"}]", "protect: []", "[]", "the list is empty"},
		{"period: 0.1 s}, torque", "period: 0.1 s, sine: {frequency: 1 Hz}}, torque", "{table: [[0 s", "expected one of table, sine and formula, got several"},
		{"frequency: 2 Hz}", "frequency: 2 Hz}, period: 3 s", "{sine", "a sine has no key period; give its frequency"},
		{"on_timeout: {substitute: {clutch1.pressure: 3 bar}}", "on_timeout: {}", "TCU_Pressure_1:\n", "on_timeout"},
		{"timeout: 40 ms", "timeout: 0 s", "TCU_Pressure_1:\n", "timeout"},
		{"[0.1 s, 200]", "[0.1 s, 20 %]", "[0.1 s, 20", `table: "20 %": unit % does not fit, rpm is wanted`},
		{"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 10 N.m*t}", "10 N.m*t", "formula: its period is missing (period: 2 s)"},
		{"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 10 N.m*x, period: 1 s}", "10 N.m*x", `formula: at t = 0 s: "10 N.m*x": "x"`},
		{"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 1 N.m*sqrt(0.5-t), period: 1 s}", "1 N.m*sqrt", `formula: at t = 0.500976562 s: "1 N.m*sqrt(0.5-t)": sqrt`},
		{"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 10*sin(t), period: 1 s}", "10*sin", "formula: at t = 0.000976562 s: 10*sin(t) needs a unit, such as N.m"},
		{"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 9000 N.m*t, period: 1 s}", "torque: {formula", "torque"},
		{"mean: 10 N.m,", "mean: 10,", "10, ampl", "sine: mean: 10 needs a unit: 10 N.m?"},
		{"mean: 10 N.m,", "mean: 10 %,", "10 %", `sine: mean: "10 %": unit % does not fit, N.m is wanted`},
		{"[0.1 s, 200]", "[0.1 s]", "[0.1 s]", "a row is [time, value], got 1 numbers"},
		{"period: 0.1 s}", "period: 0.05 s}", "{table: [[0 s", "the period, 0.05 s, is shorter than the waveform, 0.1 s"},
		{"[0.1 s, 200]", "[0.1 s, 9000]", "speed: {table", "9000"},
		{"frequency: 2 Hz", "frequency: 0 Hz", "{mean", "sine: a frequency of 0 Hz"},
		{"Slow: {cycle: 20 ms}", "Slow: {}", "Slow: {}", "0 ms"},
		{"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms, min_gap: 5 ms}", "Slow: {cycle", "Slow"},
		{"send: on_change, min_gap", "send: on_change, cycle: 5 ms, min_gap", "Klemmen: {", "Klemmen"},
		{"send: on_change", "send: sometimes", "sometimes", "known are cyclic, on_change, both"},
		{"250 kbit/s", "250", "250", `bitrate: 250 needs a unit: 250 kbit/s?`},
		{"250 kbit/s", "250000", "250000", `bitrate: 250000 needs a unit: 250000 bit/s?`},
		{"250 kbit/s", "0.25", "0.25", `bitrate: 0.25 needs a unit: 0.25 Mbit/s?`},
		{"250 kbit/s", "250 baud", "250 baud", `bitrate: "250 baud" is not from 1 kbit/s to 1000 kbit/s`},
		{"      TCU_Pressure_1:\n", "      TCU_Pressure_3:\n", "TCU_Pressure_3:", `no message "TCU_Pressure_3"`},
		{"      Motor: {", "      Speeds: {", "Speeds: {values", "given twice"},
	} {
		text := benchtest.GuardedText(t)
		if strings.Count(text, c.old) == 0 {
			t.Errorf("the bench has no %q", c.old)
			continue
		}
		text = strings.Replace(text, c.old, c.new, 1)
		line, col := benchtest.Place(t, text, c.at)
		b, err := guardedBench(t, text)
		if err == nil {
			_, err = Prepare(b)
		}
		var at *yamlfile.FileError
		if !errors.As(err, &at) || at.File != "b.yaml" || at.Line != line || at.Col != col || !strings.Contains(at.Err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\ngot  %v\nwant %d:%d ... %s", c.new, err, line, col, c.want)
		}
	}
}

func TestInvalidIsARuleRawValuesOrBoth(t *testing.T) {
	for text, want := range map[string]struct {
		whole bool
		codes int
	}{
		"{pressure_C4: [0xFFF, 4000-4094]}": {true, 2}, "frame": {true, 0}, "signal": {false, 0}, "[signal]": {false, 0},
		"[signal, {pressure_C4: 7}]": {false, 1}, "[{pressure_C4: 7}, frame]": {true, 1},
	} {
		b, err := guardedBench(t, strings.Replace(benchtest.GuardedText(t), "{pressure_C4: [0xFFF, 4000-4094]}", text, 1))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		h, err := Prepare(b)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		rx := &h.Maps[0].Rx[0] // protected
		for i := range rx.Fields {
			if f := &rx.Fields[i]; f.Name == "pressure_C4" && len(f.Invalid) != want.codes || rx.Whole != want.whole {
				t.Errorf("%s: the frame is rejected: %v; %s has the codes %v", text, rx.Whole, f.Name, f.Invalid)
			}
		}
	}
}
