"""Writes what a run found into docs/compatibility.md, between two marks."""
import os

from clients import builds, kafka_tools, plan

PAGE = os.path.join(builds.HERE, os.pardir, os.pardir, "docs", "compatibility.md")
MARKS = "<!-- {0}: begin -->\n", "<!-- {0}: end -->\n"
COLUMNS = {"consumes": "Consumes", "seeks by time": "Seeks by time",
           "transactions": "Transactions", "administers": "Administers",
           "handles errors": "Errors"}


def short(result):
    """One cell of what a test said."""
    if result.startswith(("FAILED", "not built", "not in", "waits")):
        return result
    waits = result.partition("; not yet served: ")[2]
    return f"passed; waits for {waits}" if waits else "passed"


def produces(client, results):
    written, read = results[client.name, "produces"], results[client.name, "is read back"]
    if "passed" not in short(written):
        return short(written)
    said = ", ".join(client.codecs) + ("; idempotent" if client.idempotent else "")
    if read.startswith(("FAILED", "not built")):
        return f"{said}; read back: {read}"
    return said + (f"; {read.partition('; ')[2]}" if "; " in read else "")


def rows(matrix):
    yield "| " + " | ".join(["Client", "Language", "Version", "Produces", *COLUMNS.values(),
                             "Notes"]) + " |"
    yield "|---|---|---|---|" + "---|" * (len(COLUMNS) + 1)
    for c in matrix.clients:
        cells = [c.package, c.language, c.version, produces(c, matrix.results)]
        cells += [short(matrix.results[c.name, aspect]) for aspect in COLUMNS]
        yield "| " + " | ".join([*cells, c.notes]) + " |"
    yield ""
    yield "| Kafka's own program | " + " | ".join(kafka_tools.VERSIONS) + " |"
    yield "|---|" + "---|" * len(kafka_tools.VERSIONS)
    for name, _, _ in kafka_tools.Tools("4.4.0", "", {}, "").tests():
        yield f"| {name} | " + " | ".join(
            short(matrix.results[f"kafka-{v}", name]) for v in kafka_tools.VERSIONS) + " |"


def between(page, lines, name):
    """The page with what stands between the marks of this name replaced."""
    begin, end = (mark.format(name) for mark in MARKS)
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        raise AssertionError(f"{PAGE} has not both marks of {name}")
    return head + begin + "\n".join(lines) + "\n" + end + tail


def put(lines, name):
    with open(PAGE) as f:
        page = f.read()
    with open(PAGE, "w") as f:
        f.write(between(page, lines, name))


def write(matrix):
    missing = [c.name for c in matrix.clients
               if any((c.name, a) not in matrix.results for a in plan.ASPECTS)]
    if missing:
        raise AssertionError(f"no results of {', '.join(missing)}")
    put(rows(matrix), "clients")
    return f"{len(matrix.clients)} clients and Kafka's own programs"


def group_rows(clients, runs, results):
    def verdict(run):
        both = [results[run.name, half] for half in (1, 2)]
        return next((r for r in both if r != "passed"), "passed")
    yield "| Client | Language | Version | Groups of its own |"
    yield "|---|---|---|---|"
    for c in clients:
        own = [r for r in runs if r.name.startswith(c.name + " ")]
        said = [r.protocol + ("" if verdict(r) == "passed" else " " + verdict(r)) for r in own]
        if said:
            yield f"| {c.package} | {c.language} | {c.version} | {', '.join(said)} |"
    yield ""
    yield "| Group of several | Members | Result |"
    yield "|---|---|---|"
    for r in runs:
        if r.name.startswith("mixed "):
            members = ", ".join(f"{c.package} {c.version.partition(' on ')[0]}" for c in r.clients)
            yield f"| {r.name.removeprefix('mixed ')} | {members} | {verdict(r)} |"
        elif r.name.startswith("Kafka "):
            yield f"| {r.name} {r.version} | {r.what} | {verdict(r)} |"


def write_groups(clients, runs, results):
    put(group_rows(clients, runs, results), "groups")
    return f"{len(runs)} groups"
