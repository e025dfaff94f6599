"""Toolchains and builds of the client programs, kept in a folder outside the tree.

Everything comes from the registries: PyPI, Maven Central, npm, the Go module proxy, crates.io.
Nothing is built twice; what is built is named after what went into it.
"""
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
import zipfile

from lib import real_kafka

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("CALQUE_CLIENTS_CACHE", os.path.expanduser("~/.cache/calque-clients"))
DEBIAN_PYTHON = "/usr/bin/python3"
GO_NEEDED = (1, 26)
GO_RELEASE = "1.26.0"
LOG4J = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"


class Missing(Exception):
    """A toolchain or package that cannot be had; one line for the reader."""


def run(what, command, **options):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=900, **options)
    except OSError as e:
        raise Missing(f"{what}: {e}") from None
    except subprocess.TimeoutExpired:
        raise Missing(f"{what}: not done after 15 minutes") from None
    if done.returncode:
        said = [l for l in (done.stdout + "\n" + done.stderr).splitlines() if l.strip()]
        raise Missing(f"{what} failed ({done.returncode}): {' | '.join(said[-6:])[-900:]}")
    return done.stdout


def fingerprint(*parts):
    key = hashlib.sha256()
    for part in parts:
        if os.path.isfile(part):
            with open(part, "rb") as f:
                key.update(f.read())
        key.update(os.path.basename(part).encode() + b"\0")
    return key.hexdigest()[:16]


@contextlib.contextmanager
def alone(name):
    """Two test runs on one machine do not make the same thing at once."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, f".{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made(name, key, make):
    """The folder NAME-KEY of the cache, made by make(folder) at first use, all of it or nothing."""
    into = os.path.join(CACHE, f"{name}-{key}")
    with alone(f"{name}-{key}"):
        if not os.path.isdir(into):
            part = tempfile.mkdtemp(prefix=f"{name}.part", dir=CACHE)
            try:
                make(part)
                os.rename(part, into)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return into


def program(*parts):
    path = os.path.join(HERE, *parts)
    if not os.path.isfile(path):
        raise Missing(f"there is no {path}")
    return path


# Python

def python_packages(requirements):
    """A folder for PYTHONPATH with what a requirements file locks."""
    path = program("python", requirements)
    name = requirements.removesuffix(".txt")
    return made(f"python-{name}", fingerprint(path, "%d.%d" % sys.version_info[:2]), lambda part:
                run(f"pip install -r {requirements}",
                    [pip_python(), "-m", "pip", "install", "-q", "--no-deps", "--only-binary",
                     ":all:", "--disable-pip-version-check", "--target", part, "-r", path]))


def pip_python():
    folder = made("python", "%d.%d" % sys.version_info[:2], lambda part:
                  run("python3 -m venv", [sys.executable, "-m", "venv", "--copies", part]))
    return os.path.join(folder, "bin", "python")


def python(script, requirements):
    return ["env", "PYTHONPATH=" + python_packages(requirements), sys.executable,
            program("python", script)]


def debian_python(script):
    if not os.path.isdir("/usr/share/doc/python3-confluent-kafka"):
        raise Missing("Debian's package python3-confluent-kafka is not installed: "
                      "deploy/install-deps test")
    return [DEBIAN_PYTHON, program("python", script)]


def debian_program(name, script):
    if not shutil.which(name):
        raise Missing(f"{name} is not installed: deploy/install-deps test")
    return [sys.executable, program("python", script)]


# Java

def java(version):
    """kafka-clients alone, with our program compiled against it."""
    release = tuple(int(x) for x in version.split("."))
    sources = [program("java", n + ".java") for n in ("Client", "Member", "Transactions")]
    for name, low, high in (("StepsUntil39", (0,), (4,)), ("StepsSince11", (1, 1), (99,)),
                            ("StepsSince28", (2, 8), (99,)), ("StepsSince39", (3, 9), (99,)),
                            ("StepsSince40", (4,), (99,))):
        if low <= release < high:
            sources.append(program("java", name + ".java"))
    wanted = [f"org.apache.kafka:kafka-clients:{version}"]
    if release < (1,):
        wanted.append("javax.xml.bind:jaxb-api:2.3.1")
    return java_program("Client", sources, artifacts(f"kafka-clients-{version}", wanted), version)


def artifacts(name, wanted):
    """The folder NAME of the cache with these artifacts of Maven Central and what they need."""
    jars = os.path.join(CACHE, name)
    with alone(name):
        if not os.path.isdir(jars):
            try:
                real_kafka.resolve(wanted, jars)
            except (RuntimeError, OSError) as e:
                raise Missing(str(e).replace("\n", " | ")[-900:]) from None
    return jars


def java_program(main, sources, jars, version):
    name = "java" if main == "Client" else main
    classes = made(f"{name}-{version}", fingerprint(*sources), lambda part: run(
        "javac", ["javac", "-nowarn", "-proc:none", "-cp", jars + "/*", "-d", part, *sources]))
    return java_main(main, f"{classes}:{jars}/*")


def java_main(main, classpath):
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
            "-cp", classpath, main]


def streams(version):
    jars = artifacts(f"streams-{version}", [f"org.apache.kafka:kafka-streams:{version}", LOG4J])
    return java_program("WordCounter", [program("java", "WordCounter.java")], jars, version)


def connect(version):
    """The distributed worker with Kafka's own connectors for files."""
    jars = artifacts(f"connect-{version}", [f"org.apache.kafka:connect-runtime:{version}",
                                            f"org.apache.kafka:connect-file:{version}", LOG4J])
    return java_main("org.apache.kafka.connect.cli.ConnectDistributed", jars + "/*")


