package diagnosis

import (
	"strings"
	"testing"

	"lockstep/io/j1939"
	"lockstep/io/uds"
)

const truckFile = `j1939:
  address: 0x03
  codes:
    output_speed: {spn: 191, fmi: 19, text: output shaft speed invalid}
    largest: {spn: 524287, fmi: 31}
`

func TestFileOfAUnitOnJ1939IsRead(t *testing.T) {
	s := parse(t, truckFile)
	if *s.Node != (Node{Address: 3, Tester: 0xF9}) {
		t.Errorf("%+v", s.Node)
	}
	for text, want := range map[string]uint32{"output_speed": 191<<5 | 19, "191/19": 191<<5 | 19, "largest": 0xFFFFFF, "1/0": 1 << 5} {
		if code, err := s.FindCode(text); err != nil || code != want {
			t.Errorf("%s: 0x%06X, %v", text, code, err)
		}
	}
	if _, _, err := s.FindValues("oil"); err == nil || !strings.Contains(err.Error(), "has no identifiers; dtc and no_dtc read its trouble codes") {
		t.Errorf("identifier: %v", err)
	}
	for _, text := range []string{"P0730", "191", "191/32", "524288/0", "0x1000"} {
		if code, err := s.FindCode(text); err == nil {
			t.Errorf("%s: 0x%06X", text, code)
		}
	}
	if s.NameCode(191<<5|19) != "output_speed output shaft speed invalid" || s.NameCode(1<<5) != "SPN 1 FMI 0" {
		t.Error(s.NameCode(191<<5|19), s.NameCode(1<<5))
	}
}

func TestMistakesInAFileOfAUnitOnJ1939AreNamed(t *testing.T) {
	for change, want := range map[string]string{
		"  address: 0x03\n|":                     "tcu.yaml:1:1: diagnosis: j1939: the address of the unit is missing (address: 0x03)",
		"address: 0x03|address: 254":             "j1939: address",
		"address: 0x03|address: 0xF9":            "j1939: unit and tester both have the address 0xF9",
		"spn: 191, |":                            "code output_speed: spn is missing (spn: 191, fmi: 2)",
		"fmi: 31|fmi: 32":                        "code largest: fmi",
		"spn: 524287, fmi: 31|spn: 191, fmi: 19": "code largest: output_speed has the same SPN and FMI",
		"j1939:|uds: {}\nj1939:":                 "uds and j1939 are two units; write two files",
	} {
		from, to, _ := strings.Cut(change, "|")
		s, err := Parse("tcu.yaml", t.TempDir(), []byte(strings.Replace(truckFile, from, to, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %+v; want %s", change, err, s, want)
		}
	}
}

// A file has the commands of its unit.
func TestCommandsAreThoseOfTheUnit(t *testing.T) {
	truck, car := parse(t, truckFile), parse(t, sample)
	for words, want := range map[string]string{
		"dm 1": "", "dm 11": "", "dm": "dm: expected dm 1|2|3|4|11", "dm 5": `dm: "5" is not one of 1, 2, 3, 4, 11`,
		"read vin": "read: tcu.yaml describes a unit on SAE J1939; its commands are dm",
	} {
		if _, err := truck.ParseCommand(strings.Fields(words), true); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
	if _, err := car.ParseCommand([]string{"dm", "1"}, true); err == nil || !strings.HasPrefix(err.Error(), "dm: tcu.yaml describes a unit with UDS; its commands are dtc, ") {
		t.Error(err)
	}
}

func TestCodesOfJ1939AreDescribed(t *testing.T) {
	s := parse(t, truckFile)
	dm1 := []byte{4, 0xFF, 191, 0, 19, 3, 1, 0, 2, 1}
	lines, err := s.describeCodes(dm1)
	if want := "amber warning lamp on|output_speed: SPN 191 FMI 19, 3 times (output shaft speed invalid)|SPN 1 FMI 2, 1 times"; err != nil || strings.Join(lines, "|") != want {
		t.Errorf("%q, %v", lines, err)
	}
	if list, err := s.ParseCodes(uds.TestFailed, dm1); err != nil || len(list) != 2 || list[0] != (uds.DTC{Code: 191<<5 | 19, Status: uds.TestFailed}) {
		t.Errorf("%v, %v", list, err)
	}
	if j := s.ReadCodes(uds.Confirmed); j.Group.PGN != j1939.PGNDM2 || s.FormatStatus(uds.Confirmed) != "previously_active" {
		t.Errorf("%+v", j)
	}
	lines, err = s.describeFrames([]byte{6, 191, 0, 19, 3, 1, 2})
	if err != nil || len(lines) != 1 || lines[0] != "output_speed: SPN 191 FMI 19, 3 times (output shaft speed invalid): freeze frame 01 02" {
		t.Errorf("%q, %v", lines, err)
	}
	if lines, err = s.describeCodes([]byte{0, 0xFF, 0}); err == nil {
		t.Errorf("%q", lines)
	}
}
