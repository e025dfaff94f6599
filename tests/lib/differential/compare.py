"""Sends the same requests to a real Kafka and to us, and says where the answers part."""
import collections
import re

from lib.differential.broker import Broker


class Case:
    """`body(broker)` makes requests of one broker and notes what is to be compared. It runs on the
    real Kafka first. `allowed`: paths that may differ, as `where`, with the reason."""

    def __init__(self, name, body, allowed=()):
        self.name, self.body, self.allowed = name, body, list(allowed)


def differences(real, ours, where=""):
    """Pairs of a path and a sentence, for each place where two comparable values part."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted(set(real) | set(ours)):
            at = f"{where}.{key}" if where else key
            if key not in ours:
                yield at, f"only Kafka has it: {real[key]!r}"
            elif key not in real:
                yield at, f"only we have it: {ours[key]!r}"
            else:
                yield from differences(real[key], ours[key], at)
    elif isinstance(real, list) and isinstance(ours, list):
        if len(real) != len(ours):
            yield where, f"Kafka has {len(real)} entries, we have {len(ours)}: " \
                         f"{real!r:.600} against {ours!r:.600}"
        for i, (a, b) in enumerate(zip(real, ours)):
            yield from differences(a, b, f"{where}[{i}]")
    elif real != ours:
        yield where, f"Kafka {real!r:.400}, we {ours!r:.400}"


class Pair:
    def __init__(self, kafka_address, our_address, codec):
        self.kafka = Broker("Kafka", kafka_address, codec)
        self.ours = Broker("Calque", our_address, codec)
        self.counts = collections.Counter()  # Answers that were compared, by API.

    def close(self):
        self.kafka.close()
        self.ours.close()

    def run(self, case):
        """The number of answers compared; fails with every difference that is not allowed."""
        for broker in (self.kafka, self.ours):
            broker.begin()
            case.body(broker)
        real, ours = self.kafka.log, self.ours.log
        if not real:
            raise AssertionError("a case without an answer")
        found, unused = [], {where for where, _ in case.allowed}
        if [what for what, _ in real] != [what for what, _ in ours]:
            found.append(f"other answers: {[w for w, _ in real]} against {[w for w, _ in ours]}")
        for i, ((what, theirs), (_, mine)) in enumerate(zip(real, ours)):
            for where, sentence in differences(theirs, mine):
                reason = next((w for w, _ in case.allowed if where.endswith(w)), None)
                if reason is None:
                    found.append(f"answer {i + 1}, {what}: {where}: {sentence}")
                unused.discard(reason)
        found += [f"allowed but not seen: a difference in {where}" for where in sorted(unused)]
        if found:
            raise AssertionError("\n".join(found))
        named = (re.match(r"(\w+) v\d+$", what) for what, _ in real)
        self.counts.update(match[1] for match in named if match)
        return len(real)