# Go

def go_version(go):
    try:
        said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True,
                              env={**os.environ, "GOTOOLCHAIN": "local"}).stdout
    except OSError:
        return (0,)
    digits = said.strip().removeprefix("go").split("rc")[0].split(".")
    return tuple(int(d) for d in digits if d.isdigit())


def go():
    """A Go that is new enough: the installed one, or the module proxy's toolchain."""
    found = shutil.which("go")
    if found and go_version(found) >= GO_NEEDED:
        return found
    folder = made("go", GO_RELEASE, fetch_go)
    return os.path.join(folder, "bin", "go")


def fetch_go(into):
    version = f"v0.0.1-go{GO_RELEASE}.linux-amd64"
    proxies = os.environ.get("GOPROXY") or "https://proxy.golang.org"
    address = f"{proxies.replace('|', ',').split(',')[0]}/golang.org/toolchain/@v/{version}.zip"
    archive = os.path.join(into, "toolchain.zip")
    try:
        with urllib.request.urlopen(address, timeout=120) as answer, open(archive, "wb") as f:
            shutil.copyfileobj(answer, f)
        with zipfile.ZipFile(archive) as z:
            prefix = f"golang.org/toolchain@{version}/"
            for name in z.namelist():
                path = os.path.join(into, name.removeprefix(prefix))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with z.open(name) as source, open(path, "wb") as f:
                    shutil.copyfileobj(source, f)
    except (OSError, zipfile.BadZipFile) as e:
        raise Missing(f"Go {GO_RELEASE} from the module proxy: {e}") from None
    os.remove(archive)
    for folder in ("bin", os.path.join("pkg", "tool")):
        for top, _, names in os.walk(os.path.join(into, folder)):
            for name in names:
                os.chmod(os.path.join(top, name), 0o755)


def go_program(name):
    folder = os.path.join(HERE, "go")
    sources = [os.path.join(top, f) for top, _, names in sorted(os.walk(folder))
               for f in sorted(names)]
    tool = go()
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly",
                   "CGO_ENABLED": "0", "GOPATH": os.path.join(CACHE, "gopath"),
                   "GOCACHE": os.path.join(CACHE, "gocache")}
    environment.setdefault("GOPROXY", "https://proxy.golang.org")
    built = made("go-programs", fingerprint(*sources), lambda part: run(
        "go build", [tool, "build", "-buildvcs=false", "-o", part + "/", "./..."], cwd=folder,
        env=environment))
    return [os.path.join(built, name)]


# Node

def node(script):
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("node and npm are not installed: deploy/install-deps test")
    folder = os.path.join(HERE, "node")
    locks = [os.path.join(folder, n) for n in ("package.json", "package-lock.json")]

    def install(part):
        for path in locks:
            shutil.copy(path, part)
        run("npm ci", ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=part)
    modules = made("node", fingerprint(*locks), install)
    return ["env", "NODE_PATH=" + os.path.join(modules, "node_modules"), "node", "--no-warnings",
            program("node", script)]


# Rust

def sources_of(cargo, manifest, part):
    """Options for the build. Before 1.70 Cargo clones the whole index of crates.io; to read only
    the entries that it needs it must be allowed what was unstable then. The crates are not built
    with that permission: some would use more of it."""
    version = run("cargo", [cargo, "--version"]).split()[1]
    if tuple(int(n) for n in version.split(".")[:2]) >= (1, 70):
        return []
    vendored = os.path.join(part, "vendored")
    run("cargo vendor", [cargo, "-Z", "sparse-registry", "vendor", "--locked", "--quiet",
                         "--manifest-path", manifest, vendored],
        env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
    return ["--config", 'source.crates-io.replace-with="vendored"',
            "--config", f'source.vendored.directory="{vendored}"', "--offline"]


def rust_program():
    cargo = shutil.which("cargo")
    if not cargo:
        raise Missing("cargo is not installed: deploy/install-deps test")
    if subprocess.run(["pkg-config", "--exists", "rdkafka"], capture_output=True).returncode:
        raise Missing("Debian's package librdkafka-dev is not installed: deploy/install-deps test")
    folder = os.path.join(HERE, "rust")
    sources = [os.path.join(folder, n) for n in ("Cargo.toml", "Cargo.lock", "src/main.rs",
                                                 "src/member.rs", "src/record.rs",
                                                 "src/transactions.rs")]
    rustc = run("rustc", ["rustc", "--version"]).strip()

    def build(part):
        target, manifest = os.path.join(CACHE, "cargo-target"), os.path.join(folder, "Cargo.toml")
        run("cargo build", [cargo, "build", "--locked", "--quiet", "--target-dir", target,
                            "--manifest-path", manifest, *sources_of(cargo, manifest, part)])
        shutil.copy(os.path.join(target, "debug", "calque-client"), part)
    return [os.path.join(made("rust", fingerprint(*sources, rustc), build), "calque-client")]


_results, _guard = {}, threading.Lock()


def once(key, make):
    """The result of make(), or the same Missing again, in a run with several threads."""
    with _guard:
        entry = _results.setdefault(key, [threading.Lock(), None, None])
    with entry[0]:
        if entry[1] is None and entry[2] is None:
            try:
                entry[1] = make()
            except Missing as e:
                entry[2] = e
    if entry[2] is not None:
        raise entry[2]
    return entry[1]
