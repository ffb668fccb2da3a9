package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/strictjson"
	"lockstep/rt/diagnosis"
	"lockstep/rt/graph"
	"lockstep/rt/network"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/traffic"
)

// schema is a schema of the OpenAPI file, as far as the file uses it.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name, or a list of names
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Additional any                `json:"additionalProperties"` // false, or a schema
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	OneOf      []*schema          `json:"oneOf"`
}

type content map[string]struct{ Schema *schema }

// document is the OpenAPI file.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		Summary     string
		RequestBody *struct{ Content content }
		Responses   map[string]struct{ Content content }
	}
	Components struct{ Schemas map[string]*schema }
}

func readDocument(t *testing.T) *document {
	t.Helper()
	d := &document{}
	if err := json.Unmarshal(OpenAPI, d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("%q, %v", d.OpenAPI, err)
	}
	return d
}

// schemaTypes are the Go types of the schemas.
var schemaTypes = []reflect.Type{
	reflect.TypeFor[Description](), reflect.TypeFor[Signal](), reflect.TypeFor[Text](), reflect.TypeFor[Command](), reflect.TypeFor[Answer](),
	reflect.TypeFor[graph.Plant](), reflect.TypeFor[graph.PlantNode](), reflect.TypeFor[graph.PlantElement](), reflect.TypeFor[graph.PlantFlange](), reflect.TypeFor[graph.Term](),
	reflect.TypeFor[FaultState](), reflect.TypeFor[ListedRun](), reflect.TypeFor[Values](), reflect.TypeFor[Value](), reflect.TypeFor[StreamStart](),
	reflect.TypeFor[StreamSignal](), reflect.TypeFor[Sample](), reflect.TypeFor[StreamEnd](), reflect.TypeFor[SetRequest](), reflect.TypeFor[NamesRequest](),
	reflect.TypeFor[FaultRequest](), reflect.TypeFor[ParamRequest](), reflect.TypeFor[MarkRequest](), reflect.TypeFor[RecordRequest](), reflect.TypeFor[AdvanceRequest](), reflect.TypeFor[StopRequest](), reflect.TypeFor[Refusal](),
	reflect.TypeFor[traffic.Buses](), reflect.TypeFor[traffic.Bus](), reflect.TypeFor[traffic.Message](), reflect.TypeFor[traffic.MessageSignal](), reflect.TypeFor[traffic.MessageStates](),
	reflect.TypeFor[traffic.BusTraffic](), reflect.TypeFor[traffic.MessageState](), reflect.TypeFor[report.Cycle](), reflect.TypeFor[traffic.Frame](), reflect.TypeFor[traffic.FrameStart](),
	reflect.TypeFor[Ledger](), reflect.TypeFor[LateTick](), reflect.TypeFor[Scenario](), reflect.TypeFor[scenario.Progress](), reflect.TypeFor[Host](),
	reflect.TypeFor[HostCheck](), reflect.TypeFor[Runs](),
	reflect.TypeFor[ResetRequest](), reflect.TypeFor[SnapshotRequest](), reflect.TypeFor[SnapshotState](), reflect.TypeFor[network.SwitchRequest](), reflect.TypeFor[diagnosis.UnitRequest](), reflect.TypeFor[diagnosis.UnitAnswer](), reflect.TypeFor[diagnosis.UnitExchange](),
}

// schemaOf returns the schema that a Go type has by its JSON.
func schemaOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[strictjson.Numbers]():
		return "list of number or null"
	case t == reflect.TypeFor[time.Time]():
		return "string"
	case t == reflect.TypeFor[any]():
		return "number or string"
	case slices.Contains(schemaTypes, t):
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return "list of " + schemaOf(t.Elem())
	case reflect.Map:
		return "map of " + schemaOf(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	}
	return "integer"
}

