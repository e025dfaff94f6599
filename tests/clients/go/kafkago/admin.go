package main

import (
	"github.com/segmentio/kafka-go"

	"calque/clients/steps"
)

type admin struct{ c *kafka.Client }

func first(err error, more map[string]error) error {
	for _, e := range more {
		if err == nil {
			err = e
		}
	}
	return err
}

func (a admin) create(topic string, partitions, copies int64, config []string) (any, error) {
	var entries []kafka.ConfigEntry
	for k, v := range steps.Pairs(config) {
		entries = append(entries, kafka.ConfigEntry{ConfigName: k, ConfigValue: v})
	}
	r, err := a.c.CreateTopics(steps.Within(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: int(copies),
			ConfigEntries: entries}}})
	if err != nil {
		return nil, err
	}
	return nil, first(nil, r.Errors)
}

func (a admin) metadata(topics ...string) (*kafka.MetadataResponse, error) {
	return a.c.Metadata(steps.Within(), &kafka.MetadataRequest{Topics: topics})
}

func ids(brokers []kafka.Broker) []int {
	all := []int{}
	for _, b := range brokers {
		all = append(all, b.ID)
	}
	return all
}

func (a admin) describe(w []string) (any, error) {
	m, err := a.metadata(w[0])
	if err == nil {
		err = m.Topics[0].Error
	}
	if err != nil {
		return nil, err
	}
	all := []any{}
	for _, p := range m.Topics[0].Partitions {
		all = append(all, []any{p.ID, p.Leader.ID, ids(p.Replicas), ids(p.Isr)})
	}
	return steps.Ok("partitions", all)
}

func (a admin) list([]string) (any, error) {
	m, err := a.metadata()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, t := range m.Topics {
		names = append(names, t.Name)
	}
	return steps.Ok("topics", names)
}

func (a admin) cluster([]string) (any, error) {
	m, err := a.metadata()
	if err != nil {
		return nil, err
	}
	nodes := []any{}
	for _, b := range m.Brokers {
		nodes = append(nodes, []any{b.ID, b.Host, b.Port})
	}
	return steps.Ok("id", m.ClusterID, "controller", m.Controller.ID, "nodes", nodes)
}

func (a admin) configs(w []string) (any, error) {
	kind := kafka.ResourceTypeTopic
	if w[0] == "broker" {
		kind = kafka.ResourceTypeBroker
	}
	r, err := a.c.DescribeConfigs(steps.Within(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: w[1]}}})
	if err == nil {
		err = r.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range r.Resources[0].ConfigEntries {
		all[e.ConfigName] = e.ConfigValue
	}
	return steps.Ok("configs", all)
}

func (a admin) alter(w []string) (any, error) {
	var changes []kafka.IncrementalAlterConfigsRequestConfig
	for k, v := range steps.Pairs(w[1:]) {
		changes = append(changes, kafka.IncrementalAlterConfigsRequestConfig{Name: k, Value: v,
			ConfigOperation: kafka.ConfigOperationSet})
	}
	r, err := a.c.IncrementalAlterConfigs(steps.Within(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceName: w[0],
			ResourceType: kafka.ResourceTypeTopic, Configs: changes}}})
	if err == nil {
		err = r.Resources[0].Error
	}
	return nil, err
}

func (a admin) alterAll(w []string) (any, error) {
	var entries []kafka.AlterConfigRequestConfig
	for k, v := range steps.Pairs(w[1:]) {
		entries = append(entries, kafka.AlterConfigRequestConfig{Name: k, Value: v})
	}
	r, err := a.c.AlterConfigs(steps.Within(), &kafka.AlterConfigsRequest{
		Resources: []kafka.AlterConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic,
			ResourceName: w[0], Configs: entries}}})
	if err != nil {
		return nil, err
	}
	for _, e := range r.Errors {
		if e != nil {
			return nil, e
		}
	}
	return nil, nil
}

func (a admin) partitions(w []string) (any, error) {
	r, err := a.c.CreatePartitions(steps.Within(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: w[0], Count: int32(steps.Number(w[1]))}}})
	if err != nil {
		return nil, err
	}
	return nil, first(nil, r.Errors)
}

func (a admin) listOffsets(w []string) (any, error) {
	partition := int(steps.Number(w[1]))
	r, err := a.c.ListOffsets(steps.Within(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{w[0]: {kafka.FirstOffsetOf(partition),
			kafka.LastOffsetOf(partition)}}})
	if err == nil {
		err = r.Topics[w[0]][0].Error
	}
	if err != nil {
		return nil, err
	}
	found := r.Topics[w[0]][0]
	return steps.Ok("offsets", []int64{found.FirstOffset, found.LastOffset})
}

func (a admin) electLeaders(w []string) (any, error) {
	r, err := a.c.ElectLeaders(steps.Within(), &kafka.ElectLeadersRequest{Topic: w[0],
		Partitions: []int{int(steps.Number(w[1]))}, Timeout: steps.Timeout})
	if err == nil && len(r.PartitionResults) > 0 {
		err = r.PartitionResults[0].Error
	}
	return nil, err
}

func (a admin) deleteTopic(w []string) (any, error) {
	r, err := a.c.DeleteTopics(steps.Within(), &kafka.DeleteTopicsRequest{Topics: w[:1]})
	if err != nil {
		return nil, err
	}
	return nil, first(nil, r.Errors)
}

func administration(all map[string]steps.Step, client *kafka.Client) {
	a := admin{client}
	all["create"] = func(w []string) (any, error) {
		return a.create(w[0], steps.Number(w[1]), 1, w[2:])
	}
	all["create-copies"] = func(w []string) (any, error) {
		return a.create(w[0], steps.Number(w[1]), steps.Number(w[2]), w[3:])
	}
	all["describe"], all["list"], all["cluster"] = a.describe, a.list, a.cluster
	all["configs"], all["alter"], all["alter-all"] = a.configs, a.alter, a.alterAll
	all["partitions"], all["list-offsets"], all["elect-leaders"] = a.partitions, a.listOffsets,
		a.electLeaders
	all["reassignments"] = func([]string) (any, error) {
		r, err := a.c.ListPartitionReassignments(steps.Within(),
			&kafka.ListPartitionReassignmentsRequest{})
		if err == nil {
			err = r.Error
		}
		return nil, err
	}
	all["delete"] = a.deleteTopic
}
