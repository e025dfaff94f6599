"""Kafka's own tools look at partition directories: its dump tool and its log loader."""
import os
import re
import shutil

from lib import real_kafka
from lib.scenario import CLIENT_VERSION, java_program

KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
# A mapped file of more records than these costs minutes to print and shows nothing new.
LOG_BYTES_MAX = 16 << 20


def partition_folders(data):
    """{topic-partition: path} of the log directory's partitions."""
    found = {}
    for name in sorted(os.listdir(data)):
        path = os.path.join(data, name)
        if re.fullmatch(r".+-\d+", name) and os.path.isdir(path):
            found[name] = path
    return found


def checkpoint(path):
    """The lines of a checkpoint file (version, count, lines), checked for their number."""
    with open(path) as f:
        lines = f.read().split("\n")
    if lines[0] != "0" or int(lines[1]) != len([l for l in lines[2:] if l]):
        raise AssertionError(f"{path}: bad head {lines[:2]}")
    return [l for l in lines[2:] if l]


def without_gaps(lines):
    """Leaves out what the tool says of offsets that are legally not consecutive: those of a
    compacted topic, and the first of any segment (it takes -1 for the offset before)."""
    file, kept = "", []
    for line in lines:
        head = re.fullmatch(r"Non-consecutive offsets in (.*)", line)
        gap = re.fullmatch(r"\s*(-?\d+) is followed by (\d+)", line)
        if head:
            file = head[1]
        elif gap and (gap[1] == "-1" or "/compacted-" in file):
            pass
        elif line.strip():
            kept.append(f"{file}: {line}" if gap else line)
    return kept


def dump_complaints(files):
    """What DumpLogSegments holds against these files. It ends with 0 whatever it finds."""
    complaints = []
    for options in (["--deep-iteration"], ["--index-sanity-check"]):
        chosen = [f for f in files if options[0] == "--deep-iteration" or f.endswith("index")]
        for at in range(0, len(chosen), 400):
            run = real_kafka.run_class(
                CLIENT_VERSION, "org.apache.kafka.tools.DumpLogSegments",
                [*options, "--files", ",".join(chosen[at:at + 400])], check=False, timeout=300)
            out = run.stdout.decode(errors="replace").split("\n")
            complaints += without_gaps(run.stderr.decode(errors="replace").split("\n"))
            complaints += [l for l in out if re.search(
                r"isvalid: false|invalid bytes|[Mm]ismatch|[Cc]orrupt|Could not|Exception"
                r"|out of order", l)]
            if run.returncode:
                complaints.append(f"ended with {run.returncode}")
            dumped = sum(l.startswith("Dumping ") for l in out)
            if dumped != len(chosen[at:at + 400]):
                complaints.append(f"{dumped} of {len(chosen)} files dumped")
    return complaints


def check_with_dump(data):
    """Fails unless DumpLogSegments finds nothing wrong. Returns the number of files."""
    files = []
    for path in partition_folders(data).values():
        if sum(e.stat().st_size for e in os.scandir(path)) > LOG_BYTES_MAX:
            continue
        files += [os.path.join(path, n) for n in sorted(os.listdir(path)) if n.endswith(KINDS)]
    if not any(f.endswith(".log") for f in files):
        raise AssertionError(f"no segment under {data}")
    complaints = dump_complaints(files)
    if complaints:
        raise AssertionError("DumpLogSegments:\n" + "\n".join(complaints[:20]))
    return len(files)


def index_files(folder):
    found = {}
    for name in os.listdir(folder):
        if name.endswith(("index", ".txnindex")):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = f.read()
    return found


def load(mode, data, starts):
    """{name: (start, end, epochs, topic id, producers)} as Kafka's loader sees copies of them."""
    args = [f"{name}={start}" for name, start in sorted(starts.items())]
    out = java_program("LoadLog", [mode, data, *args], timeout=300)
    return {w[0]: (int(w[1]), int(w[2]), w[3], w[4], int(w[5]))
            for w in (line.split(" ") for line in out.split("\n") if line)}


def check_with_loader(data, wanted, folder, producers=True):
    """Opens copies of the partitions with Kafka's loader, as after a clean end and as after a
    crash. `wanted`: {(topic, partition): (log start, log end)}. Returns the number of logs.
    Without `producers` their number may differ: after a failover the log holds the record that
    forgets all producers, which our snapshots follow and Kafka's recovery does not know."""
    places = partition_folders(data)
    starts = {f"{t}-{p}": start for (t, p), (start, _) in wanted.items()}
    missing = sorted(set(starts) - set(places))
    if missing:
        raise AssertionError(f"no directory for {missing}")
    seen = {}
    for mode in ("clean", "crashed"):
        copy = os.path.join(folder, "loaded-" + mode)
        for name in starts:
            shutil.copytree(places[name], os.path.join(copy, name))
        before = {name: index_files(os.path.join(copy, name)) for name in starts}
        seen[mode] = load(mode, copy, starts)
        for (topic, partition), (start, end) in wanted.items():
            name = f"{topic}-{partition}"
            # Kafka's loader drops an epoch that has no record yet: it begins at the log end.
            entries = [l.split() for l in checkpoint(
                os.path.join(places[name], "leader-epoch-checkpoint"))]
            epochs = ",".join(f"{e}:{at}" for e, at in entries if int(at) < end) or "-"
            if seen[mode][name][:3] != (start, end, epochs):
                raise AssertionError(f"{name} {mode}: Kafka loads {seen[mode][name][:3]}, we say "
                                     f"{(start, end, epochs)}")
            if mode == "clean":
                check_indexes_kept(name, before[name], index_files(os.path.join(copy, name)))
        shutil.rmtree(copy)
    for name in starts:
        compared = slice(None) if producers else slice(0, 4)
        if seen["clean"][name][compared] != seen["crashed"][name][compared]:
            raise AssertionError(f"{name}: clean {seen['clean'][name]}, recovered "
                                 f"{seen['crashed'][name]}")
    return len(wanted)


def check_indexes_kept(name, before, after):
    """Kafka rebuilds an index that it does not trust. What it may do to one that it does: make room
    with zeros in the active segment, add a last entry to a time index."""
    for file, content in before.items():
        now = after.get(file)
        allowed = 12 if file.endswith(".timeindex") else 0
        if now is None or not now.startswith(content) or any(now[len(content) + allowed:]):
            raise AssertionError(f"{name}/{file} was rebuilt: {len(content)} bytes became "
                                 f"{'none' if now is None else len(now)}")
