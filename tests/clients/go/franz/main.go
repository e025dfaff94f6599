// franz-go: kgo for records, kadm for administration.
package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"calque/clients/steps"
)

var bootstrap = os.Args[1]

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func client(more ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append(more, kgo.SeedBrokers(bootstrap),
		kgo.UnknownTopicRetries(1), kgo.MetadataMinAge(50*time.Millisecond))...)
	if err != nil {
		panic(err)
	}
	return c
}

func within() context.Context { return steps.Within() }

func send(codec, mode, topic string, partition int64, records []steps.Record) (any, error) {
	options := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.ProducerBatchMaxBytes(20_000_000),
		kgo.BrokerMaxWriteBytes(30_000_000)}
	if mode != "idempotent" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	c := client(options...)
	defer c.Close()
	var sent []*kgo.Record
	for _, r := range records {
		k := &kgo.Record{Topic: topic, Partition: int32(partition), Key: r.Key, Value: r.Value,
			Timestamp: r.Timed()}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		sent = append(sent, k)
	}
	results := c.ProduceSync(within(), sent...)
	offsets := []int64{}
	for _, r := range results {
		if r.Err != nil {
			return nil, r.Err
		}
		offsets = append(offsets, r.Record.Offset)
	}
	return steps.Ok("offsets", offsets)
}

func read(c *kgo.Client, count int) ([]steps.Record, error) {
	got, ctx := []steps.Record{}, within()
	for len(got) < count {
		fetches := c.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			return nil, e.Err
		}
		fetches.EachRecord(func(k *kgo.Record) {
			r := steps.Record{Offset: k.Offset, Timestamp: k.Timestamp.UnixMilli(), Key: k.Key,
				Value: k.Value}
			for _, h := range k.Headers {
				r.Headers = append(r.Headers, steps.Header{Name: h.Key, Value: h.Value})
			}
			got = append(got, r)
		})
	}
	return got[:count], nil
}

func consumer(topic string, partition int32, from kgo.Offset, more ...kgo.Opt) *kgo.Client {
	return client(append(more,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: from}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))...)
}

func consume(w []string) (any, error) {
	from := kgo.NewOffset().AtStart()
	if w[2] != "earliest" {
		from = kgo.NewOffset().At(steps.Number(w[2]))
	}
	c := consumer(w[0], int32(steps.Number(w[1])), from)
	defer c.Close()
	records, err := read(c, int(steps.Number(w[3])))
	if err != nil {
		return nil, err
	}
	return steps.Ok("records", records)
}

func tail(w []string) (any, error) {
	adm := kadm.NewClient(client())
	defer adm.Close()
	ends, err := adm.ListEndOffsets(within(), w[0])
	if err != nil {
		return nil, err
	}
	partition := int32(steps.Number(w[1]))
	end, _ := ends.Lookup(w[0], partition)
	c := consumer(w[0], partition, kgo.NewOffset().AtEnd())
	defer c.Close()
	// The first poll asks for the end; a record that comes after it must be seen.
	ctx, stop := context.WithTimeout(context.Background(), steps.Timeout/30)
	c.PollFetches(ctx)
	stop()
	if _, err := send("none", "plain", w[0], int64(partition),
		[]steps.Record{{Timestamp: 1, Value: []byte("tail")}}); err != nil {
		return nil, err
	}
	records, err := read(c, 1)
	if err != nil {
		return nil, err
	}
	return steps.Ok("end", end.Offset, "records", records)
}

func times(w []string) (any, error) {
	adm := kadm.NewClient(client())
	defer adm.Close()
	found := []any{}
	for _, t := range strings.Split(w[2], ",") {
		listed, err := adm.ListOffsetsAfterMilli(within(), steps.Number(t), w[0])
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return nil, err
		}
		o, _ := listed.Lookup(w[0], int32(steps.Number(w[1])))
		// kadm gives the end for a time after all records, with a timestamp of -1.
		if o.Timestamp < 0 {
			found = append(found, nil)
		} else {
			found = append(found, o.Offset)
		}
	}
	return steps.Ok("offsets", found)
}

func ends(w []string) (any, error) {
	adm := kadm.NewClient(client())
	defer adm.Close()
	first, err := adm.ListStartOffsets(within(), w[0])
	if err != nil {
		return nil, err
	}
	last, err := adm.ListEndOffsets(within(), w[0])
	if err != nil {
		return nil, err
	}
	a, _ := first.Lookup(w[0], int32(steps.Number(w[1])))
	b, _ := last.Lookup(w[0], int32(steps.Number(w[1])))
	return steps.Ok("earliest", a.Offset, "latest", b.Offset)
}

// committed finds the first error of an OffsetCommit.
func committed(answer *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func number(err error) (int16, bool) {
	var e *kerr.Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

func main() {
	all := map[string]steps.Step{
		"about": func([]string) (any, error) {
			return steps.Ok("version", steps.Version("github.com/twmb/franz-go"))
		},
		"produce": func(w []string) (any, error) {
			return send(w[2], w[3], w[0], steps.Number(w[1]), steps.Records(w[4]))
		},
		"large": func(w []string) (any, error) {
			return send("none", "plain", w[0], steps.Number(w[1]),
				[]steps.Record{{Timestamp: 1, Value: make([]byte, steps.Number(w[2]))}})
		},
		"consume": consume, "tail": tail, "times": times, "ends": ends, "member": member,
		"consume-isolated": consumeIsolated, "transact": transact, "fence": fence,
		"committed": steps.Committed(offset),
	}
	administration(all)
	steps.Run(all, number)
}
