"""The groups that the client programs form: of one library each, and of several together.

A group's test has two halves, and between them the broker is killed under all groups at once.
"""
from clients import members
from lib.suite import equal

# What each library offers; what stands first is part of the smaller run.
OWN = {"java-4.4.0": ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer"),
       "java-3.9.1": ("cooperative-sticky", "range", "consumer"),
       "java-2.8.2": ("roundrobin", "range", "cooperative-sticky"),
       "java-2.1.1": ("range", "roundrobin"),
       "java-0.11.0.3": ("range", "sticky"),
       "librdkafka-debian": ("range", "roundrobin", "cooperative-sticky"),
       "librdkafka-2.6.0": ("cooperative-sticky", "range"),
       "librdkafka-newest": ("consumer", "range", "roundrobin", "cooperative-sticky"),
       "rdkafka": ("range", "cooperative-sticky"),
       "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
       "kafka-python-2.0.2": ("range", "roundrobin"),
       "aiokafka": ("roundrobin", "range", "sticky"),
       "franz-go": ("cooperative-sticky", "range", "roundrobin", "sticky", "consumer"),
       "sarama": ("range", "roundrobin", "sticky", "cooperative-sticky"),
       "kafka-go": ("range", "roundrobin"),
       "kafkajs": ("roundRobin",)}

ASSIGNS_ALIKE = ("librdkafka-newest", "franz-go", "sarama", "kafka-python", "aiokafka")
MIXED = {"range": ("java-4.4.0", "java-2.1.1", "java-0.11.0.3", "librdkafka-debian", "rdkafka",
                   "kafka-python-2.0.2", *ASSIGNS_ALIKE),
         # Only these read what kafka-go says of itself, and say what it can read.
         "range with kafka-go": ("kafka-go", "kafka-python-2.0.2", "aiokafka"),
         "roundrobin": ("java-4.4.0", "java-2.8.2", "kafka-python-2.0.2", *ASSIGNS_ALIKE),
         "sticky": ("java-4.4.0", "franz-go", "sarama", "kafka-python", "aiokafka"),
         "cooperative-sticky": ("java-4.4.0", "librdkafka-newest", "franz-go", "sarama",
                                "kafka-python", "rdkafka"),
         "consumer": ("java-4.4.0", "librdkafka-newest", "franz-go", "java-3.9.1")}
STATIC = ("java-4.4.0", *ASSIGNS_ALIKE)


class Run:
    """One group's test: `first` until the broker is killed, `second` when it is there again."""

    def __init__(self, name, clients, protocol, partitions):
        self.name, self.clients, self.protocol = name, clients, protocol
        self.partitions, self.group = partitions, None

    def start(self, folder, bootstrap, codec):
        self.group = members.Group(folder, bootstrap, codec, "g-" + self.name.replace(" ", "-"),
                                   self.partitions)
        for c in self.clients:
            c.command()  # Built before the clock runs.

    def join(self, client, protocol=None, **options):
        return self.group.join(client, protocol or self.protocol, **options)

    def gather(self, **options):
        """The first is there alone, and leads; then come the others."""
        self.join(self.clients[0], **options)
        self.group.settle()
        for c in self.clients[1:]:
            self.join(c, **options)
        return self.group.round()

    def part(self):
        """One after the other, so that each has led, to an empty group."""
        g, times = self.group, []
        while g.live:
            times.append(g.leave(g.live[0]))
            if g.live:
                g.round(2)
        equal(f"{g.name} at its end", g.kind()[2], "Empty")
        return f"each left within {max(times):.1f} s"

    def burst(self):
        self.group.produce(40)

    def go_on(self):
        """What was cut off is read to its end."""
        self.group.await_read()
        return self.group.round()

    def excuse(self):
        self.group.excuse()

    def clean(self):
        if self.group is not None:
            self.group.clean()


