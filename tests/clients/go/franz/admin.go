package main

import (
	"fmt"
	"sort"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"calque/clients/steps"
)

var adm *kadm.Client

func pointers(words []string) map[string]*string {
	all := map[string]*string{}
	for k, v := range steps.Pairs(words) {
		all[k] = &v
	}
	return all
}

func create(topic string, partitions, copies int64, config []string) (any, error) {
	r, err := adm.CreateTopic(within(), int32(partitions), int16(copies), pointers(config), topic)
	if err == nil {
		err = r.Err
	}
	return nil, err
}

func partitions(d kadm.TopicDetail) []any {
	all := []any{}
	for _, p := range d.Partitions.Sorted() {
		all = append(all, []any{p.Partition, p.Leader, p.Replicas, p.ISR})
	}
	return all
}

func describe(w []string) (any, error) {
	topics, err := adm.ListTopics(within(), w[0])
	if err == nil {
		err = topics[w[0]].Err
	}
	if err != nil {
		return nil, err
	}
	return steps.Ok("partitions", partitions(topics[w[0]]))
}

func list([]string) (any, error) {
	topics, err := adm.ListTopics(within())
	if err != nil {
		return nil, err
	}
	return steps.Ok("topics", topics.Names())
}

func cluster([]string) (any, error) {
	m, err := adm.BrokerMetadata(within())
	if err != nil {
		return nil, err
	}
	nodes := []any{}
	for _, b := range m.Brokers {
		nodes = append(nodes, []any{b.NodeID, b.Host, b.Port})
	}
	return steps.Ok("id", m.Cluster, "controller", m.Controller, "nodes", nodes)
}

func configs(w []string) (any, error) {
	var found kadm.ResourceConfigs
	var err error
	if w[0] == "topic" {
		found, err = adm.DescribeTopicConfigs(within(), w[1])
	} else {
		found, err = adm.DescribeBrokerConfigs(within(), int32(steps.Number(w[1])))
	}
	if err == nil {
		err = found[0].Err
	}
	if err != nil {
		return nil, err
	}
	all := map[string]*string{}
	for _, c := range found[0].Configs {
		all[c.Key] = c.Value
	}
	return steps.Ok("configs", all)
}

func alter(w []string, all bool) (any, error) {
	var changes []kadm.AlterConfig
	for k, v := range pointers(w[1:]) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: v})
	}
	change := adm.AlterTopicConfigs
	if all {
		change = adm.AlterTopicConfigsState
	}
	done, err := change(within(), changes, w[0])
	if err == nil {
		err = done[0].Err
	}
	return nil, err
}

func deleteRecords(w []string) (any, error) {
	at := kadm.Offsets{}
	at.Add(kadm.Offset{Topic: w[0], Partition: int32(steps.Number(w[1])), At: steps.Number(w[2])})
	done, err := adm.DeleteRecords(within(), at)
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return nil, err
	}
	r, _ := done.Lookup(w[0], int32(steps.Number(w[1])))
	return steps.Ok("low", r.LowWatermark)
}

func logDirs([]string) (any, error) {
	dirs, err := adm.DescribeAllLogDirs(within(), nil)
	if err == nil {
		err = dirs[1].Error()
	}
	if err != nil {
		return nil, err
	}
	found := []string{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			found = append(found, fmt.Sprintf("%s-%d", p.Topic, p.Partition))
		})
	})
	sort.Strings(found)
	return steps.Ok("partitions", found)
}

func listOffsets(w []string) (any, error) {
	found := []int64{}
	for _, list := range []func(string) (kadm.ListedOffsets, error){
		func(t string) (kadm.ListedOffsets, error) { return adm.ListStartOffsets(within(), t) },
		func(t string) (kadm.ListedOffsets, error) { return adm.ListEndOffsets(within(), t) },
		func(t string) (kadm.ListedOffsets, error) { return adm.ListMaxTimestampOffsets(within(), t) },
		func(t string) (kadm.ListedOffsets, error) { return adm.ListLocalLogStartOffsets(within(), t) },
	} {
		listed, err := list(w[0])
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return nil, err
		}
		o, _ := listed.Lookup(w[0], int32(steps.Number(w[1])))
		found = append(found, o.Offset)
	}
	return steps.Ok("offsets", found)
}

