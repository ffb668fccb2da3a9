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
