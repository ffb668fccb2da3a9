package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/bench/benchtest"
)

// checkedFile returns the output of check for a file, its warnings and its error.
func checkedFile(t *testing.T, file string, strict bool) (out, warnings string, err error) {
	t.Helper()
	var b, w strings.Builder
	c := Check{Out: &b, Strict: strict, Warn: func(text string) { w.WriteString(text + "\n") }}
	err = c.File(file)
	return b.String(), w.String(), err
}

func TestCheckWritesADatabaseAsATable(t *testing.T) {
	out, warnings, err := checkedFile(t, "../../io/dbc/testdata/gearbox.dbc", true)
	if err != nil || strings.Count(warnings, "\n") != strings.Count(warnings, "needs its meaning: units: {") || !strings.Contains(warnings, `"Unit_NewtoMeter" needs its meaning`) {
		t.Errorf("%v, %s", err, warnings)
	}
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"gearbox.dbc: database, 7 messages, 34 signals",
		"0x0AD Getriebe_11, 8 bytes, from Getriebe_MQB, every 10 ms, Cyclic",
		"GE_Temperatur 48|8@1+ (1,-58) [-58|196] °C start 78 to Gateway_MQB",
		"GE_Fahrstufe 42|4@1+ (1,0) [0|15] 5 texts to Gateway_MQB, Pruefstand",
		"0x110 Kupplungsdruck, 8 bytes, from Pruefstand or Gateway_MQB",
		"KD_Strom_C1 31|16@0- (0.0001,0) [-3|3] A if KD_Kupplung=0 to",
		"AD_Unterblock 8|4@1+ (1,0) [0|15] multiplexor if AD_Block=0,8-15 to",
		"0x580 Messdaten, 64 bytes, CAN FD with BRS, from Pruefstand",
		"MD_Leistung 103|32@0 float (0.001,0) kW to",
		"0x0CF004FE EEC1, 8 bytes, J1939, from Motor_MQB",
		"EngSpeed 24|16@1+ (0.125,0) [0|8031.875] rpm SPN 190 to",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestCheckWarnsOfDeviationsAndStrictRefusesThem(t *testing.T) {
	const file = "../../io/dbc/testdata/violations.dbc"
	out, warnings, err := checkedFile(t, file, false)
	if err != nil || !strings.Contains(out, "violations.dbc: database, 9 messages, 18 signals\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		file + `:8: message "Good": signal "beyond": 60|8 does not fit the message's 8 bytes; left out` + "\n",
		file + `:11:27: the number ".25" has no digit before its point; read as a number` + "\n",
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%q is missing in\n%s", want, warnings)
		}
	}
	out, warnings, err = checkedFile(t, file, true)
	if want := file + ":1:1: dbc: the format has no comments with //"; err == nil || err.Error() != want || out+warnings != "" {
		t.Errorf("strict: %v, want %s\n%s%s", err, want, out, warnings)
	}
}

func TestCheckWarnsOfDeviationsInTheDatabaseOfABench(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("../../model/plants/powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	bench := filepath.Join(dir, "b.yaml")
	for file, text := range map[string]string{
		bench:                          benchtest.DemoText(t, "database: powershift.dbc", "database: mine.dbc"),
		filepath.Join(dir, "mine.dbc"): string(data) + "\nFUTURE_ 1;\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, warnings, err := checkedFile(t, bench, false)
	if err != nil || !strings.Contains(out, "bus drive") || !strings.Contains(warnings, `"FUTURE_" where a keyword`) {
		t.Errorf("%v\n%s%s", err, warnings, out)
	}
	if _, _, err := checkedFile(t, bench, true); err == nil || !strings.Contains(err.Error(), `"FUTURE_" where a keyword`) {
		t.Errorf("strict: %v", err)
	}
}

// What a bench refuses to bind is named before there is a bench, with the entry that helps.
func TestCheckNamesWhatABenchCannotBind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.dbc")
	const text = `BU_: A
BO_ 1 M: 8 A
 SG_ never : 0|8@1+ (1,0) [300|400] "rpm" A
 SG_ huge : 8|16@1+ (1e307,0) [0|0] "rpm" A
 SG_ odd : 24|8@1+ (1,0) [0|0] "furlong" A
 SG_ alone M : 32|8@1+ (1,0) [0|0] "" A
 SG_ wide : 40|8@1+ (1,0) [0|4.4E+481] "bar" A
 SG_ gone : 48|8@1+ (4.4E+481,0) [0|0] "bar" A
BO_ 2 Long: 12 A
 SG_ f : 0|8@1+ (1,0) [0|0] "" A
BA_DEF_ BU_ "SystemNodeLongSymbol" STRING ;
BA_DEF_DEF_ "SystemNodeLongSymbol" "";
BA_ "SystemNodeLongSymbol" BU_ A "A_node_whose_name_has_more_than_32_letters";
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, warnings, err := checkedFile(t, file, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`:3: message "M": signal "never": a bench cannot bind it: 8 bits`, "ranges: {M.never: all}",
		`:4: message "M": signal "huge": a bench cannot bind it`, "ranges: {M.huge: [LOWEST, HIGHEST]}",
		`:5: message "M": signal "odd": a bench that converts "furlong" needs its meaning: units: {"furlong": KNOWN}`,
		`:6: message "M": signal "alone": a multiplexor (M) that selects no signal: taken as a plain signal`,
		`:7:30: message "M": signal "wide": the maximum 4.4E+481 is beyond the largest number, 1.8e+308; taken as no limit`,
		`:8:22: message "M": signal "gone": the factor 4.4E+481 is beyond the largest number, 1.8e+308; left out`,
		`:9: message "Long": 12 bytes, and no VFrameFormat of CAN FD: taken as CAN FD`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%q is missing in\n%s", want, warnings)
		}
	}
	for _, want := range []string{"12 bytes, CAN FD by its length", "from A_node_whose_name_has_more_than_32_letters"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Count(warnings, "\n") != 7 {
		t.Errorf("other warnings:\n%s", warnings)
	}
}
