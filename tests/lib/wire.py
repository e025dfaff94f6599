"""A small Kafka client on sockets, written apart from the broker's own codec, to check it.

It speaks the versions that both Kafka 2.1 and 4.4 serve and hands out record batches as bytes.
"""
import dataclasses
import socket
import struct
import time

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
OFFSET_FOR_LEADER_EPOCH = 23
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
ERRORS = {0: "NONE", 1: "OFFSET_OUT_OF_RANGE", 3: "UNKNOWN_TOPIC_OR_PARTITION",
          5: "LEADER_NOT_AVAILABLE", 6: "NOT_LEADER_OR_FOLLOWER", 35: "UNSUPPORTED_VERSION",
          44: "POLICY_VIOLATION", 74: "FENCED_LEADER_EPOCH", 75: "UNKNOWN_LEADER_EPOCH",
          76: "UNSUPPORTED_COMPRESSION_TYPE", 78: "OFFSET_NOT_AVAILABLE"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


class KafkaError(Exception):
    def __init__(self, code, where):
        super().__init__(f"{where}: error {code} {ERRORS.get(code, '')}")
        self.code = code


class Writer:
    def __init__(self):
        self.data = bytearray()

    def put(self, form, *values):
        self.data += struct.pack(">" + form, *values)
        return self

    def string(self, s):
        if s is None:
            return self.put("h", -1)
        b = s.encode()
        return self.put("h", len(b)).raw(b)

    def raw(self, b):
        self.data += b
        return self

    def varint(self, n):
        while n > 127:
            self.data.append(n & 127 | 128)
            n >>= 7
        self.data.append(n)
        return self

    def compact_string(self, s):
        if s is None:
            return self.varint(0)
        b = s.encode()
        return self.varint(len(b) + 1).raw(b)

    def tags(self):
        return self.varint(0)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values[0] if len(values) == 1 else values

    def bytes(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError(f"{n} bytes wanted, {len(self.data) - self.at} left")
        self.at += n
        return self.data[self.at - n:self.at]

    def string(self):
        n = self.take("h")
        return None if n < 0 else self.bytes(n).decode()

    def varint(self):
        n = shift = 0
        while True:
            b = self.take("B")
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    def compact_string(self):
        n = self.varint()
        return None if n == 0 else self.bytes(n - 1).decode()

    def tags(self):
        for _ in range(self.varint()):
            self.varint()
            self.bytes(self.varint())

    def done(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes too many in a response")


class Connection:
    def __init__(self, address, timeout=30):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.correlation = 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, n):
        parts = bytearray()
        while len(parts) < n:
            piece = self.socket.recv(min(n - len(parts), 1 << 20))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            parts += piece
        return bytes(parts)

    def call(self, key, version, body, flexible=False):
        """Sends one request and returns a reader on the body of its response."""
        self.correlation += 1
        header = Writer().put("hhi", key, version, self.correlation).string("tests")
        if flexible:
            header.tags()
        frame = bytes(header.data) + bytes(body.data)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        reader = Reader(self._read(struct.unpack(">i", self._read(4))[0]))
        if reader.take("i") != self.correlation:
            raise ValueError("a response to another request")
        if flexible and key != API_VERSIONS:
            reader.tags()
        return reader

    def api_versions(self):
        r = self.call(API_VERSIONS, 0, Writer())
        error = r.take("h")
        if error:
            raise KafkaError(error, "ApiVersions")
        table = {}
        for _ in range(r.take("i")):
            key, low, high = r.take("hhh")
            table[key] = (low, high)
        r.done()
        return table


@dataclasses.dataclass
class Batch:
    """What the header of a v2 batch says, and the batch itself."""
    base_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    data: bytes

    last_offset = property(lambda self: self.base_offset + self.last_offset_delta)
    codec = property(lambda self: CODECS[self.attributes & 7])
    log_append_time = property(lambda self: bool(self.attributes & 8))
    transactional = property(lambda self: bool(self.attributes & 16))
    control = property(lambda self: bool(self.attributes & 32))


def parse_batches(data):
    """All whole batches of a fetched record set; a cut one at its end is left out."""
    at = 0
    while at + 61 <= len(data):
        base, length, epoch, magic = struct.unpack_from(">qiib", data, at)
        if magic != 2:
            raise ValueError(f"batch format {magic} at offset {base}")
        if at + 12 + length > len(data):
            break
        attributes, delta, _, newest, pid, pepoch, sequence, count = struct.unpack_from(
            ">hiqqqhii", data, at + 21)
        yield Batch(base, epoch, magic, attributes, delta, newest, pid, pepoch, sequence, count,
                    bytes(data[at:at + 12 + length]))
        at += 12 + length


def control_type(batch):
    """0 abort, 1 commit, 7 producer-id reset: the type in the key of a control record."""
    r = Reader(batch.data)
    r.at = 61
    r.varint(), r.take("b"), r.varint(), r.varint()
    if r.varint() != 8:
        raise ValueError(f"the key of the control record at {batch.base_offset} has another size")
    return r.take("hh")[1]


class Client:
    """Finds the leader of each partition and asks it. One connection a broker."""

    def __init__(self, bootstrap):
        self.bootstrap, self.connections, self.leaders = bootstrap, {}, {}
        self.versions = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for connection in self.connections.values():
            connection.close()
        self.connections, self.leaders = {}, {}

    def connection(self, address):
        if address not in self.connections:
            self.connections[address] = Connection(address)
        return self.connections[address]

    def any(self):
        c = self.connection(self.bootstrap.split(",")[0])
        if self.versions is None:
            self.versions = c.api_versions()
        return c

    def metadata(self, topics=None):
        """{topic: {partition: (leader address or None, leader epoch)}}; None: all topics."""
        body = Writer()
        if topics is None:
            body.put("i", -1)
        else:
            body.put("i", len(topics))
            for topic in topics:
                body.string(topic)
        r = self.any().call(METADATA, 7, body.put("b", 0))
        r.take("i")
        brokers = {}
        for _ in range(r.take("i")):
            node, host, port = r.take("i"), r.string(), r.take("i")
            r.string()
            brokers[node] = f"{host}:{port}"
        self.cluster_id, self.controller = r.string(), r.take("i")
        found = {}
        for _ in range(r.take("i")):
            error, topic, _internal = r.take("h"), r.string(), r.take("b")
            partitions = {}
            for _ in range(r.take("i")):
                _perror, partition, leader, epoch = r.take("hiii")
                for _list in range(3):
                    for _ in range(r.take("i")):
                        r.take("i")
                partitions[partition] = (brokers.get(leader), epoch)
            if error == 0:
                found[topic] = partitions
        r.done()
        for topic, partitions in found.items():
            for partition, (address, _) in partitions.items():
                self.leaders[topic, partition] = address
        return found

    def topic_ids(self, topics):
        """Topic ids as hex, by Metadata v10 (Kafka 2.8 and later)."""
        body = Writer().varint(len(topics) + 1)
        for topic in topics:
            body.raw(bytes(16)).compact_string(topic).tags()
        body.put("bbb", 0, 0, 0).tags()
        r = self.any().call(METADATA, 10, body, flexible=True)
        r.take("i")
        for _ in range(r.varint() - 1):
            r.take("i"), r.compact_string(), r.take("i"), r.compact_string(), r.tags()
        r.compact_string(), r.take("i")
        found = {}
        for _ in range(r.varint() - 1):
            error, topic, topic_id = r.take("h"), r.compact_string(), r.bytes(16)
            r.take("b")
            for _ in range(r.varint() - 1):
                r.take("hiii")
                for _list in range(3):
                    for _ in range(r.varint() - 1):
                        r.take("i")
                r.tags()
            r.take("i"), r.tags()
            if error == 0:
                found[topic] = topic_id.hex()
        return found

    def leader(self, topic, partition):
        if self.leaders.get((topic, partition)) is None:
            self.metadata([topic])
        address = self.leaders.get((topic, partition))
        if address is None:
            raise KafkaError(5, f"{topic}-{partition}")
        return self.connection(address)

    def fetch(self, topic, partition, offset, *, version=10, isolation=0, max_bytes=4 << 20,
              max_wait_ms=500):
        """One Fetch: (high watermark, last stable offset, log start, record bytes)."""
        if version not in range(4, 12):
            raise ValueError(f"this client does not know Fetch v{version}")
        body = Writer().put("iiiib", -1, max_wait_ms, 1, max_bytes, isolation)
        if version >= 7:
            body.put("ii", 0, -1)
        body.put("i", 1).string(topic).put("ii", 1, partition)
        if version >= 9:
            body.put("i", -1)
        body.put("q", offset)
        if version >= 5:
            body.put("q", -1)
        body.put("i", max_bytes)
        if version >= 7:
            body.put("i", 0)
        if version >= 11:
            body.string("")
        r = self.leader(topic, partition).call(FETCH, version, body)
        r.take("i")
        if version >= 7:
            error, _session = r.take("hi")
            if error:
                raise KafkaError(error, f"Fetch {topic}-{partition}")
        if r.take("i") != 1 or r.string() != topic or r.take("i") != 1:
            raise ValueError("a Fetch response about something else")
        got, error, high_watermark, stable = r.take("ihqq")
        if got != partition:
            raise ValueError("a Fetch response about another partition")
        start = r.take("q") if version >= 5 else None
        aborted = r.take("i")
        self.aborted = None if aborted < 0 else [r.take("qq") for _ in range(aborted)]
        if version >= 11:
            r.take("i")
        size = r.take("i")
        if size < 0:
            raise ValueError("a null record set in a Fetch response")
        data = r.bytes(size)
        r.done()
        if error:
            if data:
                raise ValueError(f"records beside error {error} in a Fetch response")
            raise KafkaError(error, f"Fetch {topic}-{partition} at {offset}")
        return high_watermark, stable, start, data

    def read_log(self, topic, partition, *, seconds=120, **options):
        """All batches from log start to log end. A log that does not come to its end fails."""
        offset = self.list_offset(topic, partition, EARLIEST)[1]
        deadline, batches = time.monotonic() + seconds, []
        while True:
            high_watermark, _, _, data = self.fetch(topic, partition, offset, max_wait_ms=100,
                                                    **options)
            found = [b for b in parse_batches(data) if b.last_offset >= offset]
            batches += found
            if found:
                offset = found[-1].last_offset + 1
            if offset >= high_watermark:
                return batches
            if not found and data or time.monotonic() > deadline:
                raise AssertionError(f"{topic}-{partition}: no way from offset {offset} to the "
                                     f"log end {high_watermark}")

    def list_offset(self, topic, partition, timestamp, isolation=0):
        """(timestamp, offset, leader epoch) that ListOffsets gives for a timestamp."""
        c = self.any()
        if self.versions[LIST_OFFSETS][1] >= 7:
            body = Writer().put("ib", -1, isolation).varint(2).compact_string(topic).varint(2)
            body.put("iiq", partition, -1, timestamp).tags().tags().tags()
            r = self.leader(topic, partition).call(LIST_OFFSETS, 7, body, flexible=True)
            r.take("i"), r.varint(), r.compact_string(), r.varint()
        elif timestamp == MAX_TIMESTAMP:
            raise KafkaError(35, "ListOffsets of the newest timestamp needs Kafka 3.0")
        else:
            body = Writer().put("ib", -1, isolation).put("i", 1).string(topic)
            body.put("iiiq", 1, partition, -1, timestamp)
            r = self.leader(topic, partition).call(LIST_OFFSETS, 4, body)
            r.take("i"), r.take("i"), r.string(), r.take("i")
        _, error, found, offset, epoch = r.take("ihqqi")
        if error:
            raise KafkaError(error, f"ListOffsets {topic}-{partition}")
        return found, offset, epoch

    def end_offset_for_epoch(self, topic, partition, epoch):
        """(leader epoch, end offset) that OffsetForLeaderEpoch gives for an epoch."""
        self.any()
        version = min(3, self.versions[OFFSET_FOR_LEADER_EPOCH][1])
        body = Writer()
        if version >= 3:
            body.put("i", -1)
        body.put("i", 1).string(topic).put("iiii", 1, partition, -1, epoch)
        r = self.leader(topic, partition).call(OFFSET_FOR_LEADER_EPOCH, version, body)
        r.take("i"), r.take("i"), r.string(), r.take("i")
        error, _, found, offset = r.take("hiiq")
        r.done()
        if error:
            raise KafkaError(error, f"OffsetForLeaderEpoch {topic}-{partition}")
        return found, offset
