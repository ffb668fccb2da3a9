package can

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// linkMessage returns a kernel message about an interface of type ARPHRD_CAN.
func linkMessage(kind uint16, index, flags uint32, list []byte) []byte {
	e := binary.NativeEndian
	b := e.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+unix.SizeofIfInfomsg+len(list)))
	b = append(e.AppendUint16(b, kind), make([]byte, 2+4+4)...)
	b = e.AppendUint16(append(b, unix.AF_UNSPEC, 0), unix.ARPHRD_CAN)
	b = e.AppendUint32(e.AppendUint32(b, index), flags)
	return append(append(b, 0, 0, 0, 0), list...)
}

// card returns the attributes of an interface with a controller.
func card(name string, state uint32, tx, rx uint16) []byte {
	e := binary.NativeEndian
	data := appendAttribute(nil, unix.IFLA_CAN_STATE, e.AppendUint32(nil, state))
	data = appendAttribute(data, unix.IFLA_CAN_BERR_COUNTER, e.AppendUint16(e.AppendUint16(nil, tx), rx))
	data = appendAttribute(data, unix.IFLA_CAN_BITTIMING, append(e.AppendUint32(nil, 250_000), make([]byte, 28)...))
	data = appendAttribute(data, unix.IFLA_CAN_RESTART_MS, e.AppendUint32(nil, 100))
	info := appendAttribute(nil, unix.IFLA_INFO_KIND, []byte("can\x00"))
	info = appendAttribute(info, unix.IFLA_INFO_DATA, data)
	list := appendAttribute(nil, unix.IFLA_IFNAME, append([]byte(name), 0))
	return appendAttribute(list, unix.IFLA_LINKINFO|unix.NLA_F_NESTED, info)
}

// links parses the interfaces in the kernel messages b.
func links(b []byte) (list []Link) {
	forEachMessage(b, func(kind uint16, _ uint32, data []byte) {
		if l, ok := parseLink(kind, data); ok {
			list = append(list, l)
		}
	})
	return list
}

func TestLinksAreParsedFromKernelMessages(t *testing.T) {
	b := linkMessage(unix.RTM_NEWLINK, 4, unix.IFF_UP, card("can0", unix.CAN_STATE_BUS_OFF, 248, 3))
	b = append(b, linkMessage(unix.RTM_DELLINK, 5, 0, appendAttribute(appendAttribute(nil, unix.IFLA_IFNAME, []byte("vcan12\x00")),
		unix.IFLA_LINKINFO, appendAttribute(nil, unix.IFLA_INFO_KIND, []byte("vcan\x00"))))...)
	other := linkMessage(unix.RTM_NEWLINK, 1, unix.IFF_UP, nil)
	binary.NativeEndian.PutUint16(other[unix.SizeofNlMsghdr+2:], unix.ARPHRD_ETHER)
	got := links(append(b, other...))
	want := []Link{
		{Index: 4, Name: "can0", Up: true, Card: true, State: Off, HasCounters: true, Tx: 248, Rx: 3, BitRate: 250_000, RestartMs: 100},
		{Index: 5, Name: "vcan12", Gone: true, Virtual: true},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestEveryKernelStateHasAState(t *testing.T) {
	for value, want := range []State{Active, Warning, Passive, Off, Stopped, Stopped, Unknown} {
		got := links(linkMessage(unix.RTM_NEWLINK, 4, 0, card("can0", uint32(value), 0, 0)))
		if len(got) != 1 || got[0].State != want {
			t.Errorf("state %d is %v, want %v", value, got, want)
		}
	}
	if s := State(9).String(); s != "state 9" {
		t.Errorf("an undefined state is called %q", s)
	}
}

func FuzzLinksAreParsedFromAnyBytes(f *testing.F) {
	whole := linkMessage(unix.RTM_NEWLINK, 4, unix.IFF_UP, card("can0", unix.CAN_STATE_BUS_OFF, 248, 3))
	f.Add(whole)
	for i := range len(whole) {
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range links(b) {
			if l.State > Stopped || !l.Card && (l.State != Unknown || l.HasCounters) {
				t.Errorf("%+v of % X", l, b)
			}
		}
	})
}

func TestQueryOfAMissingInterfaceIsErrNoInterface(t *testing.T) {
	l, err := OpenLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, name := range []string{"vcan99", "lo"} {
		if link, err := l.Query(name); !errors.Is(err, ErrNoInterface) {
			t.Errorf("%s: %+v, %v; want %v", name, link, err, ErrNoInterface)
		}
	}
	if err := l.Restart(Link{Name: "lo", Index: 1}); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("restart of lo: %v", err)
	}
	l.Close()
	if _, err := l.Query("lo"); err == nil {
		t.Error("an answer after Close")
	}
}

func TestChangesReportsEachChangeOfAnInterface(t *testing.T) {
	dialOrSkip(t, "vcan0")
	if os.Geteuid() != 0 {
		t.Skip("needs root to add vcan9")
	}
	l, err := OpenLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addInterface(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	asked, err := l.Query("vcan9")
	if err != nil || !asked.Up || asked.Card || !asked.Virtual || asked.Name != "vcan9" {
		t.Errorf("vcan9 is %+v, %v; want it to be up", asked, err)
	}
	ip(t, "link", "set", "vcan9", "down")
	ip(t, "link", "del", "vcan9")
	var got []string
	if !l.Changes(100, func(link Link) {
		if link.Name != "vcan9" || link.Index != asked.Index {
			return
		}
		now := map[bool]string{true: "up", false: "down"}[link.Up]
		if link.Gone {
			now = "gone"
		}
		if len(got) == 0 || got[len(got)-1] != now {
			got = append(got, now)
		}
	}) {
		t.Error("changes were lost")
	}
	if len(got) != 4 || got[0] != "down" || got[1] != "up" || got[2] != "down" || got[3] != "gone" {
		t.Errorf("got %v, want down, up, down, gone", got)
	}
}
