"""One of the two brokers that a comparison asks, and what it answered, in comparable words."""
import socket
import struct
import time

from lib.differential import records

CLOSED = "the connection was closed"
NEAR_MS = 15 * 60 * 1000  # A time so near to now is now, in whatever text it stands.


class Broker:
    def __init__(self, name, address, codec, timeout=40):
        self.name, self.address, self.codec, self.timeout = name, address, codec, timeout
        self.correlation, self.sockets = 0, {}
        self.names = {}  # What differs by right (topic ids, sessions) under a name of its own.
        self.log = []

    def close(self):
        for s in self.sockets.values():
            s.close()
        self.sockets = {}

    def begin(self):
        """Before a case: nothing of the one before is left."""
        self.close()
        self.log = []

    # The wire

    def _socket(self, connection):
        if connection not in self.sockets:
            host, port = self.address.rsplit(":", 1)
            self.sockets[connection] = socket.create_connection((host, int(port)), self.timeout)
        return self.sockets[connection]

    def _read(self, s, n):
        parts = bytearray()
        while len(parts) < n:
            piece = s.recv(min(n - len(parts), 1 << 20))
            if not piece:
                raise ConnectionError(CLOSED)
            parts += piece
        return bytes(parts)

    def send(self, api, version, body, connection=0):
        self.correlation += 1
        frame = self.codec.encode(api, version, body, self.correlation)
        self._socket(connection).sendall(struct.pack(">i", len(frame)) + frame)
        return self.correlation

    def receive(self, api, version, correlation, connection=0):
        s = self._socket(connection)
        try:
            frame = self._read(s, struct.unpack(">i", self._read(s, 4))[0])
        except ConnectionError:
            self.sockets.pop(connection).close()
            return CLOSED
        got, body = self.codec.decode(api, version, frame)
        if got != correlation:
            raise AssertionError(f"{self.name}: the answer to request {got}, not {correlation}")
        return body

    def ask(self, api, version, body, connection=0):
        """Sends a request and returns the answer as it came; it is not compared."""
        return self.receive(api, version, self.send(api, version, body, connection), connection)

    def call(self, api, version, body, connection=0):
        """The same, and the answer is compared."""
        answer = self.ask(api, version, body, connection)
        self.note(f"{api} v{version}", answer)
        return answer

    def note(self, what, value):
        self.log.append((what, self.comparable(value)))

    def took(self, what, seconds, at_least=0.0, below=None):
        """Notes whether something took about the time that it should."""
        right = seconds >= at_least and (below is None or seconds < below)
        self.log.append((what, "in time" if right else f"after {seconds:.2f} s"))

    # Preparations

    def topic(self, name, partitions=1, **configs):
        """Makes a topic and returns its id. Names of settings have _ for a dot."""
        body = {"topics": [{"name": name, "numPartitions": partitions, "replicationFactor": 1,
                            "configs": [{"name": k.replace("_", "."), "value": str(v)}
                                        for k, v in configs.items()]}], "timeoutMs": 30000}
        made = self.ask("CreateTopics", 7, body)["topics"][0]
        if made["errorCode"] == 36:  # Of an earlier run.
            self.delete_topic(name)
            made = self.ask("CreateTopics", 7, body)["topics"][0]
        if made["errorCode"]:
            raise AssertionError(f"{self.name}: topic {name}: error {made['errorCode']} "
                                 f"{made['errorMessage']}")
        self.names[made["topicId"]] = f"id of {name}"
        self.await_leaders(name, partitions)
        return made["topicId"]

    def await_leaders(self, name, partitions):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = self.ask("Metadata", 12, {"topics": [{"name": name}],
                                              "allowAutoTopicCreation": False})["topics"][0]
            if not found["errorCode"] and len(found["partitions"]) == partitions and \
                    all(p["leaderId"] >= 0 and not p["errorCode"] for p in found["partitions"]) \
                    and self._can_be_read(name, partitions):
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: {name} has no leaders after 30 s")

    def _can_be_read(self, name, partitions):
        body = {"replicaId": -1, "topics": [{"name": name, "partitions": [
            {"partitionIndex": p, "timestamp": -1} for p in range(partitions)]}]}
        answer = self.ask("ListOffsets", 7, body)
        return all(p["errorCode"] == 0 for p in answer["topics"][0]["partitions"])

    def without_topic(self, name):
        asked = {"topics": [{"name": name}], "allowAutoTopicCreation": False}
        if self.ask("Metadata", 12, asked)["topics"][0]["errorCode"] != 3:
            self.delete_topic(name)

    def delete_topic(self, name):
        gone = self.ask("DeleteTopics", 4, {"topicNames": [name], "timeoutMs": 30000})
        if gone["responses"][0]["errorCode"]:
            raise AssertionError(f"{self.name}: {name} is not deleted: {gone}")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            asked = {"topics": [{"name": name}], "allowAutoTopicCreation": False}
            if self.ask("Metadata", 12, asked)["topics"][0]["errorCode"] == 3:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: {name} is still there after 30 s")

    # Comparable words

    def rename(self, value, name):
        """From now on `value` (a producer id, a session) is called `name` in what is compared."""
        self.names[value] = name

    def comparable(self, value, field=""):
        if isinstance(value, dict):
            return {k: self.comparable(v, k) for k, v in sorted(value.items())}
        if isinstance(value, list):
            items = [self.comparable(v, field) for v in value]
            # Kafka keeps most lists of topics and partitions in maps: their order says nothing.
            return sorted(items, key=repr) if field in UNORDERED else items
        if isinstance(value, bytes):
            return self.comparable(records.describe(value)) if field == "records" else value.hex()
        if field in ("host", "port"):
            return field
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            if field in NAMED and value in self.names:
                return self.names[value]
            near = abs(value - time.time() * 1000) < NEAR_MS
            return "now" if near else value
        if value in self.names:
            return self.names[value]
        # Sentences for people are our own; whether there is one is compared.
        return "a sentence" if field.endswith("essage") else value


# Fields whose numbers may stand for something with a name.
NAMED = {"sessionId", "producerId"}
UNORDERED = {"responses", "topics", "partitions", "partitionResponses", "abortedTransactions"}
