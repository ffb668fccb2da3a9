package control

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"lockstep/io/strictjson"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/graph"
	"lockstep/rt/network"
	"lockstep/rt/scenario"
)

// OpenAPI describes the requests and answers of the door. A test holds it against the code.
//
//go:embed openapi.json
var OpenAPI []byte

// route is a request of the door. serve returns the answer, or nil if it has written one itself.
type route struct {
	method, path string
	serve        func(c *Server, w http.ResponseWriter, r *http.Request) (any, error)
}

// routes returns all requests.
func routes() []route {
	return []route{
		{"GET", "/openapi.json", serveOpenAPI},
		{"GET", "/description", func(c *Server, _ http.ResponseWriter, _ *http.Request) (any, error) {
			return c.streams.description.now(c.streams), nil
		}},
		{"GET", "/plant", (*Server).servePlant},
		{"GET", "/status", answer((*Server).answerStatus)},
		{"GET", "/faults", answer((*Server).answerFaults)},
		{"GET", "/values", (*Server).serveValues},
		{"GET", "/stream", (*Server).serveStream},
		{"GET", "/buses", func(c *Server, _ http.ResponseWriter, _ *http.Request) (any, error) {
			return c.streams.description.buses, nil
		}},
		{"GET", "/messages", func(c *Server, _ http.ResponseWriter, _ *http.Request) (any, error) {
			return c.streams.traffic.States(c.busStates()), nil
		}},
		{"GET", "/frames", (*Server).serveFrames},
		{"GET", "/scenario", (*Server).serveScenario},
		{"GET", "/ledger", (*Server).serveLedger},
		{"GET", "/host", (*Server).serveHost},
		{"GET", "/runs", serveRuns},
		{"POST", "/set", change((*Server).setLine)},
		{"POST", "/release", change(func(_ *Server, n *NamesRequest) (string, error) { return line("release", n.Names), nil })},
		{"POST", "/fault", change(func(_ *Server, f *FaultRequest) (string, error) { return line("fault", f.Arguments), nil })},
		{"POST", "/clear", change(func(_ *Server, n *NamesRequest) (string, error) { return line("clear", n.Names), nil })},
		{"POST", "/param", serveParam},
		{"POST", "/snapshot", change(func(_ *Server, q *SnapshotRequest) (string, error) {
			if q.Delete {
				return line("snapshot -delete", []string{q.Name}), nil
			}
			return line("snapshot", []string{q.Name}), nil
		})},
		{"POST", "/reset", change(func(_ *Server, q *ResetRequest) (string, error) {
			if q.Name == "" {
				return "reset", nil
			}
			return line("reset", []string{q.Name}), nil
		})},
		{"POST", "/ignition", change(func(_ *Server, q *network.SwitchRequest) (string, error) {
			return line("ignition", []string{q.State}), nil
		})},
		{"POST", "/power", change(func(_ *Server, q *network.SwitchRequest) (string, error) {
			return line("power", []string{q.State}), nil
		})},
		{"POST", "/mark", change((*Server).markLine)},
		{"POST", "/record", (*Server).serveRecord},
		{"POST", "/uds", (*Server).serveDiagnosis},
		{"POST", "/advance", (*Server).serveAdvance},
		{"POST", "/stop", (*Server).serveStop},
	}
}

// SetRequest asks to set inputs and signals. A value is a number in the unit of the signal, or a text as
// people type it: "3 bar".
type SetRequest struct {
	Values map[string]any `json:"values"`
}

// NamesRequest asks to release signals or to clear faults; "all" as the only name means all.
type NamesRequest struct {
	Names []string `json:"names"`
}

// FaultRequest asks for a fault, by the words that follow `lockstep ctl BENCH fault`: KEY=VALUE, or KEY.
type FaultRequest struct {
	Arguments []string `json:"arguments"`
}

// MarkRequest asks for a mark in the record.
type MarkRequest struct {
	Text string `json:"text"`
}

