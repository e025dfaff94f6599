package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"calque/clients/steps"
)

var made sarama.ClusterAdmin

func adm() sarama.ClusterAdmin {
	if made == nil {
		var err error
		if made, err = sarama.NewClusterAdmin(bootstrap, config()); err != nil {
			panic(err)
		}
	}
	return made
}

func pointers(words []string) map[string]*string {
	all := map[string]*string{}
	for k, v := range steps.Pairs(words) {
		all[k] = &v
	}
	return all
}

func create(topic string, partitions, copies int64, config []string) (any, error) {
	return nil, adm().CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions),
		ReplicationFactor: int16(copies), ConfigEntries: pointers(config)}, false)
}

func describe(w []string) (any, error) {
	topics, err := adm().DescribeTopics([]string{w[0]})
	if err != nil {
		return nil, err
	}
	if topics[0].Err != sarama.ErrNoError {
		return nil, topics[0].Err
	}
	all := []any{}
	for _, p := range topics[0].Partitions {
		all = append(all, []any{p.ID, p.Leader, p.Replicas, p.Isr})
	}
	return steps.Ok("partitions", all)
}

func list([]string) (any, error) {
	topics, err := adm().ListTopics()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name := range topics {
		names = append(names, name)
	}
	return steps.Ok("topics", sorted(names))
}

func cluster([]string) (any, error) {
	brokers, controller, err := adm().DescribeCluster()
	if err != nil {
		return nil, err
	}
	nodes := []any{}
	for _, b := range brokers {
		var host string
		var port int
		if _, err := fmt.Sscanf(b.Addr(), "127.0.0.1:%d", &port); err == nil {
			host = "127.0.0.1"
		}
		nodes = append(nodes, []any{b.ID(), host, port})
	}
	// This library does not tell the cluster's id.
	return steps.Ok("id", "not told", "controller", controller, "nodes", nodes)
}

func configs(w []string) (any, error) {
	kind := sarama.TopicResource
	if w[0] == "broker" {
		kind = sarama.BrokerResource
	}
	entries, err := adm().DescribeConfig(sarama.ConfigResource{Type: kind, Name: w[1]})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name] = e.Value
	}
	return steps.Ok("configs", all)
}

func alter(w []string) (any, error) {
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for k, v := range pointers(w[1:]) {
		entries[k] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: v}
	}
	return nil, adm().IncrementalAlterConfig(sarama.TopicResource, w[0], entries, false)
}

func logDirs([]string) (any, error) {
	brokers, err := adm().DescribeLogDirs([]int32{1})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, dirs := range brokers {
		for _, dir := range dirs {
			if dir.ErrorCode != sarama.ErrNoError {
				return nil, dir.ErrorCode
			}
			for _, topic := range dir.Topics {
				for _, p := range topic.Partitions {
					names = append(names, fmt.Sprintf("%s-%d", topic.Topic, p.PartitionID))
				}
			}
		}
	}
	return steps.Ok("partitions", sorted(names))
}

func electLeaders(w []string) (any, error) {
	partition := int32(steps.Number(w[1]))
	found, err := adm().ElectLeaders(sarama.PreferredElection, map[string][]int32{w[0]: {partition}})
	if err != nil {
		return nil, err
	}
	if e := found[w[0]][partition]; e != nil && e.ErrorCode != sarama.ErrNoError {
		return nil, e.ErrorCode
	}
	return nil, nil
}

func quotas(w []string) (any, error) {
	match := []sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityClientID,
		MatchType: sarama.QuotaMatchExact, Match: w[0]}}
	entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityClientID,
		MatchType: sarama.QuotaMatchExact, Name: w[0]}}
	key := "producer_byte_rate"
	if err := adm().AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: key, Value: 1e9},
		false); err != nil {
		return nil, err
	}
	steps.Pause(w[1])
	found, err := adm().DescribeClientQuotas(match, true)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("the quota is not there")
	}
	if err := adm().AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: key, Remove: true},
		false); err != nil {
		return nil, err
	}
	steps.Pause(w[1])
	left, err := adm().DescribeClientQuotas(match, true)
	if err != nil {
		return nil, err
	}
	return steps.Ok("rate", found[0].Values[key], "left", len(left))
}

func listOffsets(w []string) (any, error) {
	partition, all := int32(steps.Number(w[1])), []int64{}
	for _, t := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
		found, err := adm().ListOffsets(map[string]map[int32]int64{w[0]: {partition: t}}, nil)
		if err != nil {
			return nil, err
		}
		o := found[w[0]][partition]
		if o.Err != sarama.ErrNoError {
			return nil, o.Err
		}
		all = append(all, o.Offset)
	}
	return steps.Ok("offsets", all)
}

func administration(all map[string]steps.Step) {
	all["create"] = func(w []string) (any, error) {
		return create(w[0], steps.Number(w[1]), 1, w[2:])
	}
	all["create-copies"] = func(w []string) (any, error) {
		return create(w[0], steps.Number(w[1]), steps.Number(w[2]), w[3:])
	}
	all["describe"], all["list"], all["cluster"], all["configs"] = describe, list, cluster, configs
	all["alter"] = alter
	all["alter-all"] = func(w []string) (any, error) {
		return nil, adm().AlterConfig(sarama.TopicResource, w[0], pointers(w[1:]), false)
	}
	all["partitions"] = func(w []string) (any, error) {
		return nil, adm().CreatePartitions(w[0], int32(steps.Number(w[1])), nil, false)
	}
	all["delete-records"] = func(w []string) (any, error) {
		// This library does not tell the low watermark: it is asked for.
		partition, offset := int32(steps.Number(w[1])), steps.Number(w[2])
		if err := adm().DeleteRecords(w[0], map[int32]int64{partition: offset}); err != nil {
			return nil, err
		}
		found, err := offsets(w[0], w[1], sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		return steps.Ok("low", found[0])
	}
	all["log-dirs"], all["elect-leaders"], all["quotas"] = logDirs, electLeaders, quotas
	all["list-offsets"] = listOffsets
	all["reassignments"] = func([]string) (any, error) {
		_, err := adm().ListPartitionReassignments("shared", []int32{0})
		return nil, err
	}
	all["delete"] = func(w []string) (any, error) { return nil, adm().DeleteTopic(w[0]) }
}
