package steps

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

const CommitEvery = 500 * time.Millisecond

// A Membership is what a member of a group holds, reads and commits: each of its doings is a line
// of JSON. Ending is done when standard input ends, and then the member leaves.
type Membership struct {
	Topic, Group, Protocol, Instance string
	Session                          time.Duration
	Ending                           context.Context

	guard   sync.Mutex
	held    map[int32]bool
	unsaved map[int32]int64
	count   int
}

func NewMembership(w []string) *Membership {
	ctx, end := context.WithCancel(context.Background())
	m := &Membership{Topic: w[0], Group: w[1], Protocol: w[2], Session: 6 * time.Second,
		Ending: ctx, held: map[int32]bool{}, unsaved: map[int32]int64{}}
	options := Pairs(w[3:])
	m.Instance = options["instance"]
	if text, is := options["session"]; is {
		m.Session = time.Duration(Number(text)) * time.Millisecond
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		end()
	}()
	return m
}

func tell(event string, values any) {
	line, err := json.Marshal(map[string]any{"event": event, "values": values})
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

func (m *Membership) tellHeld() {
	all := slices.Sorted(maps.Keys(m.held))
	if all == nil {
		all = []int32{}
	}
	tell("holds", all)
}

func (m *Membership) Assigned(partitions ...int32) {
	m.guard.Lock()
	defer m.guard.Unlock()
	for _, p := range partitions {
		m.held[p] = true
	}
	m.tellHeld()
}

func (m *Membership) Revoked(partitions ...int32) {
	m.guard.Lock()
	defer m.guard.Unlock()
	for _, p := range partitions {
		delete(m.held, p)
		delete(m.unsaved, p)
	}
	m.tellHeld()
}

// Read takes pairs of a partition and an offset.
func (m *Membership) Read(records ...[2]int64) {
	if len(records) == 0 {
		return
	}
	m.guard.Lock()
	defer m.guard.Unlock()
	for _, r := range records {
		m.unsaved[int32(r[0])] = r[1] + 1
	}
	m.count += len(records)
	tell("read", records)
}

// Unsaved is what is to be committed.
func (m *Membership) Unsaved() map[int32]int64 {
	m.guard.Lock()
	defer m.guard.Unlock()
	return maps.Clone(m.unsaved)
}

// Committed ends an attempt to commit these.
func (m *Membership) Committed(offsets map[int32]int64, err error) {
	if err != nil {
		m.Failed(err)
		return
	}
	m.guard.Lock()
	defer m.guard.Unlock()
	pairs := [][2]int64{}
	for p, o := range offsets {
		if m.unsaved[p] == o {
			delete(m.unsaved, p)
		}
		pairs = append(pairs, [2]int64{int64(p), o})
	}
	tell("committed", pairs)
}

func (m *Membership) Failed(err error) {
	m.guard.Lock()
	defer m.guard.Unlock()
	tell("failed", []string{err.Error()})
}

func (m *Membership) Result() (any, error) {
	return Ok("read", m.count)
}
