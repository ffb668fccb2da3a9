package control

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// doorListener gives each client that connects one of maxClients places. A client that comes when all
// are taken may only stop the run; of these clients the maxStops latest stay connected, so that a flood
// of connections does not keep out the next one.
type doorListener struct {
	*net.UnixListener

	mu      sync.Mutex
	clients int           // clients with a place
	late    []*clientConn // clients without one, the oldest first
}

// clientConn is the connection of a client.
type clientConn struct {
	*net.UnixConn
	door *doorListener

	late     bool // the client has no place
	stopping bool // the client has asked to stop the run: it stays connected. Guarded by door.mu.
	closed   bool // guarded by door.mu
}

// Accept returns the next client. It fails when the listener is closed, and waits while the process has
// no descriptor left.
func (d *doorListener) Accept() (net.Conn, error) {
	for {
		conn, err := d.AcceptUnix()
		if err == nil {
			return d.place(conn), nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond) // a client that disconnects frees a descriptor
	}
}

// place gives a client a place, or makes room for it among the late ones.
func (d *doorListener) place(conn *net.UnixConn) *clientConn {
	d.mu.Lock()
	c := &clientConn{UnixConn: conn, door: d, late: d.clients == maxClients}
	var oldest *clientConn
	if !c.late {
		d.clients++
	} else {
		if len(d.late) >= maxStops {
			if i := slices.IndexFunc(d.late, func(o *clientConn) bool { return !o.stopping }); i >= 0 {
				oldest = d.late[i]
			} else {
				oldest = c // the run ends already
			}
		}
		d.late = append(d.late, c)
	}
	d.mu.Unlock()

	if oldest != nil {
		oldest.Close()
	}
	return c
}

// Close closes the connection and frees its place.
func (c *clientConn) Close() error {
	d := c.door
	d.mu.Lock()
	if !c.closed {
		c.closed = true
		if c.late {
			d.late = slices.DeleteFunc(d.late, func(o *clientConn) bool { return o == c })
		} else {
			d.clients--
		}
	}
	d.mu.Unlock()
	return c.UnixConn.Close()
}

// count returns the number of connected clients.
func (d *doorListener) count() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(d.clients + len(d.late))
}

// clientKey is the key of the clientConn in the context of a request.
type clientKey struct{}

func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// stops marks a client that stops the run. It reports false for a late client that asks for another
// thing.
func stops(r *http.Request) bool {
	c, ok := r.Context().Value(clientKey{}).(*clientConn)
	if !ok || !c.late {
		return true
	}
	if r.URL.Path != "/stop" {
		return false
	}
	c.door.mu.Lock()
	c.stopping = true
	c.door.mu.Unlock()
	return true
}
