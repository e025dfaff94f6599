package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

	"calque/clients/steps"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range": sarama.NewBalanceStrategyRange, "roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

type handler struct{ *steps.Membership }

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim runs once for each partition, as long as it is held.
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession,
	claim sarama.ConsumerGroupClaim) error {
	h.Assigned(claim.Partition())
	defer h.Revoked(claim.Partition())
	// It shows no success, and failures on another channel: nothing is told.
	defer session.Commit()
	saved := time.NewTicker(steps.CommitEvery)
	defer saved.Stop()
	for {
		select {
		case m, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(m, "")
			h.Read([2]int64{int64(m.Partition), m.Offset})
		case <-saved.C:
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func member(w []string) (any, error) {
	me := steps.NewMembership(w)
	c := config()
	c.Consumer.Offsets.AutoCommit.Enable, c.Consumer.Offsets.Initial = false, sarama.OffsetOldest
	c.Consumer.Group.Session.Timeout = me.Session
	c.Consumer.Group.Heartbeat.Interval = time.Second
	c.Consumer.Group.InstanceId = me.Instance
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[me.Protocol]()}
	c.Consumer.Group.Rebalance.Retry.Backoff = steps.CommitEvery / 2
	c.Consumer.Return.Errors = true
	group, err := sarama.NewConsumerGroup(bootstrap, me.Group, c)
	if err != nil {
		return nil, err
	}
	go func() {
		for err := range group.Errors() {
			me.Failed(err)
		}
	}()
	for me.Ending.Err() == nil {
		// It returns at each rebalance, and with an error when the broker is away for long.
		err := group.Consume(me.Ending, []string{me.Topic}, handler{me})
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			me.Failed(err)
			time.Sleep(steps.CommitEvery)
		}
	}
	if err := group.Close(); err != nil {
		return nil, err
	}
	return me.Result()
}
