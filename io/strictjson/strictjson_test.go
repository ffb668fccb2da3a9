package strictjson

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

type request struct {
	Text   string         `json:"text"`
	Names  []string       `json:"names"`
	Values map[string]any `json:"values"`
	On     bool           `json:"on"`
	Time   float64        `json:"time"`
}

func TestUnmarshalReadsOneObject(t *testing.T) {
	var got request
	if err := Unmarshal([]byte(" {\"text\": \"ä\", \"values\": {\"A\": 1, \"a\": [2]}, \"on\": true}\n"), &got); err != nil {
		t.Fatal(err)
	}
	if want := (request{Text: "ä", On: true, Values: map[string]any{"A": 1.0, "a": []any{2.0}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestUnmarshalRefusesWhatAReaderWouldIgnoreOrReplace(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "an object in braces is wanted",
		"null":                       "an object in braces is wanted",
		`{"on": true`:                "unexpected EOF",
		`{"on": true} {}`:            "text follows the object",
		`{"off": true}`:              `json: unknown field "off"`,
		`{"on": 1}`:                  "on: number is not true or false",
		`{"names": {}}`:              "names: object is not a list",
		`{"text": []}`:               "text: array is not a text",
		`{"time": 1e999}`:            "time: number 1e999 is not a finite number",
		`{"values": 5}`:              "values: number is not an object",
		"{\"text\": \"\xff\"}":       "the text is not UTF-8",
		`{"on": true, "On": false}`:  `the key "On" is there twice`,
		`{"values": {"a":1,"a":1}}`:  `the key "a" is there twice`,
		`{"names": [], "names": []}`: `the key "names" is there twice`,
	} {
		if err := Unmarshal([]byte(text), &request{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestNumbersThatAreNotFiniteAreNull(t *testing.T) {
	text, err := json.Marshal(Numbers{1.5, math.NaN(), math.Inf(1), math.Inf(-1), 0})
	if err != nil || string(text) != "[1.5,null,null,null,0]" {
		t.Errorf("%s, %v", text, err)
	}
	var got Numbers
	if err := json.Unmarshal(text, &got); err != nil || len(got) != 5 || got[0] != 1.5 || !math.IsNaN(got[1]) || !math.IsNaN(got[3]) || got[4] != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
