// Package live owns the live page of a run: the HTTP server of the page, who may use it, and the files
// of the page.
//
// The page is a face of the door of the run and knows nothing else: its requests go to the door under
// /door/, with the answers and streams that openapi.json of rt/control describes. The package does not
// know what they mean.
//
// The server listens on 127.0.0.1 only, where any user of the host can connect. The files of the page
// hold nothing of the run and may be read by all. The door needs the token of the run in a header,
// which no other page can set. A Host that is no name of the loopback interface is refused, so a
// foreign name that resolves to 127.0.0.1 (DNS rebinding) reaches nothing.
//
// The files have no build step: modules that the browser loads as they are. They request nothing from
// elsewhere, which the content security policy enforces.
//
// Reading order: server.go (Server, access), page/main.js (what the page shows), page/door.js (requests and
// the stream), page/signals.js (history of signals), page/scope.js and page/plot.js (oscilloscope),
// page/plant.js and page/layout.js (picture of the plant), page/panels.js (inputs, faults), page/parameters.js,
// page/bus.js, page/scenario.js, page/clock.js, page/runs.js.
package live
