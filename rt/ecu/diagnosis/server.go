package diagnosis

import "time"

// Negative response codes, ISO 14229-1, annex A.
const (
	generalReject           = 0x10
	serviceNotSupported     = 0x11
	subFunctionNotSupported = 0x12
	wrongLength             = 0x13
	responseTooLong         = 0x14
	busyRepeatRequest       = 0x21
	ConditionsNotCorrect    = 0x22
	requestSequenceError    = 0x24
	RequestOutOfRange       = 0x31
	securityAccessDenied    = 0x33
	invalidKey              = 0x35
	exceededAttempts        = 0x36
	timeDelayNotExpired     = 0x37
	transferDataSuspended   = 0x71
	programmingFailure      = 0x72
	wrongBlockCounter       = 0x73
	responsePending         = 0x78
	notInThisSession        = 0x7F // serviceNotSupportedInActiveSession
	subFunctionNotInSession = 0x7E
	VehicleSpeedTooHigh     = 0x88
)

// Sessions.
const (
	defaultSession = 1 + iota
	programmingSession
	extendedSession
)

// Times of the server.
const (
	p2      = 50 * time.Millisecond // longest time to an answer, reported by DiagnosticSessionControl
	p2Star  = 5 * time.Second       // the same after a response pending
	s3      = 5 * time.Second       // time without a request after which a session ends
	pending = 2 * time.Second       // time between two responses pending
	boot    = 200 * time.Millisecond
)

// Resets of Config.Reset, the subfunctions of ECUReset.
const (
	HardReset = 1 + iota
	KeyOffOn
	SoftReset
)

// Config is what a unit gives to its diagnosis server.
type Config struct {
	Request, Response, Functional uint32 // identifiers of 11 bits
	Send                          func(id uint32, data [8]byte) error

	Memory      *Memory
	Snapshot    []uint16 // identifiers of a snapshot
	Identifiers []Identifier
	Routines    []Routine
	PIDs        []PID // of services 1 and 2

	VIN, Software, Name string
	Standstill          func() bool
	Reset               func(kind byte) // restarts the unit
}

// Server is the diagnosis server of a unit. It handles one request at a time. It is not safe for concurrent use.
type Server struct {
	Config
	line *transport

	session   byte
	active    time.Duration // last request in the session, or its answer
	now       time.Duration
	silent    byte          // messages that the unit does not send: NormalMessages, NetworkManagement
	deaf      byte          // the same for messages that it does not receive
	restarted time.Duration // instant from which it answers after a reset

	job *job

	access     access
	download   download
	controlled map[uint16]bool // identifiers under the control of the tester
	finished   map[uint16]bool // routines that have run or run
}

// job is an operation that takes time. The server answers when it is over, and responses pending until then.
type job struct {
	service    byte
	functional bool
	finish     func() ([]byte, byte)
	done, next time.Duration // instants of the end and of the next response pending
}

// reply is the outcome of a service: a positive response without its identifier, or a negative response code.
type reply struct {
	data []byte
	code byte // 0: positive
}

func refuse(code byte) reply { return reply{code: code} }

// New returns the server of a unit.
func New(c Config) *Server {
	s := &Server{Config: c, session: defaultSession}
	s.line = newTransport(func(data [8]byte) error { return c.Send(c.Response, data) })
	s.Memory.Capture = s.snapshot
	s.Identifiers = append(s.own(), s.Identifiers...)
	s.Routines = append(s.ownRoutines(), s.Routines...)
	s.download.erase()
	s.controlled, s.finished = map[uint16]bool{}, map[uint16]bool{}
	return s
}

// Receive takes a frame from the bus at an instant, and reports whether it is one of the server's identifiers.
func (s *Server) Receive(id uint32, data []byte, now time.Duration) bool {
	if id != s.Request && id != s.Functional {
		return false
	}
	s.now = now
	s.expire()
	functional := id == s.Functional
	if now < s.restarted {
		return true
	}
	if s.session != defaultSession && !functional && len(data) > 0 && data[0]>>4 <= consecutiveFrame {
		s.active = now // a long request keeps the session
	}
	if request := s.line.receive(data, functional, now); request != nil {
		s.handle(request, functional)
	}
	return true
}

