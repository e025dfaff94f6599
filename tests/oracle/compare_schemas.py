#!/usr/bin/env python3
"""Holds our message schemas against those inside Kafka's own jar, field by field.

    compare_schemas.py [KAFKA-CLIENTS.jar [KAFKA-GROUP-COORDINATOR.jar ...]]

Without an argument the jars are those of Kafka 4.4.0, from Maven Central. Compared of each field:
order, name, type, versions, versions in which it may be null, default, tag; of each message:
key, versions, first flexible version. Unstable versions are left out on both sides. What stands in
our schemas and not in Kafka, the mirror's, is not compared. Each difference is one line; exit
status 1 if there is any.
"""
import os
import re
import sys
import zipfile
import json

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCHEMAS = os.path.join(ROOT, "protocol", "messages")
sys.path[:0] = [os.path.join(ROOT, "protocol"), os.path.join(ROOT, "tests")]
import generate  # noqa: E402

VERSION = "4.4.0"
COORDINATORS = ("group-coordinator", "transaction-coordinator")  # Whose records are in the jars.
TYPES = {"bool": "bool", "int8": "i8", "int16": "i16", "uint16": "u16", "int32": "i32",
         "uint32": "u32", "int64": "i64", "float64": "f64", "string": "string", "uuid": "uuid",
         "bytes": "bytes", "records": "records"}
NOTHING = (1, 0)  # no version at all


def snake(name):
    """MaxWaitMs -> max_wait_ms"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[0].upper() + name[1:]).lower()


def interval(text, within):
    """Kafka's notation of versions (3, 3+, 3-5, none), cut to what is looked at."""
    lo, hi = within
    if text == "none":
        return NOTHING
    first, _, last = text.rstrip("+").partition("-")
    last = hi if text.endswith("+") else int(last or first)
    lo, hi = max(lo, int(first)), min(hi, last)
    return (lo, hi) if lo <= hi else NOTHING


def read_json(text):
    """Kafka's schemas are JSON with comments, each on lines of its own."""
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def kafka_default(field, type_name, is_array, nullable):
    """In our words: None is null, otherwise a number, bool or empty."""
    value = field.get("default")
    if nullable and str(value) == "null":
        return None
    if is_array or type_name in ("string", "bytes", "records", "uuid", "struct"):
        return value or ""
    if type_name == "bool":
        return str(value).lower() == "true"
    return float(value or 0) if type_name == "f64" else int(str(value or 0), 0)


def our_default(field):
    if field.default == "null":
        return None
    if field.is_array or field.is_struct or field.element in ("string", "bytes", "records", "uuid"):
        return field.default
    if field.element == "bool":
        return field.default == "true"
    return float(field.default or 0) if field.element == "f64" else int(field.default or "0", 0)


def kafka_fields(fields, within, structs):
    """[(name, facts, fields below)] in the order of the wire; facts: {what: value}."""
    found = []
    for field in fields:
        versions = interval(field.get("versions") or field["taggedVersions"], within)
        if versions == NOTHING:
            continue
        word = field["type"].removeprefix("[]")
        is_array, type_name = word != field["type"], TYPES.get(word, "struct")
        null = interval(field.get("nullableVersions", "none"), versions)
        facts = {
            "type": f"[{type_name}]" if is_array else type_name,
            "versions": versions,
            "nullable versions": null,
            "default": kafka_default(field, type_name, is_array, null != NOTHING),
            "tag": field.get("tag"),
            "tagged versions": interval(field.get("taggedVersions", "none"), versions),
            "flexible versions": field.get("flexibleVersions"),
        }
        below = field.get("fields") or structs.get(word, []) if type_name == "struct" else []
        found.append((snake(field["name"]), facts, kafka_fields(below, versions, structs)))
    return found


def our_fields(fields):
    found = []
    for f in fields:
        type_name = "struct" if f.is_struct else f.element
        versions = (f.lo, f.hi)
        facts = {
            "type": f"[{type_name}]" if f.is_array else type_name,
            "versions": versions,
            "nullable versions": (f.null_from, f.hi) if f.nullable else NOTHING,
            "default": our_default(f),
            "tag": f.tag if f.tag >= 0 else None,
            "tagged versions": versions if f.tag >= 0 else NOTHING,
            "flexible versions": None,
        }
        found.append((f.name, facts, our_fields(f.children)))
    return found