// RecordRequest asks to start or to end a record.
type RecordRequest struct {
	On   *bool  `json:"on"`             // start, or end
	File string `json:"file,omitempty"` // of a record to be started: its full name, which is new
}

// ResetRequest asks to return the plant to its start or to a snapshot.
type ResetRequest struct {
	Name string `json:"name,omitempty"` // of the snapshot; "": the start
}

// SnapshotRequest asks to store the state of the plant, or to delete a stored state.
type SnapshotRequest struct {
	Name   string `json:"name"`
	Delete bool   `json:"delete,omitempty"`
}

// AdvanceRequest asks a run in virtual time to advance.
type AdvanceRequest struct {
	Time string `json:"time"` // simulated time, such as "100 ms"; rounded up to ticks
}

// StopRequest asks for the end of the run.
type StopRequest struct {
	Now  bool `json:"now,omitempty"`  // kill the target
	Wait bool `json:"wait,omitempty"` // answer when the run has ended
}

// Refusal is the answer to a request that is not done.
type Refusal struct {
	Error string `json:"error"`
}

// refused is an error with the code of its answer; other errors have 400.
type refused struct {
	code int
	error
}

// ServeHTTP answers a request. It may be called by servers of this process besides that of the socket.
func (c *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil { // a fault of this program must not end the run
			writeAnswer(w, nil, refused{http.StatusInternalServerError, fmt.Errorf("internal error: %v", p)})
		}
	}()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if r.ContentLength != 0 { // a body that nobody reads is read after the answer, to the end
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeTimeout))
	}
	if !stops(r) {
		w.Header().Set("Connection", "close")
		writeAnswer(w, nil, refused{http.StatusServiceUnavailable, fmt.Errorf("%d clients are connected already: only /stop is answered until one leaves", maxClients)})
		return
	}
	var known []string
	for _, v := range routes() {
		switch {
		case v.path != r.URL.Path:
			known = append(known, v.path)
		case v.method != r.Method:
			w.Header().Set("Allow", v.method)
			writeAnswer(w, nil, refused{http.StatusMethodNotAllowed, fmt.Errorf("%s takes %s only", v.path, v.method)})
			return
		default:
			a, err := v.serve(c, w, r)
			if a != nil || err != nil {
				writeAnswer(w, a, err)
			}
			return
		}
	}
	writeAnswer(w, nil, refused{http.StatusNotFound,
		fmt.Errorf("there is no request %.60q%s; /openapi.json describes all", r.URL.Path, units.Meant(r.URL.Path, known))})
}

func (c *Server) servePlant(http.ResponseWriter, *http.Request) (any, error) {
	c.plantOnce.Do(func() { c.plant, c.plantErr = graph.Of(c.Handover) })
	if c.plantErr != nil {
		return nil, c.plantErr // not a typed nil
	}
	return c.plant, nil
}

// writeAnswer writes an answer, or the refusal for err. The client has writeTimeout to read it.
func writeAnswer(w http.ResponseWriter, a any, err error) {
	code := http.StatusOK
	if err != nil {
		a, code = Refusal{err.Error()}, http.StatusBadRequest
		if with := (refused{}); errors.As(err, &with) {
			code = with.code
		}
	}
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	var text bytes.Buffer
	_ = json.NewEncoder(&text).Encode(a)
	// The answer is on its way, whole, before the request counts as served: at the end of the run the
	// connections are closed.
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // fails if the client has gone
	_ = conn.Flush()
}

