"""The broker that clients are put to: Calque, or with TESTS_BROKER=kafka a real Kafka 4.4.0."""
import os

from lib import real_kafka
from lib.calque import Calque


def start(folder, settings, only_kafka=None):
    """`only_kafka`: settings that Kafka needs besides."""
    if os.environ.get("TESTS_BROKER") == "kafka":
        broker = real_kafka.Kafka("4.4.0", os.path.join(folder, "kafka"),
                                  settings={**settings, **(only_kafka or {})})
    else:
        broker = Calque(os.path.join(folder, "calque"), settings)
    broker.start()
    return broker


def end(broker):
    """Whatever state it is in; None is fine."""
    if isinstance(broker, Calque):
        if broker.child is not None:
            broker.kill()
    elif broker is not None:
        broker.stop(kill=True)
