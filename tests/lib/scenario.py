"""Fills a real Kafka with the topics of tests/interop/java/Scenario.java."""
import os

from lib import process, real_kafka, wire

JAVA = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop", "java")
CLIENT_VERSION = "4.4.0"
TOPICS = {"one": 1, "three": 3, "sixteen": 16, "append-time": 1, "transactions": 3, "empty": 1,
          "compacted": 1}
OPEN_TRANSACTIONS = {("transactions", 0): 1, ("transactions", 1): 1}
RESTARTS = 3


def java_program(name, args, **options):
    """Runs one of our Java programs with the newest client; returns its output as text."""
    classes = real_kafka.compiled(os.path.join(JAVA, name + ".java"), CLIENT_VERSION)
    return real_kafka.run_class(CLIENT_VERSION, name, args, more_classes=[classes],
                                **options).stdout.decode()


def run_steps(bootstrap, seed, *steps, timeout=600):
    return java_program("Scenario", [bootstrap, str(seed), *steps], timeout=timeout)


def await_topics(bootstrap, topics, seconds=180):
    """Waits until every partition has a leader. Kafka 2.1 forgets its topics for a moment."""
    def ready():
        try:
            with wire.Client(bootstrap) as client:
                found = client.metadata(list(topics))
                for topic, partitions in topics.items():
                    if len(found.get(topic, {})) != partitions:
                        return False
                    for partition in range(partitions):
                        client.list_offset(topic, partition, wire.LATEST)
        except (OSError, ValueError, wire.KafkaError):
            return False
        return True
    process.wait_for(f"leaders of {', '.join(topics)}", ready, seconds)


def source(version, folder):
    """A Kafka of that release, not started, whose cleaner works at once.

    With ZooKeeper there are two brokers: alone, a broker comes back with the leader epochs that it
    had, since no controller saw it go.
    """
    nodes = 1 if real_kafka.number(version) >= (4, 0) else 2
    return real_kafka.Kafka(version, folder, nodes, "256m", settings={
        # Some records are as old as 1970: retention by time would take the source's head away.
        "default.replication.factor": 1, "log.retention.ms": -1,
        "log.cleaner.backoff.ms": 300, "transaction.max.timeout.ms": 3600000,
        "log.segment.delete.delay.ms": 1000, "auto.create.topics.enable": "false"})


def fill(kafka, seed=1):
    """All steps with a restart of the broker between them: three changes of leader epoch."""
    bootstrap = kafka.start()
    run_steps(bootstrap, seed, "topics", "records:12", "large")
    for n in range(RESTARTS):
        kafka.restart()
        await_topics(bootstrap, TOPICS)
        run_steps(bootstrap, seed + 1 + n, "records:6", "transactions",
                  *(["compact"] if n == RESTARTS - 1 else []))
    run_steps(bootstrap, seed + 9, "open")
    return bootstrap


def await_quiet(client, topics, seconds=60):
    """Waits until the cleaner has stopped changing what a reader sees; returns all batches."""
    def read():
        return {(t, p): client.read_log(t, p) for t in topics for p in range(topics[t])}
    last = read()

    def quiet():
        nonlocal last
        before, last = last, read()
        return {k: b"".join(b.data for b in v) for k, v in before.items()} == \
            {k: b"".join(b.data for b in v) for k, v in last.items()}
    process.wait_for("the source's cleaner to come to rest", quiet, seconds, 2)
    return last