def compare_fields(where, ours, theirs):
    our_names, their_names = [x[0] for x in ours], [x[0] for x in theirs]
    differences = [f"{where}.{n}: we have no such field" for n in their_names if n not in our_names]
    differences += [f"{where}.{n}: Kafka has no such field" for n in our_names
                    if n not in their_names]
    if not differences and our_names != their_names:
        differences.append(f"{where}: our order is {our_names}, Kafka's {their_names}")
    known = {name: (facts, below) for name, facts, below in theirs}
    for name, facts, below in ours:
        if name not in known:
            continue
        for what, value in facts.items():
            if value != known[name][0][what]:
                differences.append(f"{where}.{name}: {what}: ours {value}, "
                                   f"Kafka's {known[name][0][what]}")
        differences += compare_fields(f"{where}.{name}", below, known[name][1])
    return differences


def stable_versions(request):
    """What of validVersions is stable: a last version may be marked as unstable."""
    lo, hi = interval(request["validVersions"], (0, generate.NEVER))
    return lo, hi - (1 if request.get("latestVersionUnstable") else 0)


def compare_message(message, schemas):
    """`schemas`: {"FetchRequest": parsed JSON}."""
    names = {section: message.struct(section) for section in ("request", "response")}
    missing = [f"{message.name}: Kafka has no {name}" for name in names.values()
               if name not in schemas]
    if missing:
        return missing
    versions = stable_versions(schemas[names["request"]])
    differences = []
    for section, name in names.items():
        theirs = schemas[name]
        flexible = theirs["flexibleVersions"]
        facts = [("key", message.key, theirs["apiKey"]),
                 ("versions", (message.lo, message.hi), versions),
                 ("flexible since", message.flexible,
                  generate.NEVER if flexible == "none" else int(flexible.rstrip("+"))),
                 ("Kafka's versions of the response cover the request's", True,
                  interval(theirs["validVersions"], versions) == versions)]
        differences += [f"{name}: {what}: ours {ours}, Kafka's {kafkas}"
                        for what, ours, kafkas in facts if ours != kafkas]
        structs = {s["name"]: s["fields"] for s in theirs.get("commonStructs", [])}
        differences += compare_fields(name, our_fields(message.sections[section]),
                                      kafka_fields(theirs["fields"], versions, structs))
    return differences


def compare_record(message, schemas):
    """Of a record in an internal topic; nothing for those that Kafka does not have."""
    words = message.struct("key").removesuffix("Key").removesuffix("Record")
    key, value = schemas.get(words + "Key"), schemas.get(words + "Value")
    if key is None or value is None or "key" not in message.sections:
        return []
    versions = interval(value["validVersions"], (0, generate.NEVER))
    flexible = value["flexibleVersions"]
    facts = [("type", message.key, key["apiKey"]),
             ("versions", (message.lo, message.hi), versions),
             ("flexible since", message.flexible,
              generate.NEVER if flexible == "none" else int(flexible.rstrip("+"))),
             ("key", [(n, f["type"]) for n, f, _ in our_fields(message.sections["key"])],
              [(n, f["type"]) for n, f, _ in kafka_fields(key["fields"], (0, 0), {})])]
    differences = [f"{words}: {what}: ours {ours}, Kafka's {kafkas}"
                   for what, ours, kafkas in facts if ours != kafkas]
    structs = {s["name"]: s["fields"] for s in value.get("commonStructs", [])}
    return differences + compare_fields(words + "Value", our_fields(message.sections["value"]),
                                        kafka_fields(value["fields"], versions, structs))


def our_schemas(kind):
    paths = sorted(os.listdir(SCHEMAS))
    messages = [generate.parse(os.path.join(SCHEMAS, p)) for p in paths if p.endswith(".msg")]
    found = [m for m in messages if m.kind == kind]
    if not found:
        raise AssertionError(f"no schemas of {kind} in {SCHEMAS}")
    return found


def our_messages():
    return our_schemas("api")


def kafka_schemas(jar):
    """{name: parsed JSON} of the requests and responses in the jar."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.startswith("common/message/") and entry.endswith(".json"):
                schema = read_json(archive.read(entry).decode())
                found[schema["name"]] = schema
    return found


def default_jar(name="clients"):
    from lib import real_kafka
    return os.path.join(real_kafka.jars(VERSION), f"kafka-{name}-{VERSION}.jar")


def compare_all(jar, *coordinator_jars):
    schemas, records = kafka_schemas(jar), {}
    for one in coordinator_jars or map(default_jar, COORDINATORS):
        records |= kafka_schemas(one)
    return [d for m in our_messages() for d in compare_message(m, schemas)] + \
        [d for m in our_schemas("record") for d in compare_record(m, records)]


def main(arguments):
    if arguments[:1] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    differences = compare_all(*(arguments or [default_jar()]))
    print("\n".join(differences) if differences else
          f"{len(our_messages())} APIs: each field as in Kafka {VERSION}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
