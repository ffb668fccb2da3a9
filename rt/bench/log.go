package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/record"
)

// LogPrefix is the prefix of an interface that plays a log, "file:drive.log", or one channel,
// "file:drive.log@can1".
const LogPrefix = "file:"

// IsLog reports whether an interface is a log that takes the place of a bus.
func IsLog(iface string) bool { return strings.HasPrefix(iface, LogPrefix) }

// OpenLog opens the log of an interface; the caller closes it.
func OpenLog(iface string) (*record.Source, error) {
	path, channel := logChannel(iface)
	if err := CheckFile("interface "+iface, path, "log", "BLF", "MDF", "record"); err != nil {
		return nil, err
	}
	return record.OpenSource(path, channel)
}

// LogFilters returns filters that pass the frames of a log that are played on a bus: those that the bench
// receives and, for the port of the bus, requests and packets of longer messages. Claims of addresses are
// past.
func (h *Handover) LogFilters(bus int) []can.Filter {
	list := h.Maps[bus].Filters()
	if h.Loop.Ports>>bus&1 == 1 {
		list = append(list, j1939.Filters(j1939.PGNRequest, j1939.PGNConnection, j1939.PGNPacket)...)
	}
	return list
}

// logChannel splits an interface name into the file and the channel, "" for all channels. A file
// whose own name has an "@" takes precedence.
func logChannel(iface string) (path, channel string) {
	path = strings.TrimPrefix(iface, LogPrefix)
	if i := strings.LastIndexByte(path, '@'); i > 0 {
		if _, err := os.Stat(path); err != nil {
			return path[:i], path[i+1:]
		}
	}

	return path, ""
}

// checkedFrames is the number of frames at the beginning of a log that CheckEnds reads: about 40 MB of
// candump -L, a second of work. The rest is read while the log is played.
const checkedFrames = 1 << 20

// CheckEnds checks the other ends of the buses before the run starts: it reads the beginnings of the
// logs that take the place of buses, and looks for the program of the control unit. The error names the
// file and the line, or in a binary log the byte.
func (b *Bench) CheckEnds() error {
	if err := b.checkProgram(); err != nil {
		return err
	}
	for _, bus := range b.Buses {
		if !IsLog(bus.Interface.Text) {
			continue
		}
		if err := checkLog(bus.Interface.Text); err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}
	return nil
}

func checkLog(iface string) error {
	log, err := OpenLog(iface)
	if err != nil {
		return err
	}
	defer log.Close()
	for range checkedFrames {
		if _, err := log.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
