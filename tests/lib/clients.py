"""Other people's clients, each asked for all records of one partition from offset 0 on.

Each function returns the records in a form of its own, to be compared with what the same client
says about another cluster.
"""
import os
import subprocess
import sys
import venv

from lib import real_kafka

# confluent-kafka brings its own, new librdkafka; Debian's kcat uses one of 2022.
PYTHON_CLIENT = "confluent-kafka>=2.5,<3"
VENV = os.environ.get("TESTS_VENV", os.path.join(real_kafka.CACHE, "python-client"))

READ_ALL = r'''
import sys
from confluent_kafka import Consumer, TopicPartition, KafkaError
bootstrap, topic, partition, isolation = sys.argv[1:]
c = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False,
              "enable.partition.eof": True, "isolation.level": isolation, "check.crcs": True})
c.assign([TopicPartition(topic, int(partition), 0)])
while True:
    m = c.poll(30)
    if m is None:
        sys.exit("no record and no end within 30 s")
    if m.error():
        if m.error().code() == KafkaError._PARTITION_EOF:
            print("end", m.offset())
            break
        sys.exit(str(m.error()))
    print(m.offset(), m.timestamp(), m.leader_epoch(), m.key(), m.value(), m.headers())
c.close()
'''


def python_client(requirement=PYTHON_CLIENT):
    """The interpreter of a virtual environment that has the Python client, made at first use."""
    folder = VENV if requirement == PYTHON_CLIENT else VENV + "-" + requirement.partition("==")[2]
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "ready")):
        venv.create(folder, with_pip=True, clear=True)
        run = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                              requirement], capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"pip cannot install {requirement}:\n{run.stderr[-2000:]}")
        with open(os.path.join(folder, "ready"), "w") as f:
            f.write(requirement + "\n")
    return python


def _output(name, run):
    if run.returncode:
        raise AssertionError(f"{name} ended with {run.returncode}: "
                             f"{run.stderr[-1500:].decode(errors='replace')}")
    return run.stdout


def with_python(bootstrap, topic, partition, isolation="read_uncommitted",
                requirement=PYTHON_CLIENT):
    return _output("the Python client", subprocess.run(
        [python_client(requirement), "-c", READ_ALL, bootstrap, topic, str(partition), isolation],
        capture_output=True, timeout=90))


def with_kcat(bootstrap, topic, partition, isolation="read_uncommitted"):
    return _output("kcat", subprocess.run(
        ["kcat", "-C", "-q", "-b", bootstrap, "-t", topic, "-p", str(partition), "-o", "beginning",
         "-e", "-X", f"isolation.level={isolation}", "-X", "check.crcs=true",
         "-f", "%o %T %K %S %h %k %s\n"], capture_output=True, timeout=90))


def with_console_consumer(bootstrap, topic, partition, count, isolation="read_uncommitted",
                          version="4.4.0"):
    """Kafka's own console consumer. It knows no end of a partition: `count` records are awaited."""
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer" \
        if real_kafka.number(version) >= (4, 0) else "kafka.tools.ConsoleConsumer"
    args = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", str(partition),
            "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "30000",
            "--isolation-level", isolation]
    for item in ("timestamp", "key", "value") + \
            (("offset", "headers", "partition") if real_kafka.number(version) >= (2, 7) else ()):
        args += ["--property", f"print.{item}=true"]
    run = real_kafka.run_class(version, main, args, timeout=120)
    if f"Processed a total of {count} messages" not in run.stderr.decode(errors="replace"):
        raise AssertionError(f"the console consumer did not get {count} records of {topic}-"
                             f"{partition}: {run.stderr[-1500:].decode(errors='replace')}")
    return run.stdout


if __name__ == "__main__":
    print(python_client(), file=sys.stderr)