class Own(Run):
    """Two members of one library."""

    def __init__(self, client, protocol):
        super().__init__(f"{client.name} {protocol}", [client, client], protocol, 6)

    def first(self):
        g = self.group
        self.join(self.clients[0])
        g.round()
        other = self.join(self.clients[1])
        shared = g.round()
        lost = g.kill(other)
        self.join(self.clients[1])
        again = g.round()
        return f"shared after {shared:.1f} s, lost after {lost:.1f} s, again after {again:.1f} s"

    def second(self):
        took = self.go_on()
        left = self.group.leave(self.group.live[-1])
        self.group.round()
        self.group.leave(self.group.live[0])
        equal(f"{self.group.name} at its end", self.group.kind()[2], "Empty")
        return f"shared again after {took:.1f} s, left after {left:.1f} s"


class Mixed(Run):
    """Members of many libraries: the one who leads dies."""

    def __init__(self, name, clients):
        super().__init__("mixed " + name, clients, name.split()[0], 2 * len(clients))

    def first(self):
        shared = self.gather()
        leader = self.group.live[0]
        lost = self.group.kill(leader)
        self.join(leader.client)
        again = self.group.round()
        return f"{len(self.clients)} share after {shared:.1f} s, the leader lost after " \
               f"{lost:.1f} s, again after {again:.1f} s"

    def second(self):
        took = self.go_on()
        return f"shared again after {took:.1f} s; {self.part()}"


class Static(Run):
    """Members with instance ids: who comes back within its session disturbs nobody."""

    def __init__(self, clients):
        super().__init__("mixed static members", clients, "range", 2 * len(clients))

    def first(self):
        g = self.group
        for n, c in enumerate(self.clients):
            self.join(c, instance=f"i{n}", session=20000)
            if n == 0:
                g.settle()
        g.round()
        for n in range(len(self.clients)):
            old = g.live[0]
            before = {m: m.moves for m in g.live[1:]}
            old.end(kill=True)
            g.live.remove(old)
            new = self.join(old.client, instance=f"i{n}", session=20000)
            g.round()
            equal(f"what {new.name} holds", new.held, old.held)
            equal("moves of the others", {m.name: m.moves - b for m, b in before.items()},
                  {m.name: 0 for m in before})
        return f"{len(self.clients)} died and came back"

    def second(self):
        took = self.go_on()
        # They stay members when they end: the broker waits for their sessions.
        for m in list(self.group.live):
            self.group.live.remove(m)
            m.end()
        return f"shared again after {took:.1f} s"


class Upgrade(Run):
    """From the classic protocol to the new one and back, with a member on each side at a time."""

    def __init__(self, java, native):
        super().__init__("mixed classic and consumer", [java, native], "range", 6)

    def kind(self, wanted):
        equal(f"type of {self.group.name}", self.group.kind()[0], wanted)

    def first(self):
        self.gather()
        self.kind("classic")
        self.join(self.clients[0], "consumer")
        self.group.round()
        self.kind("consumer")
        lost = self.group.kill(self.group.live[1])
        self.join(self.clients[1])
        self.group.round()
        return f"a classic member of a consumer group was lost after {lost:.1f} s"

    def second(self):
        g = self.group
        self.go_on()
        self.replace("range", "consumer")
        self.kind("consumer")
        self.join(self.clients[0], "range")
        g.round()
        self.replace("consumer", "range")
        self.kind("classic")
        return self.part()

    def replace(self, old, new):
        """Each member of one protocol ends, one of the other comes."""
        for m in [m for m in self.group.live if m.protocol == old]:
            self.group.leave(m)
            self.group.round(2)
            self.join(m.client, new)
            self.group.round()


def own(clients, smoke):
    return [Own(c, protocol) for c in clients for protocol in
            (OWN.get(c.name, ())[:1] if smoke else OWN.get(c.name, ()))]


def mixed(clients, smoke):
    named = {c.name: c for c in clients}
    runs = [Mixed(name, [named[n] for n in names]) for name, names in MIXED.items()]
    if smoke:
        return runs[:1]
    return [*runs, Static([named[n] for n in STATIC]),
            Upgrade(named["java-4.4.0"], named["librdkafka-newest"])]
