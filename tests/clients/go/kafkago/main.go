// segmentio/kafka-go: Writer and Reader, its Client for administration, and the older Conn, which
// speaks fixed old versions of Produce, Fetch, ListOffsets and Metadata.
package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"calque/clients/steps"
)

var bootstrap = os.Args[1]

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// It answers Metadata out of a cache.
var transport = &kafka.Transport{MetadataTTL: 100 * time.Millisecond}

func message(r steps.Record) kafka.Message {
	m := kafka.Message{Key: r.Key, Value: r.Value, Time: r.Timed()}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, kafka.Header{Key: h.Name, Value: h.Value})
	}
	return m
}

func send(codec, topic string, partition int64, records []steps.Record) (any, error) {
	var offsets []int64
	w := &kafka.Writer{Transport: transport, Addr: kafka.TCP(bootstrap), Topic: topic, RequiredAcks: kafka.RequireAll,
		Balancer:    kafka.BalancerFunc(func(kafka.Message, ...int) int { return int(partition) }),
		Compression: codecs[codec], BatchSize: len(records), BatchBytes: 20_000_000,
		BatchTimeout: time.Second, MaxAttempts: 2,
		Completion: func(sent []kafka.Message, err error) {
			for _, m := range sent {
				offsets = append(offsets, m.Offset)
			}
		}}
	defer w.Close()
	var messages []kafka.Message
	for _, r := range records {
		messages = append(messages, message(r))
	}
	if err := w.WriteMessages(steps.Within(), messages...); err != nil {
		return nil, err
	}
	return steps.Ok("offsets", offsets)
}

func shown(m kafka.Message) steps.Record {
	r := steps.Record{Offset: m.Offset, Timestamp: m.Time.UnixMilli(), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, steps.Header{Name: h.Key, Value: h.Value})
	}
	return r
}

func consume(w []string) (any, error) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: w[0],
		Partition: int(steps.Number(w[1])), MinBytes: 1, MaxBytes: 10_000_000,
		MaxWait: 100 * time.Millisecond, MaxAttempts: 2, OffsetOutOfRangeError: true})
	defer r.Close()
	from := kafka.FirstOffset
	if w[2] != "earliest" {
		from = steps.Number(w[2])
	}
	if err := r.SetOffset(from); err != nil {
		return nil, err
	}
	got, ctx := []steps.Record{}, steps.Within()
	for len(got) < int(steps.Number(w[3])) {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		got = append(got, shown(m))
	}
	return steps.Ok("records", got)
}

func dial(topic, partition string) (*kafka.Conn, error) {
	c, err := kafka.DialLeader(steps.Within(), "tcp", bootstrap, topic, int(steps.Number(partition)))
	if err == nil {
		err = c.SetDeadline(time.Now().Add(steps.Timeout))
	}
	return c, err
}

// tail uses the Conn for all of it: ListOffsets v1, Produce v2 to v7, Fetch v2 to v10.
func tail(w []string) (any, error) {
	c, err := dial(w[0], w[1])
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, err := c.ReadLastOffset()
	if err != nil {
		return nil, err
	}
	if _, err := c.Seek(0, kafka.SeekEnd); err != nil {
		return nil, err
	}
	if _, err := c.WriteMessages(kafka.Message{Value: []byte("tail")}); err != nil {
		return nil, err
	}
	m, err := c.ReadMessage(1 << 20)
	if err != nil {
		return nil, err
	}
	return steps.Ok("end", end, "records", []steps.Record{shown(m)})
}

func times(w []string) (any, error) {
	c, err := dial(w[0], w[1])
	if err != nil {
		return nil, err
	}
	defer c.Close()
	found := []any{}
	for _, t := range strings.Split(w[2], ",") {
		o, err := c.ReadOffset(time.UnixMilli(steps.Number(t)))
		if err != nil {
			return nil, err
		}
		if o < 0 {
			found = append(found, nil)
		} else {
			found = append(found, o)
		}
	}
	return steps.Ok("offsets", found)
}

func ends(w []string) (any, error) {
	c, err := dial(w[0], w[1])
	if err != nil {
		return nil, err
	}
	defer c.Close()
	first, last, err := c.ReadOffsets()
	if err != nil {
		return nil, err
	}
	return steps.Ok("earliest", first, "latest", last)
}

func number(err error) (int16, bool) {
	var all kafka.WriteErrors
	if errors.As(err, &all) {
		for _, e := range all {
			if e != nil {
				return number(e)
			}
		}
	}
	var large kafka.MessageTooLargeError
	if errors.As(err, &large) {
		return int16(kafka.MessageSizeTooLarge), true
	}
	var e kafka.Error
	if errors.As(err, &e) {
		return int16(e), true
	}
	return 0, false
}

func main() {
	all := map[string]steps.Step{
		"about": func([]string) (any, error) {
			return steps.Ok("version", steps.Version("github.com/segmentio/kafka-go"))
		},
		"produce": func(w []string) (any, error) {
			return send(w[2], w[0], steps.Number(w[1]), steps.Records(w[4]))
		},
		"large": func(w []string) (any, error) {
			return send("none", w[0], steps.Number(w[1]),
				[]steps.Record{{Timestamp: 1, Value: make([]byte, steps.Number(w[2]))}})
		},
		"consume": consume, "tail": tail, "times": times, "ends": ends, "member": member,
	}
	administration(all, &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: steps.Timeout,
		Transport: transport})
	steps.Run(all, number)
}
