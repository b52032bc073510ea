//! Standard streams that are closed, and paths that lead to them.

use crate::common::*;

#[test]
fn a_closed_stream_is_reported_before_anything_is_done() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\n");
    let said = "koel: standard output is closed";
    for options in
        ["", "--count", "--state seen.koel", "--state seen.koel -o -", "-s s -o /dev/stdout"]
    {
        let ran = shell(&place, &format!("koel dedup {options} lines >&-"));
        assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]), "{options}: {}", ran.stderr);
        ran.has(said);
        assert_eq!(place.names(), ["lines"], "{options}");
    }
    // An input that is closed is like one that cannot be opened: an output is not replaced by nothing.
    place.write("kept", "k\n");
    for (script, stdout) in [("koel dedup lines - <&-", "a\nb\n"), ("koel dedup -o kept <&-", "")] {
        let ran = shell(&place, script);
        assert_eq!((ran.code, ran.text()), (Some(2), stdout), "{script}");
        ran.has("koel: standard input: it is closed");
        assert_eq!(place.read("kept"), b"k\n");
    }
    // Streams that are not used may be closed, and others may be /dev/null.
    for script in [
        "koel dedup lines <&-",
        "koel dedup lines < /dev/null > /dev/null",
        "koel dedup < /dev/null",
        "koel dedup lines 2>&-",
        "koel dedup lines -o out >&- <&- 2>&-",
        "koel dedup lines -o /dev/null >&- <&-",
        "koel add seen.koel lines >&- <&-",
        "koel query -q seen.koel lines <> /dev/null 1>&0",
    ] {
        let ran = shell(&place, script);
        assert_eq!(ran.code, Some(0), "{script}: {}", ran.stderr);
    }
}

#[test]
fn a_path_of_a_standard_stream_is_that_stream() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\n");
    std::os::unix::fs::symlink("/dev/stdout", place.path("link")).unwrap();
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link", "out"] {
        for script in [
            "(echo before; koel dedup -q lines -o PATH; echo after) > out 2>&1",
            "(echo before; koel dedup -q --lossless lines -o PATH; echo after) > out 2>&1",
            "echo before > out; koel dedup -q lines -o PATH >> out 2>&1; echo after >> out",
            "rm -f s; (echo before; koel dedup -q -s s lines -o PATH; echo after) > out 2>&1",
            "(echo before; koel dedup -q lines -o PATH 2>&1; echo after) | cat > other",
        ] {
            let to = if script.contains("cat") { "other" } else { "out" };
            if (path, to) == ("out", "other") {
                continue;
            }
            let ran = shell(&place, &script.replace("PATH", path));
            assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{script}, {path}");
            assert_eq!(place.read(to), b"before\na\nb\nafter\n", "{script}, {path}");
        }
    }
}

#[test]
fn an_output_that_can_only_be_a_folder_is_refused_at_the_start() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.assert_refused(&[
        (
            "dedup -o {a/,a/.,folder,folder/,folder/.,folder/..}{, --state seen.koel}",
            ": this is a folder; name a file in it\n",
        ),
        // Nor is a state left behind that was not there.
        ("dedup --state seen.koel -o no/out", "no/out: No such file"),
    ]);
}
