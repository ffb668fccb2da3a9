package scenario

import (
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
)

// entry is an entry of a list in a scenario file, or a fault of a command: keys with their values,
// in the order of the file.
type entry struct {
	*yamlfile.Reader
	what   string          // name of the list in errors: "fault", "expect"
	at     yamlfile.Scalar // first position
	fields []field
}

// field is a key with its value. A mapping has no text; its keys follow as further fields: "leak",
// "leak.share", "leak.time".
type field struct {
	key string
	yamlfile.Scalar
}

// readEntry reads an entry; what names the entry in errors. parts lists the allowed keys of each value
// that may be a mapping.
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

// get returns the value of a key. Its text is "" if the key is missing or the value is a mapping.
func (e *entry) get(key string) yamlfile.Scalar {
	for _, f := range e.fields {
		if f.key == key {
			return f.Scalar
		}
	}

	return yamlfile.Scalar{}
}

func (e *entry) text(key string) string { return e.get(key).Text }

// parts returns the fields of the mapping that is the value of key.
func (e *entry) parts(key string) (list []field) {
	for _, f := range e.fields {
		if name, ok := strings.CutPrefix(f.key, key+"."); ok {
			list = append(list, field{name, f.Scalar})
		}
	}

	return list
}

// fail ends reading with an error at a position.
func (e *entry) fail(at yamlfile.Scalar, format string, args ...any) {
	e.FailAt(at.At(), e.what+": "+format, args...)
}

// check ends reading if err is not nil. For a key in a mapping, the error names the mapping.
func (e *entry) check(key string, err error) {
	if err != nil {
		name, _, _ := strings.Cut(key, ".")
		e.fail(e.get(key), "%s: %w", name, err)
	}
}

// instant reads an instant as a tick; 0 if the key is missing.
func (e *entry) instant(h *bench.Handover, key string) (tick int64) {
	if text := e.text(key); text != "" {
		var err error
		tick, err = ParseInstant(h, text)
		e.check(key, err)
	}

	return tick
}

// conditions reads conditions; the list is empty if the key is missing.
func (e *entry) conditions(h *bench.Handover, key string) (list Conditions) {
	if text := e.text(key); text != "" {
		var err error
		list, err = ParseConditions(h, text)
		e.check(key, err)
	}

	return list
}
