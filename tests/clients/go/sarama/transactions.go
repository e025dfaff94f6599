package main

import (
	"errors"

	"github.com/IBM/sarama"

	"calque/clients/steps"
)

func transactional(id string) (sarama.SyncProducer, error) {
	c := config()
	c.Producer.Transaction.ID, c.Producer.Idempotent, c.Net.MaxOpenRequests = id, true, 1
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes, c.Producer.Return.Errors = true, true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	return sarama.NewSyncProducer(bootstrap, c)
}

// begin begins a transaction with the value in both partitions.
func begin(p sarama.SyncProducer, topic, value string) error {
	if err := p.BeginTxn(); err != nil {
		return err
	}
	for partition := range int32(2) {
		if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: partition,
			Value: sarama.StringEncoder(value)}); err != nil {
			return err
		}
	}
	return nil
}

// offset is what a group has committed, or nil.
func offset(group, topic string, partition int32) (any, error) {
	admin, err := sarama.NewClusterAdmin(bootstrap, config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	if err != nil {
		return nil, err
	}
	found := answer.GetBlock(topic, partition)
	if found == nil || found.Offset < 0 {
		return nil, nil
	}
	if found.Err != sarama.ErrNoError {
		return nil, found.Err
	}
	return found.Offset, nil
}

func transact(w []string) (any, error) {
	p, err := transactional(w[1])
	if err != nil {
		return nil, err
	}
	defer p.Close()
	committed := []any{}
	for n, t := range steps.Transactions {
		if err := begin(p, w[0], t.Value); err != nil {
			return nil, err
		}
		before, err := offset(w[2], w[3], 0)
		if err != nil {
			return nil, err
		}
		committed = append(committed, before)
		if err := p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
			w[3]: {{Partition: 0, Offset: int64(n + 1), LeaderEpoch: -1}}}, w[2]); err != nil {
			return nil, err
		}
		end := p.AbortTxn
		if t.Commit {
			end = p.CommitTxn
		}
		if err := end(); err != nil {
			return nil, err
		}
	}
	return steps.Ok("committed", committed)
}

func fence(w []string) (any, error) {
	first, err := transactional(w[1])
	if err != nil {
		return nil, err
	}
	defer first.Close()
	if err := begin(first, w[0], "lost"); err != nil {
		return nil, err
	}
	second, err := transactional(w[1])
	if err != nil {
		return nil, errors.New("second: " + err.Error())
	}
	defer second.Close()
	if err := begin(second, w[0], "kept"); err != nil {
		return nil, errors.New("second: " + err.Error())
	}
	if err := second.CommitTxn(); err != nil {
		return nil, errors.New("second: " + err.Error())
	}
	return nil, first.CommitTxn()
}

func consumeIsolated(w []string) (any, error) {
	isolation := sarama.ReadUncommitted
	if w[2] == "read_committed" {
		isolation = sarama.ReadCommitted
	}
	return consumeFrom(w, sarama.OffsetOldest, isolation)
}
