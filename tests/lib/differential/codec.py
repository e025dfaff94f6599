"""Requests and responses of every API and version, by the schemas inside Kafka's own jar.

A message is a dict with the names of Kafka's schemas, first letter small (`topicData`,
`errorCode`); what is left out of a request has Kafka's default. This codec shares no code with the
broker's, nor with its schemas: it is the second opinion that a comparison needs.
"""
import json
import os
import re
import struct
import zipfile

from lib import real_kafka

VERSION = "4.4.0"
NUMBERS = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
           "int64": "q", "float64": "d"}
ZERO_ID = "0" * 32  # A topic id is 32 hexadecimal digits.


def _versions(text):
    if text is None or text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    return range(int(first), 1 << 15 if text.endswith("+") else int(last or first) + 1)


class _Out:
    def __init__(self):
        self.data = bytearray()

    def number(self, form, value):
        self.data += struct.pack(">" + form, value)

    def varint(self, n):
        while n > 127:
            self.data.append(n & 127 | 128)
            n >>= 7
        self.data.append(n)

    def size(self, n, flexible, form):
        """The length of a string, bytes or array; None is null."""
        if flexible:
            self.varint(0 if n is None else n + 1)
        else:
            self.number(form, -1 if n is None else n)


class _In:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError(f"{n} bytes wanted at {self.at}, {len(self.data) - self.at} left")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.bytes(struct.calcsize(form)))[0]

    def varint(self):
        n = shift = 0
        while True:
            b = self.number("B")
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    def size(self, flexible, form):
        n = self.varint() - 1 if flexible else self.number(form)
        return None if n == -1 else n


class _Field:
    def __init__(self, spec, structs):
        name = spec["name"]
        self.name = name[0].lower() + name[1:]
        self.versions = _versions(spec.get("versions"))
        self.nullable = _versions(spec.get("nullableVersions"))
        self.tagged = _versions(spec.get("taggedVersions"))
        self.tag = spec.get("tag")
        self.flexible = _versions(spec["flexibleVersions"]) if "flexibleVersions" in spec else None
        self.array = spec["type"].startswith("[]")
        self.type = spec["type"].removeprefix("[]")
        self._structs = structs  # Those with a name may refer to one that comes later.
        self._own = _Struct(spec["fields"], structs) if "fields" in spec else None
        self.is_struct = self.type not in NUMBERS and \
            self.type not in ("string", "bytes", "records", "uuid")
        self.default = self._default(spec.get("default"))

    @property
    def struct(self):
        return self._own or self._structs[self.type]

    def _default(self, given):
        if given == "null":
            return None
        if self.array:
            return []
        if self.is_struct:
            return {}
        if self.type in NUMBERS:
            if isinstance(given, str):
                return {"true": True, "false": False}.get(given) if self.type == "bool" else \
                    float(given) if self.type == "float64" else int(given, 0)
            return given or 0
        return {"string": given or "", "uuid": ZERO_ID}.get(self.type, b"")


class _Struct:
    def __init__(self, fields, structs):
        self.fields = [_Field(spec, structs) for spec in fields]

    def write(self, out, version, flexible, value):
        unknown = set(value) - {f.name for f in self.fields if version in f.versions}
        if unknown:
            raise ValueError(f"version {version} has no {', '.join(sorted(unknown))}")
        tagged = []
        for f in self.fields:
            if version not in f.versions:
                continue
            if version in f.tagged:
                if f.name in value and value[f.name] != f.default:
                    tagged.append((f.tag, f))
                continue
            _write(out, f, version, flexible, value.get(f.name, f.default))
        if flexible:
            out.varint(len(tagged))
            for tag, f in sorted(tagged, key=lambda t: t[0]):
                part = _Out()
                _write(part, f, version, True, value[f.name])
                out.varint(tag)
                out.varint(len(part.data))
                out.data += part.data

    def read(self, data, version, flexible):
        value = {}
        for f in self.fields:
            if version in f.versions and version not in f.tagged:
                value[f.name] = _read(data, f, version, flexible)
        if flexible:
            by_tag = {f.tag: f for f in self.fields if version in f.tagged}
            for _ in range(data.varint()):
                tag, part = data.varint(), _In(data.bytes(data.varint()))
                f = by_tag.get(tag)
                value[f.name if f else f"tag {tag}"] = \
                    _read(part, f, version, True) if f else part.data.hex()
        return value


