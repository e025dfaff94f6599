package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"calque/clients/steps"
)

func both(topic, value string) []*kgo.Record {
	return []*kgo.Record{{Topic: topic, Partition: 0, Value: []byte(value)},
		{Topic: topic, Partition: 1, Value: []byte(value)}}
}

// offset is what a group has committed, or nil.
func offset(group, topic string, partition int32) (any, error) {
	adm := kadm.NewClient(client())
	defer adm.Close()
	all, err := adm.FetchOffsetsForTopics(within(), group, topic)
	if err != nil {
		return nil, err
	}
	found, is := all.Lookup(topic, partition)
	if !is || found.At < 0 {
		return nil, nil
	}
	return found.At, found.Err
}

// transact: this library commits in a transaction only the offsets of what it has read in the
// group, so that it reads so many records.
func transact(w []string) (any, error) {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(w[1]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumerGroup(w[2]),
		kgo.ConsumeTopics(w[3]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	committed, stands := []any{}, 0
	for n, t := range steps.Transactions {
		for got := stands; got <= n; {
			fetches := s.PollRecords(within(), n+1-got)
			if err := fetches.Err(); err != nil {
				return nil, err
			}
			got += fetches.NumRecords()
		}
		if err := s.Begin(); err != nil {
			return nil, err
		}
		if err := s.ProduceSync(within(), both(w[0], t.Value)...).FirstErr(); err != nil {
			return nil, err
		}
		before, err := offset(w[2], w[3], 0)
		if err != nil {
			return nil, err
		}
		committed = append(committed, before)
		done, err := s.End(within(), kgo.TransactionEndTry(t.Commit))
		if err != nil {
			return nil, err
		}
		if done != t.Commit {
			return nil, fmt.Errorf("%s: committed is %v", t.Value, done)
		}
		if done {
			stands = n + 1
		}
	}
	return steps.Ok("committed", committed)
}

func begin(c *kgo.Client, topic, value string) error {
	if err := c.BeginTransaction(); err != nil {
		return err
	}
	return c.ProduceSync(within(), both(topic, value)...).FirstErr()
}

func fence(w []string) (any, error) {
	options := []kgo.Opt{kgo.TransactionalID(w[1]), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	first, second := client(options...), client(options...)
	defer first.Close()
	defer second.Close()
	if err := begin(first, w[0], "lost"); err != nil {
		return nil, err
	}
	err := begin(second, w[0], "kept")
	if err == nil {
		err = second.EndTransaction(within(), kgo.TryCommit)
	}
	if err != nil {
		return nil, errors.New("second: " + err.Error())
	}
	return nil, first.EndTransaction(within(), kgo.TryCommit)
}

func consumeIsolated(w []string) (any, error) {
	isolation := kgo.ReadUncommitted()
	if w[2] == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	c := consumer(w[0], int32(steps.Number(w[1])), kgo.NewOffset().AtStart(),
		kgo.FetchIsolationLevel(isolation))
	defer c.Close()
	records, err := read(c, int(steps.Number(w[3])))
	if err != nil {
		return nil, err
	}
	return steps.Ok("records", records)
}
