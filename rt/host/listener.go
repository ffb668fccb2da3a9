package host

import (
	"net"
	"sync"
)

// LimitListener returns a listener that serves most connections at once and closes further ones.
func LimitListener(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, places: make(chan struct{}, most)}
}

type limitedListener struct {
	net.Listener
	places chan struct{}
}

// Accept returns the next connection that has a place.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			conn.Close()
		}
	}
}

// placedConn is a connection with a place.
type placedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection and frees its place.
func (c *placedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
