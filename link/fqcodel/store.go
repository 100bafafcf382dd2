package fqcodel

// none is the index of nothing, in lists of packets and of flows.
const none = int32(-1)

// packet is one queued item.
type packet[T any] struct {
	item    T
	queued  int64 // when; ns
	next    int32
	left    int32 // bytes not yet cut; 0 from the moment it is aborted
	frame   int32 // bytes of each frame but the last
	frames  int32 // how many it will be cut into
	done    int32 // how many have been cut or skipped
	ect     bool
	aborted bool
	verdict Action // on its next frame, if that is not Send
}

const chunkPackets = 256

// store holds all packets, in chunks that never move. They are linked by index: half the size of a pointer on most
// machines, and nothing for the garbage collector to follow.
type store[T any] struct {
	chunks []*[chunkPackets]packet[T]
	free   int32
}

func (s *store[T]) at(i int32) *packet[T] {
	return &s.chunks[uint32(i)/chunkPackets][uint32(i)%chunkPackets]
}

func (s *store[T]) get() int32 {
	if s.free == none {
		s.grow()
	}
	i := s.free
	s.free = s.at(i).next
	return i
}

func (s *store[T]) put(i int32) {
	p := s.at(i)
	var zero T
	p.item = zero
	p.next = s.free
	s.free = i
}

func (s *store[T]) grow() {
	base := int32(len(s.chunks)) * chunkPackets
	c := new([chunkPackets]packet[T])
	for i := range c {
		c[i].next = base + int32(i) + 1
	}
	c[chunkPackets-1].next = s.free
	s.chunks = append(s.chunks, c)
	s.free = base
}
