package can

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// vcan hands an error frame that is written to it to those who listen, as a
// controller's driver would.
func TestAControllerThatLeavesItsBusIsHeard(t *testing.T) {
	plain := dial(t, "vcan0", Filter{}) // passes all data frames
	e, err := ListenErrors("vcan0")
	if err != nil {
		t.Fatal(err)
	}
	writer := dial(t, "vcan0")
	send(t, writer, 0x123)
	send(t, writer, unix.CAN_ERR_FLAG|unix.CAN_ERR_ACK) // of no interest
	send(t, writer, unix.CAN_ERR_FLAG|unix.CAN_ERR_BUSOFF)
	send(t, writer, unix.CAN_ERR_FLAG|unix.CAN_ERR_RESTARTED)
	for _, want := range []State{BusOff, Restarted} {
		if got, err := e.Next(); got != want || err != nil {
			t.Errorf("state %v, %v; want %v", got, err, want)
		}
	}
	if got := await(plain, 1); len(got) != 1 || got[0] != 0x123 {
		t.Errorf("the plant's socket received %#x, want the data frame alone", got)
	}
	ended := make(chan error)
	go func() {
		_, err := e.Next()
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("Next after Close: no error")
	}
}

// A controller that is off its bus is often brought back by hand, and says nothing.
func TestAnInterfaceThatGoesDownIsAControllerThatStartsAnew(t *testing.T) {
	link(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	e, err := ListenErrors("vcan9")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	writer := dial(t, "vcan9")
	send(t, writer, unix.CAN_ERR_FLAG|unix.CAN_ERR_BUSOFF)
	if got, err := e.Next(); got != BusOff || err != nil {
		t.Fatalf("state %v, %v; want %v", got, err, BusOff)
	}
	ip(t, "link", "set", "vcan9", "down")
	if got, err := e.Next(); got != Restarted || err != nil {
		t.Errorf("interface down: state %v, %v; want %v", got, err, Restarted)
	}
	ip(t, "link", "set", "vcan9", "up")
	writer.Recv(make([]Frame, 1)) // takes the news that it was down
	send(t, writer, unix.CAN_ERR_FLAG|unix.CAN_ERR_BUSOFF)
	if got, err := e.Next(); got != BusOff || err != nil {
		t.Errorf("up again: state %v, %v; want %v", got, err, BusOff)
	}
}

func TestErrorsOfAnInterfaceThatIsNotThereAreRefused(t *testing.T) {
	if e, err := ListenErrors("vcan9"); e != nil || err == nil {
		t.Errorf("%v, %v; want an error", e, err)
	}
}

func TestASharedSocketSendsBesideItsOwner(t *testing.T) {
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Share(target)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Inherit(unit)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	send(t, first, 1)
	send(t, second, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	send(t, second, 3)
	if got := drain(other); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("received %v, want 1, 2, 3", got)
	}
	second.Close()
}
