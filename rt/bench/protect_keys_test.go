package bench

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
)

// A field of a protection is a key of the bench file by its tag alone.
func TestEveryFieldOfAProtectionIsReadByItsKey(t *testing.T) {
	samples := map[string]string{
		"profile": "crc8", "include_id": "bytes", "range": "[1, 2]", "xor_per_id": "{0x12: 3}", "reverse": "true",
		"reflect": "true", "subtract": "true", "include_length": "true",
	}
	var write func(of reflect.Type) string
	write = func(of reflect.Type) string {
		var list []string
		for field := range of.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("key"), ",")
			value := samples[key]
			if key == "window" {
				value = write(reflect.TypeFor[sigmap.WindowLimits]())
			} else if value == "" {
				value = "7"
			}
			list = append(list, fmt.Sprintf("%s: %s", key, value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	var r yamlfile.Reader
	node := r.Document([]byte(write(reflect.TypeFor[sigmap.ProtectionSpec]())))
	b := Bus{positions: map[sigmap.Place]yamlfile.Scalar{}}
	spec := reflect.ValueOf(b.readProtection(&r, yamlfile.Root(node), sigmap.Place{}, "protect")[0])
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for i := range spec.NumField() {
		if spec.Field(i).IsZero() {
			t.Errorf("%s is not read", spec.Type().Field(i).Name)
		}
	}
}
