// Package signals owns the code of a bench's signals: Go that decodes and encodes the frames of its
// buses as package sigmap's tables do.
//
// It writes text and compares nothing: package rt/gen builds a target of it, and the tests run both
// side by side. signals.go has the types of the buses and where bits lie, receive.go the frames
// received, send.go those sent, sum.go the checksums.
//
// Of a bench the decoding and encoding of frames become code, with their
// checksums. What a message has besides stays in the tables of package sigmap, which
// a target is built with: the state machine of end-to-end protection, timeouts, and when a
// message is due, on change too. Their numbers are a handful per message that one text compares with
// counters; written out for each message it would be a second text of what decides whether a
// value counts.
package signals
