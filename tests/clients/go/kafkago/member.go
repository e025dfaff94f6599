package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"calque/clients/steps"
)

var balancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{}}

// follow reads one partition until the generation ends.
func follow(ctx context.Context, me *steps.Membership, at kafka.PartitionAssignment) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: me.Topic,
		Partition: at.ID, MinBytes: 1, MaxBytes: 10_000_000, MaxWait: steps.CommitEvery})
	defer r.Close()
	if err := r.SetOffset(at.Offset); err != nil {
		me.Failed(err)
		return
	}
	for {
		m, err := r.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			me.Failed(err)
			time.Sleep(steps.CommitEvery)
			continue
		}
		me.Read([2]int64{int64(m.Partition), m.Offset})
	}
}

func commit(g *kafka.Generation, me *steps.Membership) {
	due := me.Unsaved()
	if len(due) == 0 {
		return
	}
	offsets := map[int]int64{}
	for p, o := range due {
		offsets[int(p)] = o
	}
	me.Committed(due, g.CommitOffsets(map[string]map[int]int64{me.Topic: offsets}))
}

// generation runs in Generation.Start: the group waits for its end before it joins again.
func generation(ctx context.Context, g *kafka.Generation, me *steps.Membership) {
	// The context that the library gives it cannot be derived from.
	following, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var ids []int32
	for _, at := range g.Assignments[me.Topic] {
		ids = append(ids, int32(at.ID))
		all.Go(func() { follow(following, me, at) })
	}
	me.Assigned(ids...)
	saved := time.NewTicker(steps.CommitEvery)
	defer saved.Stop()
	for ctx.Err() == nil && me.Ending.Err() == nil {
		select {
		case <-ctx.Done():
		case <-me.Ending.Done():
		case <-saved.C:
			commit(g, me)
		}
	}
	stop()
	all.Wait()
	commit(g, me)
	me.Revoked(ids...)
}

// The group below the library's Reader, which shows what is assigned.
func member(w []string) (any, error) {
	me := steps.NewMembership(w)
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: me.Group,
		Brokers: []string{bootstrap}, Topics: []string{me.Topic},
		GroupBalancers:    []kafka.GroupBalancer{balancers[me.Protocol]},
		HeartbeatInterval: time.Second, SessionTimeout: me.Session,
		JoinGroupBackoff: steps.CommitEvery, StartOffset: kafka.FirstOffset})
	if err != nil {
		return nil, err
	}
	for me.Ending.Err() == nil {
		g, err := group.Next(me.Ending)
		if errors.Is(err, context.Canceled) || errors.Is(err, kafka.ErrGroupClosed) {
			break
		}
		if err != nil {
			me.Failed(err)
			continue
		}
		g.Start(func(ctx context.Context) { generation(ctx, g, me) })
	}
	if err := group.Close(); err != nil {
		return nil, err
	}
	return me.Result()
}
