package bench

import (
	"errors"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/rt/bench/benchtest"
)

func truckBench(t *testing.T, old, new string) (string, error) {
	t.Helper()
	data, err := plants.Read("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if strings.Count(text, old) == 0 {
		t.Fatalf("the truck bench has no %q", old)
	}
	text = strings.Replace(text, old, new, 1)
	b, err := Parse("b.yaml", "", []byte(text))
	if err == nil {
		_, err = Prepare(b)
	}
	return text, err
}

func TestErrorsOfAddressesHaveAPosition(t *testing.T) {
	const engine = "0x00: {function: engine, identity: 1}"
	for _, c := range []struct{ old, new, at, want string }{
		{engine, "0xFE: {identity: 1}", "0xFE", `bus "drive": j1939: "0xFE" is not an address from 0 to 253 (0x00 to 0xFD)`},
		{engine, "-1: {identity: 1}", "-1:", `"-1" is not an address`},
		{engine, "engine: {identity: 1}", "engine: {identity", `"engine" is not an address`},
		{engine, "5: {identity: 1}", "0x05: {function: shift", "address 0x05 is used twice, first in line"},
		{engine, "0: {function: shift_console, identity: 2}", "0x05: {function: shift", "address 0 has the same NAME, 0000050000000002; give it another identity"},
		{engine, "0x00: {function: engin, identity: 1}", "engin,", `function: "engin" is neither a number from 0 to 255 nor one of engine, transmission, shift_console`},
		{engine, "0x00: {function: 256, identity: 1}", "256,", `function: "256" is neither a number from 0 to 255`},
		{engine, "0x00: {identity: 2097152}", "2097152", `identity: "2097152" is not a whole number from 0 to 2097151`},
		{engine, "0x00: {manufacturer: 2048}", "2048", "from 0 to 2047"},
		{engine, "0x00: {identty: 1}", "identty", `unknown key "identty" (did you mean identity?)`},
		{engine, "0x01: {function: engine, identity: 1}", "EEC1: {cycle", "no address 0x00 is claimed, but message EEC1 is sent from it; add it to j1939: addresses, or remove j1939"},
		{engine, engine + "\n        0x21: {identity: 9}", "0x21:", "no message is sent from address 0x21"},
		{"lost: stop ", "lost: stopp ", "stopp", `lost: "stopp" is unknown (did you mean stop?); known are stop, safe, continue`},
		{"      lost: stop ", "      loost: stop ", "loost", `unknown key "loost" (did you mean lost?)`},
		{"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms, source: 0xFE}", "0xFE}", `frame HRW: source: "0xFE" is not an address from 0 to 253 (0x00 to 0xFD)`},
		{"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms, source: any}", "any}", `frame HRW: source: "any" is not an address`},
		{"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms, destination: any}", "any}", `destination: "any" is not an address from 0 to 253 (0x00 to 0xFD), or all`},
		{"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms, source: 0x0C}", "HRW: {cycle", "no address 0x0C is claimed, but message HRW is sent from it"},
		{"ETC1: {timeout: 50 ms}", "ETC1: {from: all}", "all}", `message ETC1: from: "all" is not an address from 0 to 253 (0x00 to 0xFD), or any`},
		{"ETC1: {timeout: 50 ms}", "ETC1: {destination: 5}", "ETC1:", "parameter group 61442 goes to all nodes: it has no destination"},
	} {
		text, err := truckBench(t, c.old, c.new)
		line, col := benchtest.Place(t, text, c.at)
		var at *yamlfile.FileError
		if !errors.As(err, &at) || at.File != "b.yaml" || at.Line != line || at.Col != col || !strings.Contains(at.Err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\ngot  %v\nwant %d:%d ... %s", c.new, err, line, col, c.want)
		}
	}
}
