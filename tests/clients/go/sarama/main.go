// sarama with the version of its configuration at its newest, so that it negotiates.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"calque/clients/steps"
)

var bootstrap = []string{os.Args[1]}

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = 3, 100*time.Millisecond
	c.Admin.Timeout = steps.Timeout
	return c
}

func send(codec, mode, topic string, partition int64, records []steps.Record) (any, error) {
	c := config()
	c.Producer.RequiredAcks, c.Producer.Compression = sarama.WaitForAll, codecs[codec]
	c.Producer.Return.Successes, c.Producer.Return.Errors = true, true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.MaxMessageBytes = 20_000_000
	// All records of a call in one batch.
	c.Producer.Flush.Messages, c.Producer.Flush.Frequency = len(records), steps.Timeout
	if mode == "idempotent" {
		c.Producer.Idempotent, c.Net.MaxOpenRequests = true, 1
	}
	p, err := sarama.NewSyncProducer(bootstrap, c)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var sent []*sarama.ProducerMessage
	for _, r := range records {
		m := &sarama.ProducerMessage{Topic: topic, Partition: int32(partition), Timestamp: r.Timed()}
		if r.Key != nil {
			m.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			m.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
		sent = append(sent, m)
	}
	if err := p.SendMessages(sent); err != nil {
		var all sarama.ProducerErrors
		if errors.As(err, &all) {
			return nil, all[0].Err
		}
		return nil, err
	}
	offsets := []int64{}
	for _, m := range sent {
		offsets = append(offsets, m.Offset)
	}
	return steps.Ok("offsets", offsets)
}

func read(p sarama.PartitionConsumer, count int) ([]steps.Record, error) {
	got, late := []steps.Record{}, time.After(steps.Timeout)
	for len(got) < count {
		select {
		case m := <-p.Messages():
			r := steps.Record{Offset: m.Offset, Timestamp: m.Timestamp.UnixMilli(), Key: m.Key,
				Value: m.Value}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, steps.Header{Name: string(h.Key), Value: h.Value})
			}
			got = append(got, r)
		case e := <-p.Errors():
			return nil, e.Err
		case <-late:
			return nil, fmt.Errorf("reading %d records took more than %v", count, steps.Timeout)
		}
	}
	return got, nil
}

func open(topic string, partition int32, from int64, isolation sarama.IsolationLevel) (
	sarama.PartitionConsumer, func(), error) {
	settings := config()
	settings.Consumer.IsolationLevel = isolation
	settings.Consumer.Return.Errors, settings.Consumer.MaxWaitTime = true, 100*time.Millisecond
	c, err := sarama.NewConsumer(bootstrap, settings)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.ConsumePartition(topic, partition, from)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return p, func() { p.Close(); c.Close() }, nil
}

func consume(w []string) (any, error) {
	from := sarama.OffsetOldest
	if w[2] != "earliest" {
		from = steps.Number(w[2])
	}
	return consumeFrom(w, from, sarama.ReadUncommitted)
}

// As many records as the fourth word says, of the topic and partition that the first two name.
func consumeFrom(w []string, from int64, isolation sarama.IsolationLevel) (any, error) {
	p, end, err := open(w[0], int32(steps.Number(w[1])), from, isolation)
	if err != nil {
		return nil, err
	}
	defer end()
	records, err := read(p, int(steps.Number(w[3])))
	if err != nil {
		return nil, err
	}
	return steps.Ok("records", records)
}

func tail(w []string) (any, error) {
	p, end, err := open(w[0], int32(steps.Number(w[1])), sarama.OffsetNewest,
		sarama.ReadUncommitted)
	if err != nil {
		return nil, err
	}
	defer end()
	at := p.HighWaterMarkOffset()
	if _, err := send("none", "plain", w[0], steps.Number(w[1]),
		[]steps.Record{{Timestamp: 1, Value: []byte("tail")}}); err != nil {
		return nil, err
	}
	records, err := read(p, 1)
	if err != nil {
		return nil, err
	}
	return steps.Ok("end", at, "records", records)
}

func offsets(topic, partition string, times ...int64) ([]any, error) {
	c, err := sarama.NewClient(bootstrap, config())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	found := []any{}
	for _, t := range times {
		o, err := c.GetOffset(topic, int32(steps.Number(partition)), t)
		if err != nil {
			return nil, err
		}
		if o < 0 {
			found = append(found, nil)
		} else {
			found = append(found, o)
		}
	}
	return found, nil
}

func times(w []string) (any, error) {
	var asked []int64
	for _, t := range strings.Split(w[2], ",") {
		asked = append(asked, steps.Number(t))
	}
	found, err := offsets(w[0], w[1], asked...)
	if err != nil {
		return nil, err
	}
	return steps.Ok("offsets", found)
}

func ends(w []string) (any, error) {
	found, err := offsets(w[0], w[1], sarama.OffsetOldest, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	return steps.Ok("earliest", found[0], "latest", found[1])
}

func number(err error) (int16, bool) {
	var e sarama.KError
	if errors.As(err, &e) {
		return int16(e), true
	}
	return 0, false
}

func main() {
	all := map[string]steps.Step{
		"about": func([]string) (any, error) {
			return steps.Ok("version", steps.Version("github.com/IBM/sarama"))
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

func sorted(names []string) []string {
	sort.Strings(names)
	return names
}
