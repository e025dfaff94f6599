"""What the comparisons of administration requests have in common."""
import time

# Both say something where a name, a version or a value is wrong; each in its own words.
SENTENCES = {"errorMessage", "documentation"}
# KIP-1279's, which Kafka 4.4 does not have.
OUR_SETTINGS = {"mirror.replication.throttled.replicas", "mirror.support.unclean.leader.election"}
# Kafka sets it for all brokers when eligible leader replicas are on; here there are none.
RAISED_BY_ELR = "min.insync.replicas"
UNORDERED = {"topics", "responses", "results", "entries", "configs", "configResources", "entity",
             "partitions", "values", "partitionResult", "replicaElectionResults",
             "activeProducers"}


def shaped(value, field=""):
    """The answer without what differs by right: sentences are only known to be there or not, and
    lists that Kafka takes from a map are sorted."""
    if isinstance(value, dict):
        if value.get("name") == RAISED_BY_ELR and "configSource" in value:
            value = {**value, "configSource": 5, "synonyms": []}
        return {k: shaped(v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [shaped(v) for v in value
                 if not (isinstance(v, dict) and v.get("name") in OUR_SETTINGS)]
        return sorted(items, key=repr) if field in UNORDERED else items
    if field in SENTENCES and value:
        return "a sentence"
    return value


def ask(b, api, version, body, connection=0, note=True):
    """Sends a request; its answer is compared in the shape above."""
    answer = b.ask(api, version, body, connection)
    if note:
        b.note(f"{api} v{version}", shaped(answer) if isinstance(answer, dict) else answer)
    return answer


def new_topic(name, partitions=1, replicas=1, assignments=(), **configs):
    """Names of settings have _ for a dot, and a value that is None is null."""
    return {"name": name, "numPartitions": partitions, "replicationFactor": replicas,
            "assignments": [{"partitionIndex": i, "brokerIds": ids} for i, ids in assignments],
            "configs": [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()]}


def create(b, *topics, version=7, validate_only=False):
    answer = b.ask("CreateTopics", version, {"topics": list(topics), "timeoutMs": 30000,
                                             "validateOnly": validate_only})
    for topic in answer["topics"]:
        # Kafka makes up an id that nobody will ever see again.
        if validate_only and topic.get("topicId"):
            topic["topicId"] = "0" * 32
        if topic.get("topicId") and topic["errorCode"] == 0:
            b.names[topic["topicId"]] = f"id of {topic['name']}"
    b.note(f"CreateTopics v{version}", shaped(answer))
    if not validate_only:
        counts = {t["name"]: max(1, len(t["assignments"]) or t["numPartitions"]) for t in topics}
        for topic in answer["topics"]:
            if topic["errorCode"] == 0:
                b.await_leaders(topic["name"], counts[topic["name"]])
    return answer


def until(b, question, settled, seconds=10):
    """Asks until the answer is what it will be in the end: Kafka's brokers hear of a change later
    than the client that made it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if settled(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)
