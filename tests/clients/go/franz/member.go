package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"calque/clients/steps"
)

var balancers = map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(),
	"roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer()}

func commit(c *kgo.Client, me *steps.Membership) {
	due := me.Unsaved()
	if len(due) == 0 {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	for p, o := range due {
		offsets[p] = kgo.EpochOffset{Epoch: -1, Offset: o}
	}
	var failed error
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	c.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{me.Topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			failed = committed(answer, err)
		})
	me.Committed(due, failed)
}

func member(w []string) (any, error) {
	me := steps.NewMembership(w)
	options := []kgo.Opt{kgo.ConsumerGroup(me.Group), kgo.ConsumeTopics(me.Topic),
		kgo.DisableAutoCommit(), kgo.SessionTimeout(me.Session), kgo.BlockRebalanceOnPoll(),
		kgo.HeartbeatInterval(time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, all map[string][]int32) {
			me.Assigned(all[me.Topic]...)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, c *kgo.Client, all map[string][]int32) {
			commit(c, me)
			me.Revoked(all[me.Topic]...)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, all map[string][]int32) {
			me.Revoked(all[me.Topic]...)
		})}
	if me.Instance != "" {
		options = append(options, kgo.InstanceID(me.Instance))
	}
	if me.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		options = append(options, kgo.Balancers(balancers[me.Protocol]))
	}
	c := client(options...)
	saved := time.Now()
	for me.Ending.Err() == nil {
		ctx, stop := context.WithTimeout(me.Ending, steps.CommitEvery/2)
		fetches := c.PollRecords(ctx, 500)
		stop()
		var records [][2]int64
		fetches.EachRecord(func(r *kgo.Record) {
			records = append(records, [2]int64{int64(r.Partition), r.Offset})
		})
		me.Read(records...)
		if time.Since(saved) > steps.CommitEvery {
			commit(c, me)
			saved = time.Now()
		}
		c.AllowRebalance()
	}
	commit(c, me)
	c.CloseAllowingRebalance()
	return me.Result()
}
