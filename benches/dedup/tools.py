"""What the comparisons of the command with other tools share: how they are called, what is installed for them, and what a
process takes."""

import argparse, os, pathlib, shutil, subprocess, sys, tempfile, time

TOP = pathlib.Path(__file__).parents[2]
sys.path.append(str(TOP / "benches"))
from kit import Figures, run


def begin(bench, about, size, usual, tiny, usual_rounds=3):
    """Reads the command line. Returns the figures, the folder for results, the size, the rounds and a folder to work in."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(size, nargs="?", type=int, help=f"by default {usual:,}")
    parser.add_argument("rounds", nargs="?", type=int, default=usual_rounds, help=f"by default {usual_rounds}")
    parser.add_argument(
        "folder", nargs="?", help="keeps the peers and the inputs for the next run; by default target/dedup", type=pathlib.Path
    )
    parser.add_argument("--out", type=pathlib.Path, default=TOP / "benches/dedup", help="the folder for results")
    parser.add_argument("--quick", action="store_true", help="tiny, and once: to see whether it runs")
    options = parser.parse_args()
    count = getattr(options, size) or (tiny if options.quick else usual)
    rounds = 1 if options.quick else options.rounds
    folder = (options.folder or TOP / "target/dedup").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    figures = Figures(bench)
    figures.say("run", f"benches/dedup/{pathlib.Path(sys.argv[0]).name} {count} {rounds}, {run()}")
    os.environ["LC_ALL"] = "C"
    return figures, options.out, count, rounds, folder


def build():
    """Builds the command."""
    packages()
    return built("koel-cli", "koel")


def bench():
    """The program that measures all that is in Rust: the one that has started this, or it is built."""
    return os.environ.get("BENCH") or built("koel-bench", "koel-bench")


def built(package, program):
    subprocess.run(["cargo", "build", "--locked", "--release", "-q", "-p", package], cwd=TOP, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"), "release", program)


def packages():
    """Installs what is of Debian."""
    if missing := [name for name in ("mawk", "time") if not shutil.which(name)]:
        root = [] if os.getuid() == 0 else ["sudo"]
        subprocess.run([*root, "apt-get", "update", "-qq"], check=True, stdout=sys.stderr)
        subprocess.run([*root, "apt-get", "install", "-y", "-qq", *missing], check=True, stdout=sys.stderr)


def peers(folder):
    """Installs the peers from their registry, and returns their folder."""
    for name, version in {"huniq": "2.7.0", "runiq": "2.0.0"}.items():
        if not (folder / "bin" / name).exists():
            subprocess.run(["cargo", "install", "-q", "--root", folder, name, "--version", version], check=True)
    return folder / "bin"


def made(path, make):
    """Makes a file, unless it is there. `make` writes it under another name, so that there is no half of one."""
    if not path.exists():
        part = path.with_name(path.name + ".part")
        make(part)
        part.rename(path)
    return path


def cached(*paths):
    """Brings files into the system's cache."""
    subprocess.run(["cat", *paths], stdout=subprocess.DEVNULL, check=True)


def measure(figures, name, command, at="", input=None, output=os.devnull, errors=None):
    """Runs a command, and notes its time, the processors' time, and its memory at most."""
    said = open(errors, "w") if errors else None
    with open(input or os.devnull) as source, open(output, "w") as target, tempfile.NamedTemporaryFile("r") as memory:
        start = time.perf_counter()
        # What the system tells of a child's memory begins with that of its parent, which is Python's here.
        timed = ["time", "-q", "-f", "%M", "-o", memory.name, *command]
        process = subprocess.Popen(timed, stdin=source, stdout=target, stderr=said)
        _, status, took = os.wait4(process.pid, 0)
        seconds, kib = time.perf_counter() - start, memory.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{name}: {command} ended with {process.returncode}")
    figures.note(name, "time", seconds, "s", at)
    figures.note(name, "user", took.ru_utime, "s", at)
    figures.note(name, "cpu", took.ru_utime + took.ru_stime, "s", at)
    figures.note(name, "memory", int(kib) * 1024, "bytes", at)
    print(f"{at} {name}: {seconds:.2f} s".strip(), file=sys.stderr)