// String describes a schema as schemaOf does.
func (s *schema) String() string {
	switch kind := s.Type.(type) {
	case []any:
		var names []string
		for _, k := range kind {
			names = append(names, fmt.Sprint(k))
		}
		return strings.Join(names, " or ")
	case string:
		switch kind {
		case "array":
			return "list of " + s.Items.String()
		case "object":
			inner := &schema{}
			text, _ := json.Marshal(s.Additional)
			_ = json.Unmarshal(text, inner)
			return "map of " + inner.String()
		}
		return kind
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

// Every route and every field is in the OpenAPI file, and nothing else is.
func TestOpenAPIHasEveryRouteAndEveryField(t *testing.T) {
	d := readDocument(t)
	var have, want []string
	for path, methods := range d.Paths {
		for method, m := range methods {
			have = append(have, strings.ToUpper(method)+" "+path)
			if m.Summary == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
		}
	}
	for _, r := range routes() {
		want = append(want, r.method+" "+r.path)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("routes %q\nwant %q", have, want)
	}

	names := map[string]bool{}
	for _, of := range schemaTypes {
		names[of.Name()] = true
		s := d.Components.Schemas[of.Name()]
		if s == nil || s.Additional != false {
			t.Errorf("there is no schema %s without other fields", of.Name())
			continue
		}
		have, want, required := map[string]string{}, map[string]string{}, []string{}
		for name, p := range s.Properties {
			have[name] = p.String()
		}
		for f := range of.Fields() {
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			want[name] = schemaOf(f.Type)
			if of == reflect.TypeFor[Value]() && name == "value" {
				want[name] = "number or null" // a pointer without omitempty
			}
			always := rest == "" && !(of == reflect.TypeFor[Answer]() && (name == "bench" || name == "process"))
			if always {
				required = append(required, name)
			}
		}
		if !maps.Equal(have, want) {
			t.Errorf("%s has %v\nwant %v", of.Name(), have, want)
		}
		slices.Sort(required)
		if got := slices.Sorted(slices.Values(s.Required)); !slices.Equal(got, required) {
			t.Errorf("%s requires %q, want %q", of.Name(), got, required)
		}
	}
	for name := range d.Components.Schemas {
		if !names[name] {
			t.Errorf("no type has the schema %s", name)
		}
	}
}

// check returns how a value of JSON differs from a schema; "": it fits.
func (d *document) check(v any, s *schema) string {
	if s.Ref != "" {
		return d.check(v, d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")])
	}
	if len(s.OneOf) > 0 {
		fits := 0
		for _, o := range s.OneOf {
			if d.check(v, o) == "" {
				fits++
			}
		}
		if fits != 1 {
			return fmt.Sprintf("%v fits %d of oneOf", v, fits)
		}
		return ""
	}
	kinds, ok := s.Type.([]any)
	if !ok {
		kinds = []any{s.Type}
	}
	is := ""
	switch v := v.(type) {
	case nil:
		is = "null"
	case bool:
		is = "boolean"
	case string:
		is = "string"
	case float64:
		if is = "number"; v == float64(int64(v)) && slices.Contains(kinds, any("integer")) {
			is = "integer"
		}
	case []any:
		is = "array"
		for _, e := range v {
			if why := d.check(e, s.Items); why != "" {
				return why
			}
		}
	case map[string]any:
		is = "object"
		for _, name := range s.Required {
			if _, has := v[name]; !has {
				return name + " is missing"
			}
		}
		for name, e := range v {
			p := s.Properties[name]
			if other, ok := s.Additional.(map[string]any); p == nil && ok {
				text, _ := json.Marshal(other)
				p = &schema{}
				_ = json.Unmarshal(text, p)
			}
			if p == nil {
				return name + " is not in the schema"
			}
			if why := d.check(e, p); why != "" {
				return name + ": " + why
			}
		}
	}
	if !slices.Contains(kinds, any(is)) || len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		return fmt.Sprintf("%v is %s, want %v %v", v, is, kinds, s.Enum)
	}
	return ""
}

// A run answers every request as the OpenAPI file says, and takes the bodies that it describes.
func TestAnswersAndRequestsFitTheOpenAPI(t *testing.T) {
	d, c := readDocument(t), newRecorded(t, filepath.Join(t.TempDir(), "run.rec"))
	for c.must("status").Outputs == nil {
		time.Sleep(time.Millisecond)
	}
	done := map[string]bool{}
	for _, q := range []struct{ method, path, query, body string }{
		{"GET", "/description", "", ""}, {"GET", "/plant", "", ""},
		{"POST", "/set", "", `{"values": {"clutch7.pressure": 3, "Status.lag": "2 ms"}}`},
		{"POST", "/fault", "", `{"arguments": ["name=a", "frame=Speeds", "drop"]}`},
		{"GET", "/status", "", ""}, {"GET", "/faults", "", ""},
		{"GET", "/values", "?signal=w1&signal=clutch1.mode&signal=TCU_Pressure_1.pressure_C1&signal=health.missed", ""},
		{"GET", "/stream", "?signal=w1&signal=clutch1.pressure&every=tick", ""}, {"GET", "/stream", "?signal=TCU_Pressure_1.pressure_C1&every=20ms", ""},
		{"GET", "/buses", "", ""}, {"GET", "/messages", "", ""}, {"GET", "/frames", "?every=tick", ""},
		{"GET", "/frames", "?every=20ms&message=Speeds", ""}, {"GET", "/frames", "?every=tick&message=Nothing", ""}, // the last is refused
		{"GET", "/scenario", "", ""}, {"GET", "/ledger", "", ""}, {"GET", "/host", "", ""}, {"GET", "/runs", "", ""},
		{"POST", "/uds", "", `{"words": ["dtc"]}`}, // refused: the bench has no diagnosis file
		{"POST", "/mark", "", `{"text": "a mark"}`}, {"POST", "/param", "", `{"values": {"mu_oil": 0.12}}`},
		{"POST", "/param", "", `{"values": {"mu_oil": "0.3"}}`}, // refused
		{"POST", "/snapshot", "", `{"name": "warm"}`}, {"POST", "/reset", "", `{"name": "warm"}`}, {"POST", "/reset", "", `{}`},
		{"POST", "/reset", "", `{"name": "cold"}`},                                                // refused
		{"POST", "/ignition", "", `{"state": "off"}`}, {"POST", "/power", "", `{"state": "9 V"}`}, // refused: the bench has neither
		{"GET", "/status", "", ""},
		{"POST", "/advance", "", `{"time": "100 ms"}`}, // refused: the run is in real time
		{"POST", "/clear", "", `{"names": ["a"]}`}, {"POST", "/release", "", `{"names": ["all"]}`},
		{"POST", "/clear", "", `{"names": ["a"]}`},               // refused
		{"POST", "/record", "", `{"on": true, "file": "a.rec"}`}, // refused: the run is recorded
		{"POST", "/record", "", `{"on": false}`},
		{"POST", "/stop", "", `{"now": false, "wait": false}`},
		{"GET", "/openapi.json", "", ""},
	} {
		m, ok := d.Paths[q.path][strings.ToLower(q.method)]
		if !ok {
			t.Fatalf("%s %s", q.method, q.path)
		}
		done[q.path] = true
		if q.body != "" {
			if why := d.check(decoded(t, q.body), m.RequestBody.Content["application/json"].Schema); why != "" {
				t.Errorf("%s %s: %s", q.path, q.body, why)
			}
		}
		conn := c.raw()
		fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", q.method, q.path, q.query, len(q.body), q.body)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		code := fmt.Sprint(r.StatusCode)
		if r.StatusCode != http.StatusOK {
			code = "default"
		}
		s := m.Responses[code].Content[r.Header.Get("Content-Type")].Schema
		answers := json.NewDecoder(r.Body)
		streams := r.Header.Get("Content-Type") == "application/x-ndjson"
		for range map[bool]int{true: 5, false: 1}[streams] {
			var v any
			if err := answers.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if why := d.check(v, s); q.path != "/openapi.json" && why != "" {
				t.Errorf("%s: %s\n%v", q.path, why, v)
			}
		}
		if !streams {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		conn.Close()
	}
	for path := range d.Paths {
		if !done[path] {
			t.Errorf("%s was not asked", path)
		}
	}
}

// decoded returns a value of JSON.
func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}