func quotas(w []string) (any, error) {
	kind, key := "client-id", "producer_byte_rate"
	entity := kadm.ClientQuotaEntity{{Type: kind, Name: &w[0]}}
	set := func(remove bool) error {
		done, err := adm.AlterClientQuotas(within(), []kadm.AlterClientQuotaEntry{{Entity: entity,
			Ops: []kadm.AlterClientQuotaOp{{Key: key, Value: 1e9, Remove: remove}}}})
		if err == nil {
			err = done[0].Err
		}
		return err
	}
	get := func() (kadm.DescribedClientQuotas, error) {
		return adm.DescribeClientQuotas(within(), true, []kadm.DescribeClientQuotaComponent{
			{Type: kind, MatchName: &w[0], MatchType: 0}})
	}
	if err := set(false); err != nil {
		return nil, err
	}
	steps.Pause(w[1])
	found, err := get()
	if err != nil {
		return nil, err
	}
	if err := set(true); err != nil {
		return nil, err
	}
	steps.Pause(w[1])
	left, err := get()
	if err != nil {
		return nil, err
	}
	return steps.Ok("rate", found[0].Values[0].Value, "left", len(left))
}

func producers(w []string) (any, error) {
	set := kadm.TopicsSet{}
	set.Add(w[0], int32(steps.Number(w[1])))
	found, err := adm.DescribeProducers(within(), set)
	if err != nil {
		return nil, err
	}
	p := found[w[0]].Partitions[int32(steps.Number(w[1]))]
	if p.Err != nil {
		return nil, p.Err
	}
	return steps.Ok("count", len(p.ActiveProducers))
}

func electLeaders(w []string) (any, error) {
	set := kadm.TopicsSet{}
	set.Add(w[0], int32(steps.Number(w[1])))
	found, err := adm.ElectLeaders(within(), kadm.ElectPreferredReplica, set)
	if err == nil {
		err = found[w[0]][int32(steps.Number(w[1]))].Err
	}
	return nil, err
}

func configResources([]string) (any, error) {
	found, err := adm.ListConfigResources(within(), kadm.ConfigResourceTopic)
	if err == nil {
		err = found.Err
	}
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, r := range found.Resources {
		names = append(names, r.Name)
	}
	return steps.Ok("topics", names)
}

func administration(all map[string]steps.Step) {
	adm = kadm.NewClient(client())
	all["create"] = func(w []string) (any, error) {
		return create(w[0], steps.Number(w[1]), 1, w[2:])
	}
	all["create-copies"] = func(w []string) (any, error) {
		return create(w[0], steps.Number(w[1]), steps.Number(w[2]), w[3:])
	}
	all["describe"], all["list"], all["cluster"], all["configs"] = describe, list, cluster, configs
	all["alter"] = func(w []string) (any, error) { return alter(w, false) }
	all["alter-all"] = func(w []string) (any, error) { return alter(w, true) }
	all["partitions"] = func(w []string) (any, error) {
		done, err := adm.UpdatePartitions(within(), int(steps.Number(w[1])), w[0])
		if err == nil {
			err = done.Error()
		}
		return nil, err
	}
	all["delete-records"], all["log-dirs"], all["list-all-offsets"] = deleteRecords, logDirs, listOffsets
	all["quotas"], all["producers"], all["elect-leaders"] = quotas, producers, electLeaders
	all["reassignments"] = func([]string) (any, error) {
		found, err := adm.ListPartitionReassignments(within(), nil)
		if err == nil && len(found) > 0 {
			err = kerr.ReassignmentInProgress
		}
		return nil, err
	}
	all["features"] = func([]string) (any, error) {
		_, err := adm.ApiVersions(within())
		return nil, err
	}
	all["config-resources"] = configResources
	all["delete"] = func(w []string) (any, error) {
		done, err := adm.DeleteTopic(within(), w[0])
		if err == nil {
			err = done.Err
		}
		return nil, err
	}
}
