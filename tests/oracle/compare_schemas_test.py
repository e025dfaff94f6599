#!/usr/bin/env python3
"""The comparison of schemas finds each kind of difference. Needs no jar: Kafka's side is made from
ours, then altered."""
import copy
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_schemas  # noqa: E402
from compare_schemas import generate  # noqa: E402

THING = """
api 7 thing  versions 1-5  flexible 3+
request
  name          string?  = null          null 2+
  limit         i32 = 5        2+
  topics        [topic]
    topic_id    uuid           4+
    partitions  [i32]?         1-3
  extra         struct         3+        tag 0
    is_new      bool = true
response
  error_code    i16
  records       records?
"""

NOTED = """
record 4 noted_record  versions 0-2  flexible 2+
key
  group         string
value
  offset        i64
  metadata      string?         1+
"""


def camel(name):
    return "".join(w.capitalize() for w in name.split("_"))


def json_type(f):
    name = {ours: kafkas for kafkas, ours in compare_schemas.TYPES.items()}.get(
        f.element, f.struct_name)
    return "[]" + name if f.is_array else name


def json_fields(fields):
    """Our fields in the shape of Kafka's JSON."""
    made = []
    for f in fields:
        j = {"name": camel(f.name), "type": json_type(f), "versions": f"{f.lo}-{f.hi}"}
        if f.nullable:
            j["nullableVersions"] = f"{f.null_from}+"
        if f.default:
            j["default"] = f.default
        if f.tag >= 0:
            j.update(tag=f.tag, taggedVersions=f"{f.lo}+")
        if f.children:
            j["fields"] = json_fields(f.children)
        made.append(j)
    return made


def json_message(m, section):
    return {"apiKey": m.key, "name": m.struct(section), "validVersions": f"{m.lo}-{m.hi}",
            "flexibleVersions": f"{m.flexible}+", "fields": json_fields(m.sections[section])}


class Compared(unittest.TestCase):
    def setUp(self):
        self.message = generate.parse("thing.msg", THING)
        self.request = json_message(self.message, "request")
        self.response = json_message(self.message, "response")

    def differences(self):
        return compare_schemas.compare_message(
            self.message, {"ThingRequest": self.request, "ThingResponse": self.response})

    def caught(self, words, alter):
        before = copy.deepcopy((self.request, self.response))
        alter(self.request)
        found = self.differences()
        self.request, self.response = before
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_equal(self):
        self.assertEqual(self.differences(), [])

    def test_each_alteration_is_caught(self):
        f = lambda j: j["fields"]  # noqa: E731
        self.caught("limit: type", lambda j: f(j)[1].update(type="int64"))
        self.caught("limit: versions", lambda j: f(j)[1].update(versions="3+"))
        self.caught("limit: default", lambda j: f(j)[1].update(default="6"))
        self.caught("limit: default", lambda j: f(j)[1].pop("default"))
        self.caught("name: default", lambda j: f(j)[0].pop("default"))
        self.caught("name: nullable", lambda j: f(j)[0].update(nullableVersions="3+"))
        self.caught("topics: nullable", lambda j: f(j)[2].update(nullableVersions="1+"))
        self.caught("topics: type", lambda j: f(j)[2].update(type="Topic"))
        self.caught("topic_id: versions", lambda j: f(j)[2]["fields"][0].update(versions="5+"))
        self.caught("extra: tag:", lambda j: f(j)[3].update(tag=1))
        self.caught("extra: tagged versions", lambda j: f(j)[3].update(taggedVersions="4+"))
        self.caught("is_new: default", lambda j: f(j)[3]["fields"][0].pop("default"))
        self.caught("order", lambda j: f(j).reverse())
        self.caught("flexible since", lambda j: j.update(flexibleVersions="4+"))
        self.caught("flexible since", lambda j: j.update(flexibleVersions="none"))
        self.caught("key", lambda j: j.update(apiKey=8))
        self.caught("flexible versions", lambda j: f(j)[0].update(flexibleVersions="none"))
        self.caught("more: we have no such field",
                    lambda j: f(j).append({"name": "More", "type": "int8", "versions": "5"}))
        self.caught("topics: Kafka has no such field", lambda j: f(j).pop(2))
        self.caught("partitions: Kafka has no such field", lambda j: f(j)[2]["fields"].pop(1))

    def test_versions_of_the_message(self):
        self.request["validVersions"] = self.response["validVersions"] = "1-6"
        self.assertIn("ThingRequest: versions: ours (1, 5), Kafka's (1, 6)", self.differences())
        self.request["latestVersionUnstable"] = True
        self.assertEqual(self.differences(), [])

    def test_what_kafka_does_not_have(self):
        found = compare_schemas.compare_message(self.message, {"ThingRequest": self.request})
        self.assertEqual(found, ["thing: Kafka has no ThingResponse"])

    def test_records(self):
        record = generate.parse("noted.msg", NOTED)
        key = {"apiKey": 4, "name": "NotedKey", "fields": [
            {"name": "group", "type": "string", "versions": "0"}]}
        value = {"name": "NotedValue", "validVersions": "0-2", "flexibleVersions": "2+",
                 "fields": json_fields(record.sections["value"])}

        def found(**schemas):
            return compare_schemas.compare_record(record, {"NotedKey": key, "NotedValue": value,
                                                           **schemas})
        self.assertEqual(found(), [])
        for words, altered in (
                ("type", {"NotedKey": {**key, "apiKey": 5}}),
                ("key", {"NotedKey": {**key, "fields": []}}),
                ("versions", {"NotedValue": {**value, "validVersions": "0-1"}}),
                ("offset", {"NotedValue": {**value, "fields": value["fields"][1:]}}),
                ("flexible", {"NotedValue": {**value, "flexibleVersions": "none"}})):
            self.assertIn(words, " ".join(found(**altered)))
        self.assertEqual(compare_schemas.compare_record(record, {}), [])

    def test_notation(self):
        self.assertEqual(compare_schemas.interval("3+", (1, 5)), (3, 5))
        self.assertEqual(compare_schemas.interval("0-2", (1, 5)), (1, 2))
        self.assertEqual(compare_schemas.interval("4", (1, 5)), (4, 4))
        self.assertEqual(compare_schemas.interval("6+", (1, 5)), compare_schemas.NOTHING)
        self.assertEqual(compare_schemas.interval("none", (1, 5)), compare_schemas.NOTHING)
        self.assertEqual(compare_schemas.snake("V3AndBelowTopics"), "v3_and_below_topics")
        self.assertEqual(compare_schemas.snake("timeoutMs"), "timeout_ms")
        self.assertEqual(compare_schemas.read_json('// a\n{\n  // b\n "x": 1 }'),
                         {"x": 1})


if __name__ == "__main__":
    unittest.main()
