package diagnosis

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/uds"
)

const sample = `uds:
  request: 0x7E1
  response: 0x7E9
  padding: 0xCC
  timing: {p2: 100 ms, limit: 10 s}
  dtcs: {P0730: {code: 0x073000, text: incorrect gear ratio}, U0101: {code: 0xC10100}}
  dids:
    oil_temperature: {id: 0x1001, bytes: 1, offset: -40, unit: degC}
    torque: {id: 0x1002, bytes: 2, type: signed, factor: 0.5, unit: N.m}
    lever: {id: 0x1004, bytes: 1, table: {0: P, 1: R, 2-3: D}}
    vin: {id: 0xF190, bytes: 17, type: text}
    first: {id: 0x2000, bytes: 1}
    second: {id: 0x2000, from: 1, bytes: 2}
  routines: {erase: 0xFF00}
  sessions: {end_of_line: 0x60}
  security: {1: {exec: [./key.py]}}
  flash: {session: programming, unlock: 1, erase: erase, reset: hard}
`

func parse(t testing.TB, text string) *Spec {
	t.Helper()
	s, err := Parse("tcu.yaml", t.TempDir(), []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDiagnosisFileIsRead(t *testing.T) {
	s := parse(t, sample)
	if s.Transport.Tx.ID != 0x7E1 || s.Transport.Rx.ID != 0x7E9 || !s.Transport.Pad || s.Transport.PadByte != 0xCC || s.OBD != uds.OBDRequest {
		t.Errorf("%+v", s.Transport)
	}
	if s.Timing.P2 != 100e6 || s.Timing.Limit != 10e9 || s.Flash.Session != 2 || s.Flash.Unlock != 1 || s.Flash.Reset != 1 || s.Flash.Erase != "erase" {
		t.Errorf("%+v, %+v", s.Timing, s.Flash)
	}
	if s.NameCode(0x073000) != "P0730 incorrect gear ratio" || s.NameCode(0x420017) != "C0200-17" {
		t.Error(s.NameCode(0x073000), s.NameCode(0x420017))
	}
	if text := s.Describe(); !strings.Contains(text, "tcu.yaml: diagnosis, requests at 0x7E1, answers at 0x7E9, OBD at 0x7DF\n  code      0x073000 P0730 incorrect gear ratio\n") ||
		!strings.Contains(text, "  data      0x1001 oil_temperature, unsigned, in degC\n") {
		t.Error(text)
	}
	if s.size(0x2000) != 3 || s.size(0x9999) != 0 {
		t.Error(s.size(0x2000), s.size(0x9999))
	}
	for text, want := range map[string]string{
		"request: 0x18DA10F1\n  response: 0x18DAF110": "18DA10F1", "request: 0x00000123\n  response: 0x00000124": "00000123",
		"addressing: extended\n  target: 0x12\n  source: 0xF1\n  request: 0x6F1\n  response: 0x612": "6F1#12",
	} {
		s := parse(t, "uds:\n  "+text+"\n")
		got := fmt.Sprintf("%08X", s.Transport.Tx.ID&^can.EFF)
		if s.Transport.Tx.ID&can.EFF == 0 {
			got = fmt.Sprintf("%03X", s.Transport.Tx.ID)
		}
		if s.Transport.Tx.HasByte {
			got += fmt.Sprintf("#%02X", s.Transport.Tx.Byte)
		}
		if got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestMistakesInADiagnosisFileAreNamedWithTheirPosition(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"request: 0x7E1", "request: 0x7E9", "tcu.yaml:3:13: diagnosis: uds: request and response are both 0x7E9"},
		{"request: 0x7E1\n", "length: 9\n", "tcu.yaml:1:1: diagnosis: uds: request is missing (request: 0x7E1)"},
		{"padding: 0xCC", "padding: 0x100", "tcu.yaml:4:12: diagnosis: uds: padding"},
		{"padding: 0xCC", "functional: 0x700", "tcu.yaml:4:15: diagnosis: uds: functional: 0x700 is not an identifier of OBD; use 0x7DF or 0x18DB33F1"},
		{"padding: 0xCC", "length: 12", "tcu.yaml:4:11: diagnosis: uds: frames of 12 bytes need CAN FD"},
		{"padding: 0xCC", "addressing: mixed", "tcu.yaml:4:15: diagnosis: uds: mixed addressing needs an address extension (extension: 0x10)"},
		{"p2: 100 ms", "p2: 100", "tcu.yaml:5:16: diagnosis: timing: p2: 100"},
		{"p2: 100 ms", "p2: 2 h", "tcu.yaml:5:16: diagnosis: timing: p2: 7200 s is not from 0.001 s to 3600 s"},
		{"code: 0xC10100", "code: 0x073000", "P0730 has the code 0x073000, too"},
		{"code: 0xC10100", "text: x", "dtc U0101: the code is missing (code: 0x073000)"},
		{"id: 0x1001, ", "", "tcu.yaml:8:5: diagnosis: did oil_temperature: the identifier is missing (id: 0x1001)"},
		{"factor: 0.5", "factor: 0", "did torque: factor \"0\" is not a number, or 0"},
		{"bytes: 2, type: signed", "bytes: 9, type: signed", "did torque: a number has 1 to 8 bytes"},
		{"bytes: 17, type: text", "bytes: 17, type: text, unit: bar", "factor, offset, unit and table belong to numbers; this is text"},
		{"2-3: D", "3-2: D", "\"3-2\" is neither a raw value nor a range like 3-5"},
		{"erase: erase", "erase: erasing", "flash: there is no routine \"erasing\"; use a number or one of: erase"},
		{"session: programming", "session: program", "flash: there is no session \"program\""},
		{"security: {1:", "security: {2:", "security: 2: the level of a seed is an odd number below 0x80"},
		{"session: programming", "session: 0x82", "flash: session 0x82 is not from 0 to 0x7F"},
		{"exec: [./key.py]", "exec: []", "security: 1: "},
		{"uds:", "udz:", "unknown key \"udz\" (did you mean uds?)"},
		{"\n  padding", "\n  paddding", "paddding"},
	} {
		text := strings.Replace(sample, c.old, c.new, 1)
		_, err := Parse("tcu.yaml", "", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", c.new, err, c.want)
		}
	}
}

func TestCodesAreFoundByName(t *testing.T) {
	s := parse(t, sample)
	for text, want := range map[string]uint32{"P0730": 0x073000, "P0700": 0x070000, "U0123-1A": 0xC1231A, "B3FFF": 0xBFFF00, "0x0730FF": 0x0730FF} {
		if got, err := s.FindCode(text); got != want || err != nil {
			t.Errorf("%s: 0x%06X, %v; want 0x%06X", text, got, err, want)
		}
	}
	for _, text := range []string{"", "P073", "P4000", "X0730", "P0730-", "P0730-1", "P07301A", "P0730-1AB", "P+730", "1840"} {
		if got, err := s.FindCode(text); err == nil {
			t.Errorf("%q is 0x%06X", text, got)
		}
	}
}

// The bit 0x80 of a sub-function suppresses the answer, so no number of a session or a reset has it.
func TestNumbersOfSessionsAndResetsHaveSevenBits(t *testing.T) {
	s := parse(t, sample)
	for _, words := range [][]string{{"session", "0x83"}, {"session", "0x103"}, {"reset", "0x81"}, {"reset", "0x101"}} {
		if _, err := s.ParseCommand(words, true); err == nil || !strings.Contains(err.Error(), words[1][2:]+" is not from 0 to 0x7F") {
			t.Errorf("%v: %v", words, err)
		}
	}
	if _, err := s.ParseCommand([]string{"session", "0x7F"}, true); err != nil {
		t.Error(err)
	}
}

func TestTableHasNegativeRawValues(t *testing.T) {
	for text, want := range map[string][2]int64{"-1": {-1, -1}, "-5--2": {-5, -2}, "-1-3": {-1, 3}, "0x10-0x1F": {16, 31}} {
		if lo, hi, err := parseRange(text); lo != want[0] || hi != want[1] || err != nil {
			t.Errorf("%s: %d to %d, %v; want %v", text, lo, hi, err, want)
		}
	}
	for _, text := range []string{"", "-", "--1", "3-", "3--5", "a"} {
		if lo, hi, err := parseRange(text); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %d to %d, %v", text, lo, hi, err)
		}
	}
}

func TestValuesAreReadAndWritten(t *testing.T) {
	s := parse(t, sample)
	for _, c := range []struct {
		name  string
		data  []byte
		text  string
		typed string // "": text is typed
	}{
		{"oil_temperature", []byte{130}, "90 degC", ""}, {"torque", []byte{0xFF, 0xFE}, "-1 N.m", ""}, {"lever", []byte{1}, "R", ""}, {"lever", []byte{2}, "D", ""},
		{"lever", []byte{9}, "9", ""}, {"vin", []byte("WDB12345678901234"), `"WDB12345678901234"`, "WDB12345678901234"}, {"second", []byte{0, 1, 2}, "258", "-"},
	} {
		_, list, err := s.FindValues(c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := list[0].Format(c.data)
		if err != nil || got != c.text {
			t.Errorf("%s % X: %s, %v; want %s", c.name, c.data, got, err, c.text)
		}
		if c.typed == "-" {
			continue
		}
		if c.typed == "" {
			c.typed = c.text
		}
		if b, err := list[0].Encode(c.typed); err != nil || !bytes.Equal(b, c.data) {
			t.Errorf("%s %s: % X, %v; want % X", c.name, c.typed, b, err, c.data)
		}
	}
	for want, c := range map[string][2]string{
		"oil_temperature: the raw value 300 is not from 0 to 255": {"oil_temperature", "260 degC"}, "oil_temperature": {"oil_temperature", "3 bar"},
		"has 18 bytes, want at most 17": {"vin", "WDB123456789012345"}, "missing its unit": {"torque", "5"},
	} {
		_, list, _ := s.FindValues(c[0])
		if b, err := list[0].Encode(c[1]); err == nil || !strings.Contains(err.Error(), want) && want != "missing its unit" {
			t.Errorf("%v: % X, %v", c, b, err)
		}
	}
	_, list, _ := s.FindValues("torque")
	if _, err := list[0].Format([]byte{1}); err == nil || !strings.Contains(err.Error(), "torque of 0x1002 needs 2 bytes, the unit sent 1") {
		t.Error(err)
	}
}

func TestKeyOfTheUsersProgramIsRead(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) []string {
		name := filepath.Join(dir, fmt.Sprintf("key%d", len(text)))
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return []string{name, "more"}
	}
	if key, err := runKey(write(`[ "$*" = "more 01 A1B2" ] && echo C3 D4`), 1, []byte{0xA1, 0xB2}); err != nil || !bytes.Equal(key, []byte{0xC3, 0xD4}) {
		t.Errorf("% X, %v", key, err)
	}
	for text, want := range map[string]string{"echo no key >&2; exit 3": "exit status 3: no key", "echo xyz": `the key "xyz" is not bytes`, "": "the key"} {
		if _, err := runKey(write(text), 1, []byte{1}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := runKey([]string{"/nonexistent"}, 1, []byte{1}); err == nil {
		t.Error("a missing program makes a key")
	}
}

const odxSample = `<?xml version="1.0"?><ODX MODEL-VERSION="2.2.0"><DIAG-LAYER-CONTAINER ID="C"><BASE-VARIANTS><BASE-VARIANT ID="B">
<DIAG-DATA-DICTIONARY-SPEC><DTC-DOPS><DTC-DOP ID="D"><DTCS>
<DTC ID="d1"><SHORT-NAME>x</SHORT-NAME><TROUBLE-CODE>471040</TROUBLE-CODE><DISPLAY-TROUBLE-CODE>P0730</DISPLAY-TROUBLE-CODE><TEXT>Incorrect ratio</TEXT></DTC>
<DTC ID="d2"><TROUBLE-CODE>0xC10100</TROUBLE-CODE></DTC></DTCS></DTC-DOP></DTC-DOPS>
<DATA-OBJECT-PROPS>
<DATA-OBJECT-PROP ID="temp"><SHORT-NAME>temp</SHORT-NAME><COMPU-METHOD><CATEGORY>LINEAR</CATEGORY><COMPU-INTERNAL-TO-PHYS><COMPU-SCALES><COMPU-SCALE>
<COMPU-RATIONAL-COEFFS><COMPU-NUMERATOR><V>-80</V><V>1</V></COMPU-NUMERATOR><COMPU-DENOMINATOR><V>2</V></COMPU-DENOMINATOR></COMPU-RATIONAL-COEFFS></COMPU-SCALE></COMPU-SCALES></COMPU-INTERNAL-TO-PHYS></COMPU-METHOD>
<DIAG-CODED-TYPE BASE-DATA-TYPE="A_UINT32"><BIT-LENGTH>8</BIT-LENGTH></DIAG-CODED-TYPE><UNIT-REF ID-REF="U"/></DATA-OBJECT-PROP>
<DATA-OBJECT-PROP ID="lever"><SHORT-NAME>lever</SHORT-NAME><COMPU-METHOD><CATEGORY>TEXTTABLE</CATEGORY><COMPU-INTERNAL-TO-PHYS><COMPU-SCALES>
<COMPU-SCALE><LOWER-LIMIT>0</LOWER-LIMIT><COMPU-CONST><VT>P</VT></COMPU-CONST></COMPU-SCALE><COMPU-SCALE><LOWER-LIMIT>1</LOWER-LIMIT><UPPER-LIMIT>3</UPPER-LIMIT><COMPU-CONST><VT>R</VT></COMPU-CONST></COMPU-SCALE></COMPU-SCALES></COMPU-INTERNAL-TO-PHYS></COMPU-METHOD>
<DIAG-CODED-TYPE BASE-DATA-TYPE="A_UINT32"><BIT-LENGTH>8</BIT-LENGTH></DIAG-CODED-TYPE></DATA-OBJECT-PROP>
<DATA-OBJECT-PROP ID="odd"><COMPU-METHOD><CATEGORY>COMPUCODE</CATEGORY></COMPU-METHOD><DIAG-CODED-TYPE BASE-DATA-TYPE="A_UINT32"><BIT-LENGTH>8</BIT-LENGTH></DIAG-CODED-TYPE></DATA-OBJECT-PROP>
</DATA-OBJECT-PROPS><UNIT-SPEC><UNITS><UNIT ID="U"><SHORT-NAME>c</SHORT-NAME><DISPLAY-NAME>degC</DISPLAY-NAME></UNIT></UNITS></UNIT-SPEC></DIAG-DATA-DICTIONARY-SPEC>
<DIAG-COMMS><DIAG-SERVICE ID="s"><SHORT-NAME>gearbox</SHORT-NAME><REQUEST-REF ID-REF="rq"/><POS-RESPONSE-REFS><POS-RESPONSE-REF ID-REF="rs"/></POS-RESPONSE-REFS></DIAG-SERVICE>
<DIAG-SERVICE ID="s2"><SHORT-NAME>reset</SHORT-NAME><REQUEST-REF ID-REF="rq2"/><POS-RESPONSE-REFS><POS-RESPONSE-REF ID-REF="rs"/></POS-RESPONSE-REFS></DIAG-SERVICE></DIAG-COMMS>
<REQUESTS><REQUEST ID="rq"><PARAMS><PARAM type="CODED-CONST"><CODED-VALUE>34</CODED-VALUE><DIAG-CODED-TYPE><BIT-LENGTH>8</BIT-LENGTH></DIAG-CODED-TYPE></PARAM>
<PARAM type="CODED-CONST"><CODED-VALUE>0x1001</CODED-VALUE><DIAG-CODED-TYPE><BIT-LENGTH>16</BIT-LENGTH></DIAG-CODED-TYPE></PARAM></PARAMS></REQUEST>
<REQUEST ID="rq2"><PARAMS><PARAM type="CODED-CONST"><CODED-VALUE>17</CODED-VALUE><DIAG-CODED-TYPE><BIT-LENGTH>8</BIT-LENGTH></DIAG-CODED-TYPE></PARAM></PARAMS></REQUEST></REQUESTS>
<POS-RESPONSES><POS-RESPONSE ID="rs"><PARAMS><PARAM type="CODED-CONST"><CODED-VALUE>98</CODED-VALUE></PARAM>
<PARAM type="VALUE"><SHORT-NAME>oil</SHORT-NAME><BYTE-POSITION>3</BYTE-POSITION><DOP-REF ID-REF="temp"/></PARAM>
<PARAM type="VALUE"><SHORT-NAME>lever</SHORT-NAME><BYTE-POSITION>4</BYTE-POSITION><DOP-REF ID-REF="lever"/></PARAM>
<PARAM type="VALUE"><SHORT-NAME>odd</SHORT-NAME><BYTE-POSITION>5</BYTE-POSITION><DOP-REF ID-REF="odd"/></PARAM></PARAMS></POS-RESPONSE></POS-RESPONSES>
<NEG-RESPONSES><NEG-RESPONSE ID="n"/></NEG-RESPONSES></BASE-VARIANT></BASE-VARIANTS></DIAG-LAYER-CONTAINER></ODX>`

func TestODXAndPDXGiveCodesIdentifiersAndConversions(t *testing.T) {
	dir := t.TempDir()
	var pdx bytes.Buffer
	z := zip.NewWriter(&pdx)
	for name, text := range map[string]string{"a.odx-d": odxSample, "index.xml": "<CATALOG/>"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"u.odx-d": []byte(odxSample), "u.pdx": pdx.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Parse("tcu.yaml", dir, []byte("uds: {request: 0x7E1, response: 0x7E9, dtcs: {P0730: {code: 0x073000, text: ours}}}\nodx: "+name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.NameCode(0x073000) != "P0730 ours" || s.NameCode(0xC10100) != "U0101" {
			t.Errorf("%s: %+v", name, s.Codes)
		}
		data := []byte{0x82, 2, 0}
		text, err := s.format(0x1001, s.Values, data)
		if want := []string{"gearbox.oil 25 degC", "gearbox.lever R"}; err != nil || !slices.Equal(text, want) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
		ignored := strings.Join(s.Ignored, "; ")
		for _, part := range []string{"1 DIAG-SERVICE of other kinds", "1 NEG-RESPONSE", "1 parameter: conversion COMPUCODE"} {
			if !strings.Contains(ignored, part) {
				t.Errorf("%s: %q lacks %q", name, ignored, part)
			}
		}
	}
	for name, text := range map[string]string{"none": "<a/>", "cut": odxSample[:500], "empty": "", "zip": "PK\x03\x04"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("tcu.yaml", dir, []byte("uds: {request: 1, response: 2}\nodx: "+name), nil); err == nil || !strings.HasPrefix(err.Error(), "tcu.yaml:2:6: diagnosis: odx: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFile: any text is read, or refused in one line.
func FuzzFile(f *testing.F) {
	f.Add(sample, odxSample)
	f.Fuzz(func(t *testing.T, text, odx string) {
		s, err := Parse("f", "", []byte(text), func(string) ([]byte, error) { return []byte(odx), nil })
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, v := range s.Values {
			_, _ = v.Format(make([]byte, 8)) // must not panic
			_, _ = v.Encode("1")
		}
		if _, err := NewStation(s); err != nil {
			t.Error(err)
		}
	})
}
