"""ApiVersions, and versions that nobody serves."""
import os
import struct

from lib.differential.broker import CLOSED
from lib.differential.compare import Case

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "golden",
                     "api_versions.txt")


def kafka_ranges():
    """{key: (name, least, greatest)} of Kafka 4.4.0, see oracle/check_api_versions.py."""
    with open(TABLE, encoding="ascii") as f:
        return {int(k): (name, int(low), int(high)) for k, name, low, high in map(str.split, f)}


def listed(answer):
    return {k["apiKey"]: (k["minVersion"], k["maxVersion"]) for k in answer["apiKeys"]}


def note(b, version, answer):
    """Which APIs there are is each broker's own matter; their versions are not."""
    if answer != CLOSED:
        known = {key: (low, high) for key, (_, low, high) in kafka_ranges().items()}
        keys = listed(answer)
        wrong = {k: r for k, r in keys.items() if known.get(k) != r}
        supported = {f["name"]: f["maxVersion"] for f in answer.pop("supportedFeatures", [])}
        # Version 3 cannot tell of features that begin at 0, and then leaves them out.
        above = [f for f in answer.pop("finalizedFeatures", [])
                 if version > 3 and f["maxVersionLevel"] > supported.get(f["name"], 0)]
        answer.pop("finalizedFeaturesEpoch", None)
        answer["apiKeys"] = len(keys) if len(keys) < 2 else "many"
        answer["versions that differ from the table"] = wrong
        answer["finalized, but not supported"] = above
    b.note(f"ApiVersions v{version}", answer)


def ask(b, version, name="tests", software="1.0", **fields):
    body = {"clientSoftwareName": name, "clientSoftwareVersion": software} if version >= 3 else {}
    note(b, version, b.ask("ApiVersions", version, body | fields))


def api_versions(b):
    for version in range(6):
        ask(b, version)
        ask(b, version)  # As often as one likes.
    for version in (6, 7, 127, 32767):
        sent = b.send("ApiVersions", version, {"clientSoftwareName": "tests",
                                               "clientSoftwareVersion": "1.0"})
        note(b, version, b.receive("ApiVersions", 0, sent))
        ask(b, 3)  # A01: the connection goes on.
    for name in ("", "-", "-a", "a-", "a b", "\u00fc", ".", "a.b-c", "1", "x" * 300):
        ask(b, 3, name)
        ask(b, 4, "tests", name)
    cluster = b.ask("DescribeCluster", 0, {})["clusterId"]
    for cluster_id in (None, cluster, "another", ""):
        for node in (-1, 1, 2, -2):
            ask(b, 5, clusterId=cluster_id, nodeId=node)


def unserved_versions(b, keys):
    """Above and below what there is: the connection ends. Of each API that we serve but ApiVersions
    itself, which is answered whatever its version."""
    for key in sorted(keys):
        name, low, high = kafka_ranges()[key]
        low = 3 if name == "Produce" else low
        for version in (low - 1, high + 1, 32767):
            header = struct.pack(">hhihx", key, version, 7, -1)  # Without a client id.
            s = b._socket(0)
            s.sendall(struct.pack(">i", len(header)) + header)
            try:
                answer = b._read(s, 4).hex()
            except ConnectionError:
                answer = CLOSED
            b.close()
            b.note(f"{name} v{version}", answer)


CASES = [Case("ApiVersions", api_versions)]
