// Package strictjson owns what encoding/json lacks for JSON between programs: the reading of an object in which nothing
// is ignored or replaced, and numbers that may be NaN.
//
// It does not know what an object means.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Unmarshal stores the one object of a JSON text in the value that to points to. The error says in one line what the
// text has instead: no UTF-8, no object, a key twice, an unknown field, a value of another type, or further text.
func Unmarshal(body []byte, to any) error {
	if !utf8.Valid(body) {
		return errors.New("the text is not UTF-8") // JSON would replace what is not
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return errors.New("an object in braces is wanted")
	}
	if twice := duplicateKey(body); twice != "" {
		return fmt.Errorf("the key %.60q is there twice", twice)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return fmt.Errorf("%s: %.60s is not %s", wrong.Field, wrong.Value, wanted(wrong.Type.Kind()))
	}
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("text follows the object")
		}
	}
	return err
}

// wanted names the JSON that a field takes.
func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Float64:
		return "a finite number"
	}
	return "an object"
}

// duplicateKey returns a key that an object of the JSON text has twice; "": none, or the text is no JSON.
// encoding/json would take the last one. It takes the outermost keys in any case of letters.
func duplicateKey(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	type level struct {
		keys  map[string]bool // of an object; nil: a list
		value bool            // the next token is the value of a key
	}
	var open []level
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		at := len(open) - 1
		key, isText := t.(string)
		if isText && at >= 0 && open[at].keys != nil && !open[at].value {
			name := key
			if at == 0 {
				name = strings.ToLower(key)
			}
			if open[at].keys[name] {
				return key
			}
			open[at].keys[name], open[at].value = true, true
			continue
		}
		if at >= 0 {
			open[at].value = false
		}
		switch t {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:at]
		}
	}
}
