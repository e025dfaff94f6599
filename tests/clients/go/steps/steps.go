// Package steps is what the Go clients share: the command line, the records' text form, the JSON
// lines.
package steps

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

const Timeout = 15 * time.Second

// A Step gets its words without its name and returns what becomes the JSON of "ok".
type Step func(words []string) (any, error)

type Header struct {
	Name  string
	Value []byte
}

type Record struct {
	Offset    int64
	Timestamp int64
	Key       []byte
	Value     []byte
	Headers   []Header
}

// MarshalJSON gives [offset, timestamp, key, value, [[name, value]]] with bytes in base64.
func (r Record) MarshalJSON() ([]byte, error) {
	headers := [][]any{}
	for _, h := range r.Headers {
		headers = append(headers, []any{h.Name, h.Value})
	}
	return json.Marshal([]any{r.Offset, r.Timestamp, r.Key, r.Value, headers})
}

func (r Record) Timed() time.Time { return time.UnixMilli(r.Timestamp) }

func unpack(text string) []byte {
	if text == "-" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

// Records reads a file of one line a record.
func Records(path string) []Record {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	var all []Record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		r := Record{Timestamp: Number(fields[0]), Key: unpack(fields[1]), Value: unpack(fields[2])}
		if fields[3] != "" {
			for _, h := range strings.Split(fields[3], ",") {
				name, value, _ := strings.Cut(h, ":")
				r.Headers = append(r.Headers, Header{string(unpack(name)), unpack(value)})
			}
		}
		all = append(all, r)
	}
	return all
}

func Number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// Within is a context that ends after Timeout, and frees itself then.
func Within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	time.AfterFunc(Timeout, cancel)
	return ctx
}

// Transactions are the values of three that follow one another, and whether each is committed.
var Transactions = []struct {
	Value  string
	Commit bool
}{{"commit 0", true}, {"abort 1", false}, {"commit 2", true}}

// Committed tells the offset that `find` finds for a group, a topic and a partition.
func Committed(find func(group, topic string, partition int32) (any, error)) Step {
	return func(w []string) (any, error) {
		found, err := find(w[0], w[1], int32(Number(w[2])))
		if err != nil {
			return nil, err
		}
		return Ok("offset", found)
	}
}

func Pause(milliseconds string) {
	time.Sleep(time.Duration(Number(milliseconds)) * time.Millisecond)
}

func Pairs(words []string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		all[key] = value
	}
	return all
}

// Ok is an object of one or more keys and values.
func Ok(pairs ...any) (any, error) {
	all := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i].(string)] = pairs[i+1]
	}
	return all, nil
}

// Version finds the version of a module that this program was built with.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return "unknown"
}

// A Failure is an error of which the broker's number is known.
type Failure struct {
	Code    int16
	Message string
}

func (f Failure) Error() string { return f.Message }

func one(step Step, words []string) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return step(words)
}

// Run does the steps of the command line in order; number finds the broker's number in an error.
func Run(all map[string]Step, number func(error) (int16, bool)) {
	all["pause"] = func(w []string) (any, error) {
		Pause(w[0])
		return nil, nil
	}
	out := json.NewEncoder(os.Stdout)
	for _, text := range os.Args[2:] {
		words := strings.Split(text, ":")
		said := map[string]any{"step": text}
		step, known := all[words[0]]
		if !known {
			step = func([]string) (any, error) { return nil, errors.New("unknown step") }
		}
		if result, err := one(step, words[1:]); err != nil {
			code, is := number(err)
			var failure Failure
			if errors.As(err, &failure) {
				code, is = failure.Code, true
			}
			said["name"], said["message"], said["error"] = fmt.Sprintf("%T", err), err.Error(), nil
			if is && code > 0 {
				said["error"] = code
			}
		} else {
			said["ok"] = result
		}
		if err := out.Encode(said); err != nil {
			panic(err)
		}
	}
}
