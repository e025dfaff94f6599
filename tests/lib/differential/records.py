"""Record batches of magic 2: made from parts, every one of which may be wrong, and taken apart."""
import dataclasses
import gzip
import struct


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(n):
    n = n << 1 ^ n >> 63
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(offset_delta, timestamp_delta=0, key=None, value=b"value", headers=(), attributes=0):
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + _sized(key) + \
        _sized(value) + varint(len(headers))
    for name, content in headers:
        body += _sized(name) + _sized(content)
    return varint(len(body)) + body


@dataclasses.dataclass
class Batch:
    """`records` are (timestamp, key, value) or ready bytes; header fields left None are right."""
    records: list = dataclasses.field(default_factory=lambda: [(1000, None, b"value")])
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    attributes: int = 0
    codec: int = 0
    last_offset_delta: int = None
    base_timestamp: int = None
    max_timestamp: int = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int = None
    length: int = None
    crc: int = None
    tail: bytes = b""  # Behind the last record, before compression.
    payload: bytes = None  # In place of the records' bytes, after compression.

    def build(self):
        times = [r[0] for r in self.records if not isinstance(r, bytes)]
        base = self.base_timestamp if self.base_timestamp is not None else (times or [-1])[0]
        body = b""
        for i, r in enumerate(self.records):
            body += r if isinstance(r, bytes) else record(i, r[0] - base, r[1], r[2])
        body += self.tail
        if self.codec == 1:
            body = gzip.compress(body, mtime=0)
        if self.payload is not None:
            body = self.payload
        n = len(self.records)
        newest = self.max_timestamp if self.max_timestamp is not None else max(times or [-1])
        after_crc = struct.pack(
            ">hiqqqhii", self.attributes | self.codec,
            n - 1 if self.last_offset_delta is None else self.last_offset_delta, base, newest,
            self.producer_id, self.producer_epoch, self.base_sequence,
            n if self.count is None else self.count) + body
        crc = crc32c(after_crc) if self.crc is None else self.crc
        length = len(after_crc) + 9 if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic,
                           crc) + after_crc


def batch(*records, **fields):
    if records:
        fields["records"] = list(records)
    return Batch(**fields).build()


def describe(data):
    """What the batches in a record set say, in words that can be compared: the checksum only as
    right or wrong, since it follows from the rest."""
    found, at = [], 0
    while at + 61 <= len(data):
        base, length, epoch, magic, crc = struct.unpack_from(">qiibI", data, at)
        end = at + 12 + length
        if end > len(data):
            break
        fields = struct.unpack_from(">hiqqqhii", data, at + 21)
        names = ("attributes", "lastOffsetDelta", "baseTimestamp", "maxTimestamp", "producerId",
                 "producerEpoch", "baseSequence", "count")
        body = data[at + 61:end]
        if fields[0] & 7 == 1:
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError):
                pass  # Then as it stands.
        found.append({"baseOffset": base, "leaderEpoch": epoch, "magic": magic,
                      "crc": crc == crc32c(data[at + 21:end]), **dict(zip(names, fields)),
                      "records": body.hex() if len(body) < 4096 else f"{len(body)} bytes"})
        at = end
    if at < len(data):
        found.append(f"{len(data) - at} bytes of a cut batch")
    return found