// Due returns the next instant at which Advance has work; a distant one if there is nothing to do.
func (s *Server) Due() time.Duration {
	due := s.line.wake()
	if s.job != nil && !s.line.sending() {
		due = min(due, s.job.done, s.job.next)
	}
	return due
}

// Advance sends what is due. The error is that of Config.Send.
func (s *Server) Advance(now time.Duration) error {
	s.now = now
	if j := s.job; j != nil && !s.line.sending() {
		if now >= j.done {
			s.job = nil
			data, code := j.finish()
			s.answer(j.service, reply{data, code}, j.functional)
		} else if now >= j.next {
			j.next = now + pending
			s.line.transmit([]byte{0x7F, j.service, responsePending}, now)
		}
	}
	s.expire()
	return s.line.advance(now)
}

// InSession reports whether a session other than the default one is active.
func (s *Server) InSession() bool {
	s.expire()
	return s.session != defaultSession
}

// Messages of CommunicationControl.
const (
	NormalMessages = 1 << iota
	NetworkManagement
)

// Silent reports whether the tester keeps the unit from sending messages.
func (s *Server) Silent(messages byte) bool { return s.silent&messages != 0 }

// Deaf reports whether the tester keeps the unit from receiving messages.
func (s *Server) Deaf(messages byte) bool { return s.deaf&messages != 0 }

// expire ends a session after S3 without a request.
func (s *Server) expire() {
	if s.session != defaultSession && s.job == nil && !s.line.sending() && s.now-s.active > s3 {
		s.enter(defaultSession)
	}
}

// enter begins a session. Every change locks the unit; the default session ends what the tester has set.
func (s *Server) enter(session byte) {
	s.session, s.active = session, s.now
	s.access.lock()
	s.download.stop()
	if session != extendedSession {
		s.returnControl()
	}
	if session == defaultSession {
		s.silent, s.deaf, s.Memory.frozen = 0, 0, false
	}
}

// handle answers a request.
func (s *Server) handle(request []byte, functional bool) {
	if request[0] == 0x3E && len(request) == 2 && request[1] == 0x80 {
		s.active = s.now
		return
	}
	if s.line.sending() {
		return // the tester must wait for the answer
	}
	s.active = s.now
	if s.job != nil {
		if !functional {
			s.answer(request[0], refuse(busyRepeatRequest), false)
		}
		return
	}
	r, ok := s.serveOBD(request, functional)
	if !ok {
		r = s.serve(request)
	}
	if s.job != nil {
		s.job.service, s.job.functional = request[0], functional
		return
	}
	if r.code == 0 && (r.data == nil || suppressed(request)) {
		return
	}
	s.answer(request[0], r, functional)
}

// suppressed reports whether a request suppresses the positive response.
func suppressed(request []byte) bool {
	return services[request[0]].subfunction && len(request) > 1 && request[1]&0x80 != 0
}

// answer sends the response to a service. A functional request gets no answer that says that the unit does not
// have what is asked.
func (s *Server) answer(id byte, r reply, functional bool) {
	switch r.code {
	case serviceNotSupported, subFunctionNotSupported, RequestOutOfRange, subFunctionNotInSession, notInThisSession:
		if functional {
			return
		}
	}
	if len(r.data) > 4094 { // longest ISO-TP message of classic CAN: 4095 bytes
		r = refuse(responseTooLong)
	}
	message := append([]byte{id + 0x40}, r.data...)
	if r.code != 0 {
		message = []byte{0x7F, id, r.code}
	}
	s.active = s.now
	s.line.transmit(message, s.now+reaction)
}

// later answers after a time with the outcome of finish.
func (s *Server) later(after time.Duration, finish func() ([]byte, byte)) reply {
	s.job = &job{finish: finish, done: s.now + after, next: s.now + p2/2}
	return reply{}
}

