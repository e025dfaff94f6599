"""What the Python clients share: the command line, the records' text form, the JSON lines."""
import base64
import json
import os
import sys
import threading
import time

TIMEOUT_S = 15


class Refused(Exception):
    """An error with the number that the broker gave it, or None when the client made it up."""

    def __init__(self, code, name, message=""):
        super().__init__(f"{name} ({code}) {message}")
        self.code, self.name, self.message = code, name, message


def unpack(text):
    return None if text == "-" else base64.b64decode(text)


def pack(data):
    return None if data is None else base64.b64encode(data).decode()


def records(path):
    """Yields (timestamp, key, value, [(header, value)]) from a file of one line a record."""
    with open(path) as f:
        for line in f:
            timestamp, key, value, headers = line.rstrip("\n").split("\t")
            pairs = [h.split(":") for h in headers.split(",")] if headers else []
            yield int(timestamp), unpack(key), unpack(value), \
                [(unpack(name).decode(), unpack(data)) for name, data in pairs]


def shown(offset, timestamp, key, value, headers):
    return [offset, timestamp, pack(key), pack(value),
            [[name, pack(data)] for name, data in headers or []]]


def pairs(words):
    return dict(w.split("=", 1) for w in words)


def deadline(what):
    """A function to be called in a waiting loop: it raises once the time is over."""
    end = time.monotonic() + TIMEOUT_S

    def check():
        if time.monotonic() > end:
            raise Refused(None, "TIMEOUT", f"{what} took more than {TIMEOUT_S} s")
    return check


class Transactions:
    """Steps of clients that wait for each call, on `transactional(id)`, `write(producer, topic,
    value)`, `send_offset(producer, group, topic, offset)`, `offset(group, topic, partition)`."""

    VALUES = "commit 0", "abort 1", "commit 2"

    def transact(self, topic, name, *with_offsets):
        producer, committed = self.transactional(name), []
        for n, value in enumerate(self.VALUES):
            producer.begin_transaction()
            self.write(producer, topic, value)
            if with_offsets:
                group, source = with_offsets
                committed.append(self.offset(group, source, 0))
                self.send_offset(producer, group, source, n + 1)
            if value.startswith("commit"):
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        return {"committed": committed}

    def fence(self, topic, name):
        first = self.transactional(name)
        first.begin_transaction()
        self.write(first, topic, "lost")
        second = self.transactional(name)
        second.begin_transaction()
        self.write(second, topic, "kept")
        second.commit_transaction()
        first.commit_transaction()

    def committed(self, group, topic, partition):
        return {"offset": self.offset(group, topic, int(partition))}


class Membership:
    """What a member of a group holds, reads and commits; each of its doings is a line of JSON."""

    COMMIT_S = 0.5

    def __init__(self):
        self.held, self.unsaved, self.count = set(), {}, 0
        self.saved_at, self.ending, self.guard = time.monotonic(), False, threading.Lock()
        threading.Thread(target=self.await_end, daemon=True).start()

    def await_end(self):
        """The member leaves when its standard input ends."""
        while os.read(0, 4096):  # The buffered reader would hinder the end of the program.
            continue
        self.ending = True

    def event(self, name, values):
        with self.guard:
            sys.stdout.write(json.dumps({"event": name, "values": values}) + "\n")
            sys.stdout.flush()

    def assigned(self, partitions):
        self.held |= set(partitions)
        self.event("holds", sorted(self.held))

    def revoked(self, partitions):
        self.held -= set(partitions)
        self.unsaved = {p: o for p, o in self.unsaved.items() if p in self.held}
        self.event("holds", sorted(self.held))

    def read(self, records):
        """Pairs of a partition and an offset."""
        if records:
            self.count += len(records)
            self.unsaved.update({p: o + 1 for p, o in records})
            self.event("read", records)

    def is_time(self):
        return bool(self.unsaved) and time.monotonic() - self.saved_at > self.COMMIT_S

    def committed(self, offsets):
        self.saved_at = time.monotonic()
        self.unsaved = {p: o for p, o in self.unsaved.items() if offsets.get(p) != o}
        self.event("committed", sorted(offsets.items()))

    def failed(self, error):
        self.saved_at = time.monotonic()
        self.event("failed", [f"{type(error).__name__}: {error}"[:300]])

    def result(self):
        return {"read": self.count}


def arguments():
    """The broker's address, and each step as [text, method, arguments]."""
    return sys.argv[1], [[text, text.split(":")[0].replace("-", "_"), text.split(":")[1:]]
                         for text in sys.argv[2:]]


def tell(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


def tell_error(step, error, number):
    """number(error) gives the broker's number of a client's own exception, or None."""
    if isinstance(error, Refused):
        tell(step, error=error.code, name=error.name, message=error.message)
    else:
        tell(step, error=number(error), name=type(error).__name__, message=str(error)[:500])


def pause(milliseconds):
    time.sleep(int(milliseconds) / 1000)


def run(client, number):
    _, steps = arguments()
    for text, method, words in steps:
        try:
            tell(text, ok=pause(*words) if method == "pause" else getattr(client, method)(*words))
        except Exception as e:  # Each step has its own verdict; the next one has its turn.
            tell_error(text, e, number)
