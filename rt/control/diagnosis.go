package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"lockstep/rt"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
)

// SetDiagnosis sets who takes the commands of the diagnosis. Requests before it are refused.
func (c *Server) SetDiagnosis(d *diagnosis.Desk) { c.desk.Store(d) }

// serveDiagnosis runs a command of the diagnosis, and answers when the unit has. A run in virtual time advances
// until then.
func (c *Server) serveDiagnosis(w http.ResponseWriter, r *http.Request) (any, error) {
	var q diagnosis.UnitRequest
	if err := readRequest(w, r, &q); err != nil {
		return nil, err
	}
	d := c.desk.Load()
	if d == nil {
		return nil, refused{http.StatusConflict, errors.New("uds: the run has no tester yet")}
	}
	done, err := d.Ask(&q)
	if err != nil {
		return nil, fmt.Errorf("uds: %w", err)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the unit may take long
	for {
		var reached chan struct{}
		var again <-chan time.Time // another client may have taken the place of this one
		if c.standing != nil {
			reached, again = make(chan struct{}), time.After(time.Second)
			c.whenStanding(func(*rt.Loop) {
				c.standing.until++
				c.standing.reached, c.standing.left = reached, r.Context().Done()
			})
		}
		select {
		case a := <-done:
			return a, nil
		case <-reached:
			select {
			case a := <-done:
				return a, nil
			default:
			}
		case <-again:
		case <-r.Context().Done():
			return nil, errors.New("uds: the client has left")
		case <-c.reportReady:
			return nil, refused{http.StatusConflict, errors.New("uds: the run has ended")}
		}
	}
}

// diagnosisAnswer is a printable answer to a command of the diagnosis.
type diagnosisAnswer struct{ diagnosis.UnitAnswer }

func (a *diagnosisAnswer) print(to io.Writer) {
	for _, l := range a.Lines {
		fmt.Fprintln(to, l)
	}
}

// failed returns why the unit has not done the command; nil: it has.
func (a *diagnosisAnswer) failed() error {
	if a.Error == "" {
		return nil
	}
	return &host.Exit{Code: 1, Err: errors.New(a.Error)}
}
