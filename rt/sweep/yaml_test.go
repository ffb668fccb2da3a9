package sweep

import (
	"errors"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/rt/bench"
	"lockstep/rt/scenario"
)

// All kinds of files are read by one layer.
func TestEveryKindOfFileRefusesAnchorsAndRepeatedKeys(t *testing.T) {
	readers := map[string]func(text string) error{
		"model": func(text string) error {
			_, err := plantfile.Load("f.yaml", []byte("plant: p\n"+text), library.Elements())
			return err
		},
		"bench": func(text string) error {
			_, err := bench.Parse("f.yaml", "", []byte("bench: b\n"+text))
			return err
		},
		"scenario": func(text string) error {
			_, err := scenario.Parse("f.yaml", []byte("scenario: s\n"+text), nil)
			return err
		},
		"sweep": func(text string) error {
			_, err := Load(folder(t, "sweep: s\n"+text))
			return err
		},
	}
	for kind, read := range readers {
		for text, want := range map[string]string{
			"about: &a one":                      `"&": anchors, aliases, tags, merge keys and ? keys are not supported; write each value where it is needed`,
			"about: *a":                          `"*": anchors, `,
			"about: !!str one":                   `anchors, `,
			"about: {<<: {b: 1}}":                `"<<": anchors, `,
			"about: {x: {b: 1, c: 2, b: 3}}":     `key "b" appears twice, first at line 2, column `,
			"about: {x: 1, 'x': 2}":              `key "x" appears twice, first at line 2, column `,
			"about: [" + strings.Repeat("[", 16): `nested too deeply`,
			"about: {" + strings.Repeat("b: 1, ", 10000) + "c: 1}": `more than 10000 keys`,
		} {
			err := read(text)
			var file *yamlfile.FileError
			if !errors.As(err, &file) || file.Line != 2 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s with %.40s: %v, want line 2: %s", kind, text, err, want)
			}
		}
	}
}
