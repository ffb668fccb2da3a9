package scenario

import (
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
)

// entry is an entry of a list of a scenario file, or a fault in the words of a command: keys with
// their values, in the order in which they are written.
type entry struct {
	*yamlfile.Reader
	what   string          // for errors: "fault", "expect"
	at     yamlfile.Scalar // where it begins
	fields []field
}

// field is a key with its value. Where the value is a mapping it has no text, and the keys of the
// mapping follow as fields of their own: "leak", "leak.share", "leak.time".
type field struct {
	key string
	yamlfile.Scalar
}

// readEntry reads an entry; what names it in errors, and parts has the keys of a value that may be a
// mapping.
func readEntry(r *yamlfile.Reader, f yamlfile.Field, what string, keys []string, parts map[string][]string) *entry {
	e := &entry{Reader: r, what: what, at: f.Scalar(what)}
	fields := r.FieldsOf(f, what)
	r.CheckKeys(fields, what, keys...)
	for _, g := range fields {
		label := what + ": " + g.Key
		if parts[g.Key] == nil || !yamlfile.IsMapping(g.Node) {
			e.add(g.Key, r.Scalar(g, label))
			continue
		}

		e.add(g.Key, g.Scalar(""))
		list := r.FieldsOf(g, label)
		r.CheckKeys(list, label, parts[g.Key]...)
		for _, p := range list {
			e.add(g.Key+"."+p.Key, r.Scalar(p, label+": "+p.Key))
		}
	}

	bench.ReadTitle(r, e.get("name"), what+": name")

	return e
}

func (e *entry) add(key string, w yamlfile.Scalar) { e.fields = append(e.fields, field{key, w}) }

// get is the value of a key; it has no text where the key is missing or a mapping.
func (e *entry) get(key string) yamlfile.Scalar {
	for _, f := range e.fields {
		if f.key == key {
			return f.Scalar
		}
	}

	return yamlfile.Scalar{}
}

func (e *entry) text(key string) string { return e.get(key).Text }

// parts are the fields of the mapping that is the value of a key.
func (e *entry) parts(key string) (list []field) {
	for _, f := range e.fields {
		if name, ok := strings.CutPrefix(f.key, key+"."); ok {
			list = append(list, field{name, f.Scalar})
		}
	}

	return list
}

// fail is an error at a place.
func (e *entry) fail(at yamlfile.Scalar, format string, args ...any) {
	e.FailAt(at.At(), e.what+": "+format, args...)
}

// check is the error of reading a key, if there is one. A key in a mapping is called as the
// mapping is.
func (e *entry) check(key string, err error) {
	if err != nil {
		name, _, _ := strings.Cut(key, ".")
		e.fail(e.get(key), "%s: %w", name, err)
	}
}

// instant reads when something is; 0 where the key is missing.
func (e *entry) instant(h *bench.Handover, key string) (tick int64) {
	if text := e.text(key); text != "" {
		var err error
		tick, err = ParseInstant(h, text)
		e.check(key, err)
	}

	return tick
}

// conditions reads conditions; none is set where the key is missing.
func (e *entry) conditions(h *bench.Handover, key string) (list Conditions) {
	if text := e.text(key); text != "" {
		var err error
		list, err = ParseConditions(h, text)
		e.check(key, err)
	}

	return list
}