def _write(out, f, version, flexible, value):
    if f.flexible is not None:
        flexible = version in f.flexible
    if f.array:
        out.size(None if value is None else len(value), flexible, "i")
        for one in value or []:
            _write_one(out, f, version, flexible, one)
    else:
        _write_one(out, f, version, flexible, value)


def _write_one(out, f, version, flexible, value):
    if f.is_struct:
        if not f.array and version in f.nullable:
            out.number("b", -1 if value is None else 1)
            if value is None:
                return
        f.struct.write(out, version, flexible, value)
    elif f.type in NUMBERS:
        out.number(NUMBERS[f.type], value)
    elif f.type == "uuid":
        out.data += bytes.fromhex(value)
    else:
        raw = value.encode() if f.type == "string" and value is not None else value
        out.size(None if raw is None else len(raw), flexible, "h" if f.type == "string" else "i")
        out.data += raw or b""


def _read(data, f, version, flexible):
    if f.flexible is not None:
        flexible = version in f.flexible
    if not f.array:
        return _read_one(data, f, version, flexible)
    n = data.size(flexible, "i")
    return None if n is None else [_read_one(data, f, version, flexible) for _ in range(n)]


def _read_one(data, f, version, flexible):
    if f.is_struct:
        if not f.array and version in f.nullable and data.number("b") < 0:
            return None
        return f.struct.read(data, version, flexible)
    if f.type in NUMBERS:
        return data.number(NUMBERS[f.type])
    if f.type == "uuid":
        return data.bytes(16).hex()
    n = data.size(flexible, "h" if f.type == "string" else "i")
    if n is None:
        return None
    raw = data.bytes(n)
    return raw.decode() if f.type == "string" else raw


class _Message:
    def __init__(self, spec):
        structs = {}
        for common in spec.get("commonStructs", []):
            structs[common["name"]] = _Struct(common["fields"], structs)
        self.key, self.valid = spec["apiKey"], _versions(spec["validVersions"])
        self.flexible = _versions(spec.get("flexibleVersions"))
        self.body = _Struct(spec["fields"], structs)


class Codec:
    def __init__(self, version=VERSION):
        self.requests, self.responses = {}, {}
        jar = os.path.join(real_kafka.jars(version), f"kafka-clients-{version}.jar")
        with zipfile.ZipFile(jar) as z:
            for path in z.namelist():
                found = re.match(r"common/message/(\w+)(Request|Response)\.json$", path)
                if found:
                    text = re.sub(r"^\s*//.*$", "", z.read(path).decode(), flags=re.M)
                    side = self.requests if found[2] == "Request" else self.responses
                    spec = json.loads(text)
                    if spec["validVersions"] != "none":  # Else an API of the past.
                        side[found[1]] = _Message(spec)

    def key(self, api):
        return self.requests[api].key

    def versions(self, api):
        return self.requests[api].valid

    def encode(self, api, version, body, correlation, client_id="tests"):
        """The frame of one request, without its size."""
        message, out = self.requests[api], _Out()
        flexible = version in message.flexible
        for form, value in (("h", message.key), ("h", version), ("i", correlation)):
            out.number(form, value)
        raw = client_id.encode()
        out.size(len(raw), False, "h")
        out.data += raw
        if flexible:
            out.varint(0)
        message.body.write(out, version, flexible, body)
        return bytes(out.data)

    def decode(self, api, version, frame):
        """(correlation id, body) of one response."""
        message, data = self.responses[api], _In(frame)
        flexible = version in message.flexible
        correlation = data.number("i")
        if flexible and api != "ApiVersions":
            for _ in range(data.varint()):
                data.varint()
                data.bytes(data.varint())
        body = message.body.read(data, version, flexible)
        if data.at != len(frame):
            raise ValueError(f"{len(frame) - data.at} bytes too many in a {api} response")
        return correlation, body
