package hw

import (
	"bytes"
	"fmt"
	"testing"
)

// A MAC is opened, started, sends a frame and receives it back: the DMA engines of the test loop it.
func Example() {
	port := newFakePort(new(testing.T))
	m, err := Open(port, Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	link, up, err := m.LinkStatus()
	fmt.Println(link, up, err)
	if err := m.SetLink(link); err != nil {
		fmt.Println(err)
	}
	if err := m.Start(); err != nil {
		fmt.Println(err)
	}
	dma := &fakeDMA{}
	dma.attach(port, m)

	header, payload := []byte("\xff\xff\xff\xff\xff\xff\x00\x1e\x06\xc1\x00\x01\x88\xb5"), []byte("hello, wire")
	tx := m.TX()
	tx.Write(0, header)
	tx.Write(len(header), payload)
	if err := tx.Commit(len(header)+len(payload), TXFlags{Interrupt: true}); err != nil {
		fmt.Println(err)
	}
	tx.Kick()

	dma.sendAll()
	dma.receive(dma.sent[0], rdFT)
	fmt.Printf("%+v\n", tx.Reclaim())

	rx := m.RX()
	for {
		f, ok := rx.Next()
		if !ok {
			break
		}
		buf := make([]byte, f.Len)
		rx.CopyOut(buf)
		rx.Release()
		fmt.Println(f.Err, f.Verdict, bytes.Equal(buf[:len(header)], header), string(buf[len(header):]))
	}
	rx.Resume()
	// Output:
	// 1000 Mbit/s full duplex, pause off true <nil>
	// {Frames:1 Slots:1 Bytes:25 Errors:0}
	// none good true hello, wire
}