// service is a service of UDS. A request has at least least bytes.
type service struct {
	least       int
	subfunction bool // the second byte is a subfunction, with the bit that suppresses the response
	extended    bool // not in the default session
	serve       func(s *Server, request []byte) reply
}

// services are the services of UDS by their identifier.
var services = map[byte]service{
	0x10: {2, true, false, (*Server).controlSession},
	0x11: {2, true, false, (*Server).reset},
	0x14: {4, false, false, (*Server).clear},
	0x19: {2, true, false, (*Server).readTroubleCodes},
	0x22: {3, false, false, (*Server).readData},
	0x27: {2, true, true, (*Server).secure},
	0x28: {3, true, true, (*Server).controlCommunication},
	0x2E: {4, false, true, (*Server).writeData},
	0x2F: {4, false, true, (*Server).controlOutput},
	0x31: {4, true, true, (*Server).routine},
	0x34: {4, false, true, (*Server).requestDownload},
	0x36: {2, false, true, (*Server).transfer},
	0x37: {1, false, true, (*Server).exitTransfer},
	0x3E: {2, true, false, (*Server).testerPresent},
	0x85: {2, true, true, (*Server).controlSetting},
}

// serve handles a request of UDS.
func (s *Server) serve(request []byte) reply {
	v, ok := services[request[0]]
	switch {
	case !ok:
		return refuse(serviceNotSupported)
	case v.extended && s.session == defaultSession:
		return refuse(notInThisSession)
	case len(request) < v.least:
		return refuse(wrongLength)
	}
	if v.subfunction {
		request = append([]byte{}, request...)
		request[1] &^= 0x80
	}
	return v.serve(s, request)
}

// controlSession is service 10. Programming needs the extended session and a standing car.
func (s *Server) controlSession(request []byte) reply {
	to := request[1]
	switch {
	case len(request) != 2:
		return refuse(wrongLength)
	case to < defaultSession || to > extendedSession:
		return refuse(subFunctionNotSupported)
	case to == programmingSession && s.session == defaultSession:
		return refuse(subFunctionNotInSession)
	case to == programmingSession && !s.Standstill():
		return refuse(VehicleSpeedTooHigh)
	}
	s.enter(to)
	ms, tens := p2.Milliseconds(), p2Star.Milliseconds()/10
	return reply{data: []byte{to, byte(ms >> 8), byte(ms), byte(tens >> 8), byte(tens)}}
}

// reset is service 11. The unit restarts once the response is sent.
func (s *Server) reset(request []byte) reply {
	kind := request[1]
	switch {
	case len(request) != 2:
		return refuse(wrongLength)
	case kind < HardReset || kind > SoftReset:
		return refuse(subFunctionNotSupported)
	case !s.Standstill():
		return refuse(VehicleSpeedTooHigh)
	}
	s.enter(defaultSession)
	clear(s.finished)
	s.Reset(kind)
	s.restarted = s.now + boot
	return reply{data: []byte{kind}}
}

// controlCommunication is service 28, for normal messages and those of the network management.
func (s *Server) controlCommunication(request []byte) reply {
	what, which := request[1], request[2]
	switch {
	case len(request) != 3:
		return refuse(wrongLength)
	case what > 3:
		return refuse(subFunctionNotSupported)
	case which < 1 || which > 3:
		return refuse(RequestOutOfRange)
	}
	s.silent, s.deaf = s.silent&^which, s.deaf&^which
	if what&1 != 0 {
		s.silent |= which
	}
	if what&2 != 0 {
		s.deaf |= which
	}
	return reply{data: []byte{what}}
}

// testerPresent is service 3E.
func (s *Server) testerPresent(request []byte) reply {
	switch {
	case len(request) != 2:
		return refuse(wrongLength)
	case request[1] != 0:
		return refuse(subFunctionNotSupported)
	}
	return reply{data: []byte{0}}
}
