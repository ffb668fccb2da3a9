// Package metrics owns the figures of a run for a fleet: it states them in the text format of Prometheus
// and answers the requests of a Prometheus server. It changes nothing in a run. All figures come from the
// status block and from the supervisor; the loop knows nothing of them.
//
// A client library is not used: that of VictoriaMetrics writes no help texts, which promtool demands, and
// that of Prometheus brings protocol buffers into the binary that the target executes. The format is three
// kinds of lines.
//
// Reading order: text.go (the format), run.go (the figures, Run), disk.go (the free space of a disk that may hang),
// server.go (Server).
package metrics
