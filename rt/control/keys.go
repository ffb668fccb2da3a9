package control

import (
	"bytes"
	"encoding/json"
	"strings"
)

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