// readRequest reads the body of a request, which the client must send within writeTimeout.
func readRequest(w http.ResponseWriter, r *http.Request, to any) error {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(writeTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if long := new(http.MaxBytesError); errors.As(err, &long) {
		return refused{http.StatusRequestEntityTooLarge, fmt.Errorf("the request is longer than %d bytes", maxBody)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refused{http.StatusRequestTimeout, fmt.Errorf("the request is incomplete after %v", writeTimeout)}
	}
	if err != nil {
		return fmt.Errorf("the request is incomplete: %w", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	if err := strictjson.Unmarshal(body, to); err != nil {
		return fmt.Errorf("the request is no JSON of this form: %w", err)
	}
	return nil
}

func serveOpenAPI(_ *Server, w http.ResponseWriter, _ *http.Request) (any, error) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(OpenAPI) // fails if the client has gone
	return nil, nil
}

// answer serves a request without a change.
func answer(complete func(c *Server, a *Answer)) func(*Server, http.ResponseWriter, *http.Request) (any, error) {
	return func(c *Server, _ http.ResponseWriter, _ *http.Request) (any, error) {
		a := c.newAnswer()
		complete(c, a)
		return a, nil
	}
}

// change serves a request that changes the run: make returns the line of the change, as
// scenario.Commands.Translate takes it.
func change[T any](make func(*Server, *T) (string, error)) func(*Server, http.ResponseWriter, *http.Request) (any, error) {
	return func(c *Server, w http.ResponseWriter, r *http.Request) (any, error) {
		request := new(T)
		if err := readRequest(w, r, request); err != nil {
			return nil, err
		}
		text, err := make(c, request)
		if err != nil {
			return nil, err
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the change may wait for earlier ones
		return c.applyChange(text)
	}
}

func serveParam(c *Server, w http.ResponseWriter, r *http.Request) (any, error) {
	request := &ParamRequest{}
	if err := readRequest(w, r, request); err != nil {
		return nil, err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the change may wait for earlier ones
	a, err := c.parameters.serve(request)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// line returns the line of a command.
func line(command string, words []string) string {
	text := command
	for _, w := range words {
		text += " " + scenario.QuoteWord(w)
	}
	return text
}

// setLine returns the line that sets values. A number gets the unit of its signal.
func (c *Server) setLine(s *SetRequest) (string, error) {
	var words []string
	for name, v := range s.Values {
		switch v := v.(type) {
		case string:
			words = append(words, name+"="+v)
		case float64:
			text := strconv.FormatFloat(v, 'g', -1, 64)
			if unit, known := scenario.StimulusUnit(c.Handover, name); known {
				text = units.WithUnit(text, unit.Spelled)
			}
			words = append(words, name+"="+text)
		default:
			return "", fmt.Errorf("set: %.60q is neither a number nor a text", name)
		}
	}
	slices.Sort(words)
	return line("set", words), nil
}

func (c *Server) markLine(m *MarkRequest) (string, error) {
	if c.recorder.Path() == "" {
		return "", errors.New("mark: the run has no record that could hold the mark: record on FILE starts one")
	}
	return line("mark", []string{m.Text}), nil
}

func (c *Server) serveValues(_ http.ResponseWriter, r *http.Request) (any, error) {
	signals, err := c.streams.description.find(r.URL.Query()["signal"])
	if err != nil {
		return nil, err
	}
	if c.standing != nil {
		c.whenStanding(func(*rt.Loop) {}) // a value is that of the tick at which the run stands, the start included
	}
	return c.streams.values(signals)
}

// serveStop asks the supervisor to end the run. With Wait it answers when the run has ended.
func (c *Server) serveStop(w http.ResponseWriter, r *http.Request) (any, error) {
	w.Header().Set("Connection", "close") // a late client has nothing more to ask
	var s StopRequest
	if err := readRequest(w, r, &s); err != nil {
		return nil, err
	}
	c.waitingClients.Add(1) // before the run can end
	defer c.waitingClients.Add(-1)
	a := c.newAnswer()
	c.requestStop(s.Now)
	if !s.Wait {
		return a, nil
	}
	select {
	case <-c.reportReady:
		writeAnswer(w, &c.ended, nil)
	case <-r.Context().Done():
	}
	return nil, nil
}

// newHTTPServer returns the server of the door.
func (c *Server) newHTTPServer() *http.Server {
	return &http.Server{
		Handler: c, ConnContext: withClient,
		ReadHeaderTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxBody,
		ErrorLog: log.New(io.Discard, "", 0), // clients that misbehave are no news
	}
}
