package can

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// linkMessage is what the kernel says of an interface of ARPHRD_CAN.
func linkMessage(kind uint16, index, flags uint32, list []byte) []byte {
	e := binary.NativeEndian
	b := e.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+unix.SizeofIfInfomsg+len(list)))
	b = append(e.AppendUint16(b, kind), make([]byte, 2+4+4)...)
	b = e.AppendUint16(append(b, unix.AF_UNSPEC, 0), unix.ARPHRD_CAN)
	b = e.AppendUint32(e.AppendUint32(b, index), flags)
	return append(append(b, 0, 0, 0, 0), list...)
}

// card is the attributes of an interface with a controller.
func card(name string, state uint32, tx, rx uint16) []byte {
	e := binary.NativeEndian
	data := attribute(nil, unix.IFLA_CAN_STATE, e.AppendUint32(nil, state))
	data = attribute(data, unix.IFLA_CAN_BERR_COUNTER, e.AppendUint16(e.AppendUint16(nil, tx), rx))
	data = attribute(data, unix.IFLA_CAN_BITTIMING, append(e.AppendUint32(nil, 250_000), make([]byte, 28)...))
	data = attribute(data, unix.IFLA_CAN_RESTART_MS, e.AppendUint32(nil, 100))
	info := attribute(nil, unix.IFLA_INFO_KIND, []byte("can\x00"))
	info = attribute(info, unix.IFLA_INFO_DATA, data)
	list := attribute(nil, unix.IFLA_IFNAME, append([]byte(name), 0))
	return attribute(list, unix.IFLA_LINKINFO|unix.NLA_F_NESTED, info)
}

// links are those that a message of the kernel is about.
func links(b []byte) (list []Link) {
	messages(b, func(kind uint16, _ uint32, data []byte) {
		if l, ok := parseLink(kind, data); ok {
			list = append(list, l)
		}
	})
	return list
}

func TestLinksAreReadFromWhatTheKernelSays(t *testing.T) {
	b := linkMessage(unix.RTM_NEWLINK, 4, unix.IFF_UP, card("can0", unix.CAN_STATE_BUS_OFF, 248, 3))
	b = append(b, linkMessage(unix.RTM_DELLINK, 5, 0, attribute(attribute(nil, unix.IFLA_IFNAME, []byte("vcan12\x00")),
		unix.IFLA_LINKINFO, attribute(nil, unix.IFLA_INFO_KIND, []byte("vcan\x00"))))...)
	other := linkMessage(unix.RTM_NEWLINK, 1, unix.IFF_UP, nil)
	binary.NativeEndian.PutUint16(other[unix.SizeofNlMsghdr+2:], unix.ARPHRD_ETHER)
	got := links(append(b, other...))
	want := []Link{
		{Index: 4, Name: "can0", Up: true, Card: true, State: Off, Counted: true, Tx: 248, Rx: 3, BitRate: 250_000, RestartMs: 100},
		{Index: 5, Name: "vcan12", Gone: true},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestEveryStateOfTheKernelHasItsName(t *testing.T) {
	for word, want := range []State{Active, Warning, Passive, Off, Stopped, Stopped, Unknown} {
		got := links(linkMessage(unix.RTM_NEWLINK, 4, 0, card("can0", uint32(word), 0, 0)))
		if len(got) != 1 || got[0].State != want {
			t.Errorf("state %d is %v, want %v", word, got, want)
		}
	}
	if s := State(9).String(); s != "state 9" {
		t.Errorf("a state there is not is called %q", s)
	}
}

func FuzzLinksAreReadFromAnyBytes(f *testing.F) {
	whole := linkMessage(unix.RTM_NEWLINK, 4, unix.IFF_UP, card("can0", unix.CAN_STATE_BUS_OFF, 248, 3))
	f.Add(whole)
	for i := range len(whole) {
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range links(b) {
			if l.State > Stopped || !l.Card && (l.State != Unknown || l.Counted) {
				t.Errorf("%+v of % X", l, b)
			}
		}
	})
}

func TestAnInterfaceThatIsNotThereIsTold(t *testing.T) {
	l, err := OpenLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, name := range []string{"vcan99", "lo"} {
		if link, err := l.Ask(name); !errors.Is(err, ErrNoInterface) {
			t.Errorf("%s: %+v, %v; want %v", name, link, err, ErrNoInterface)
		}
	}
	if err := l.Restart(Link{Name: "lo", Index: 1}); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("restart of lo: %v", err)
	}
	l.Close()
	if _, err := l.Ask("lo"); err == nil {
		t.Error("an answer after Close")
	}
}

func TestChangesOfAnInterfaceAreHeard(t *testing.T) {
	dial(t, "vcan0")
	if os.Geteuid() != 0 {
		t.Skip("needs root to add vcan9")
	}
	l, err := OpenLinks()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	asked, err := l.Ask("vcan9")
	if err != nil || !asked.Up || asked.Card || asked.Name != "vcan9" {
		t.Errorf("vcan9 is %+v, %v; want it to be up", asked, err)
	}
	ip(t, "link", "set", "vcan9", "down")
	ip(t, "link", "del", "vcan9")
	var told []string
	if !l.Changes(100, func(link Link) {
		if link.Name != "vcan9" || link.Index != asked.Index {
			return
		}
		now := map[bool]string{true: "up", false: "down"}[link.Up]
		if link.Gone {
			now = "gone"
		}
		if len(told) == 0 || told[len(told)-1] != now {
			told = append(told, now)
		}
	}) {
		t.Error("changes were lost")
	}
	if len(told) != 4 || told[0] != "down" || told[1] != "up" || told[2] != "down" || told[3] != "gone" {
		t.Errorf("told %v, want down, up, down, gone", told)
	}
}
