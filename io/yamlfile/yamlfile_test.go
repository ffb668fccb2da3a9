package yamlfile

import (
	"errors"
	"strings"
	"testing"
)

func TestSetReplacesTheValueOfALeaf(t *testing.T) {
	r := &Reader{Origin: Origin{File: "f.yaml", Owner: "test"}}
	n := r.Document([]byte("a: {b: [1, {c: 2}], d:}\ne.f: 3\n"))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var paths []string
	for _, l := range Leaves(n) {
		paths = append(paths, l.Path)
		l.Set(l.Path)
	}
	if got, want := strings.Join(paths, " "), "a.b[0] a.b[1].c e.f"; got != want {
		t.Errorf("leaves %s, want %s", got, want)
	}
	for _, l := range Leaves(n) {
		if text, _ := ScalarText(l.Node); text != l.Path {
			t.Errorf("value at %s is %s", l.Path, text)
		}
	}
}

// FuzzDocument reads any parsed file in every way; each error must be one line with a position.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb: {c: [1, 2], d: {e: .nan}}\n", "- - - 1", "a:\n  b: |\n    x\n\n    y\n", "? a\n: b", "a: &x 1\nb: *x", "a: 1\na: 2", "",
		"---\na: 1\n---\nb: 2", "a: \"\x1b[31m\"", "'': 1", "~: 1", "a: !!binary x", "<<: {a: 1}", "{[a]: b}", "a: 0x1G", "\ufeffa: 1\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &Reader{Origin: Origin{File: "f.yaml", Owner: "test"}}
		n := r.Document(data)
		if (n == nil) != (r.Err != nil) {
			t.Fatalf("node %v, error %v", n, r.Err)
		}
		check := func(err error) {
			var at *FileError
			if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Col < 1 || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "f.yaml:")) {
				t.Errorf("error %q is not one line with a position", err)
			}
		}
		check(r.Err)
		if n == nil {
			return
		}
		for _, l := range Leaves(n) {
			r := &Reader{Origin: r.Origin}
			r.Scalar(Root(l.Node), "leaf")
			r.Unsigned(Root(l.Node), "leaf", 10)
			check(r.Err)
			l.Set("1")
		}
		top := Root(n)
		for _, read := range []func(*Reader){
			func(r *Reader) { r.CheckKeys(r.FieldsOf(top, "top"), "top", "a", "b") },
			func(r *Reader) { r.Texts(r.Section(top, "top", "a")["a"], "a") },
			func(r *Reader) { r.Integer(top, "top", 1, 2) },
			func(r *Reader) { r.Text(top, "top") },
			func(r *Reader) { r.Choice(top, "top", "a", "b") },
		} {
			r := &Reader{Origin: r.Origin}
			read(r)
			check(r.Err)
		}
	})
}

// A long error ends behind a word.
func TestALongErrorIsCutBetweenWords(t *testing.T) {
	err := Origin{File: "f.yaml", Owner: "test"}.ErrorAt(Pos{1, 1}, "known are %s", strings.Repeat("inertia, ", 200))
	if text := err.Error(); len(text) > 1100 || !strings.HasSuffix(text, " inertia, ...") {
		t.Errorf("an error of %d bytes ends in %q", len(text), text[len(text)-20:])
	}
}

// Mistakes that YAML itself hides are reported where the writer of the file made them.
func TestFrequentMistakesGetTheirReason(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n\tb: 1\n":                 "f.yaml:2:1: test: the line is indented with a tab: indent with blanks",
		"a:\n  b: 1\n \tc: 2\n":        "f.yaml:3:2: test: the line is indented with a tab: indent with blanks",
		"a: {b: 1,\tc: 2}\n":           "write blanks instead of tabs",
		"a: {J: 0,2 kg.m2}\n":          "f.yaml:1:8: test: J: a comma ends the value; decimals follow a point: 0.2 kg.m2",
		"a: {J: 1.000,5 N.m}\n":        "f.yaml:1:8: test: J: a comma ends the value; decimals follow a point: 1000.5 N.m",
		"a: {J: -1,5e-3, w: 3,5e-3}\n": "f.yaml:1:8: test: J: a comma ends the value; decimals follow a point: -1.5e-3",
		"a: 1\nb:\na: 2\n":             `f.yaml:3:1: test: key "a" appears twice, first at line 1, column 1`,
	} {
		r := &Reader{Origin: Origin{File: "f.yaml", Owner: "test"}}
		if r.Document([]byte(text)); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, r.Err, want)
		}
	}
	r := &Reader{Origin: Origin{File: "f.yaml", Owner: "test"}}
	r.Document([]byte("# a\tb\na: {b: 1, c: , d: 2}\ne: [0,5]\nf: |\n  x\n  \ty\n"))
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// A table whose rows lack their brackets, or hold a decimal comma, is refused with the rows to write.
func TestTablesAreRefusedWithTheRowsToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"[0, 0.5]":           "f.yaml:1:5: test: mu: a list of values, where rows are wanted; write mu: [[0, 0.5]]",
		"[0, 1, 2, 3]":       "f.yaml:1:5: test: mu: a list of values, where rows are wanted; write mu: [[0, 1], [2, 3]]",
		"0.5":                "f.yaml:1:5: test: mu: one value, where rows are wanted; write mu: [[0, 0.5]]",
		"[[0, 1], [1, 0,5]]": "f.yaml:1:14: test: mu: row of 3 values; 2 are wanted; decimals follow a point: 0.5",
		"[[0, 0.5]]":         "",
		"[[0,5], [1,2,3]]":   "", // the caller refuses a row of three
		"[]":                 "",
		"[0, 1, 2]":          "", // the caller refuses a row that is no list
		"":                   "",
	} {
		r := &Reader{Origin: Origin{File: "f.yaml", Owner: "test"}}
		top := Root(r.Document([]byte("mu: " + text)))
		r.CheckRows(r.Section(top, "top", "mu")["mu"], "mu", 2)
		if got := r.Err; (got != nil || want != "") && (got == nil || got.Error() != want) {
			t.Errorf("mu: %s: %v, want %s", text, got, want)
		}
	}
}
