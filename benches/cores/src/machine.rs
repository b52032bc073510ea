//! The processors of the machine, in the order in which they are used, and how far they are from each other.
//!
//! Linux tells that below `/sys/devices/system`. Elsewhere, and where it does not, all processors are cores side by
//! side.
//!
//! `benches/peers` includes this file, so it must not use `crate` paths.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A processor: what runs one thread. Those that share a core are siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    pub number: usize,
    pub package: usize,
    pub node: usize,
    /// The first processor with the same cache of the last level.
    pub cache: usize,
    /// The size of this cache, if the system tells.
    pub cache_bytes: Option<usize>,
    /// The first processor of the same core.
    pub core: usize,
    /// Which sibling of its core it is.
    pub sibling: usize,
}

impl Processor {
    pub fn json(&self) -> String {
        let Processor { number, package, node, cache, cache_bytes, core, sibling } = self;
        let cache_bytes = cache_bytes.map_or("null".into(), |bytes| bytes.to_string());
        format!(
            "{{\"number\": {number}, \"core\": {core}, \"sibling\": {sibling}, \"cache\": {cache}, \
             \"cache_bytes\": {cache_bytes}, \"node\": {node}, \"package\": {package}}}"
        )
    }
}

/// How far apart two processors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Siblings.
    Core,
    /// The cache of the last level is between them.
    Cache,
    /// They have different caches in one package.
    Package,
    /// They are in different packages.
    Packages,
}

impl Distance {
    pub const ALL: [Distance; 4] =
        [Distance::Core, Distance::Cache, Distance::Package, Distance::Packages];
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Distance::Core => "siblings of one core",
            Distance::Cache => "cores with one cache",
            Distance::Package => "caches of one package",
            Distance::Packages => "packages",
        })
    }
}

pub struct Machine {
    pub model: String,
    /// One of each core before the second of any, and of these, the ones with one cache side by side.
    pub processors: Vec<Processor>,
}

/// The one that this process runs on. It is first asked for before any thread is bound to a processor.
pub static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::here);

impl Machine {
    fn here() -> Machine {
        let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = about
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split(':').nth(1))
            .unwrap_or("of an unknown model");
        let processors = processors_in(Path::new("/sys/devices/system"), &allowed());
        Machine { model: model.trim().into(), processors }
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        self.processors.iter().filter(|it| it.sibling == 0).count()
    }

    /// The smallest cache of the last level, or 16 MiB if the system tells of none.
    pub fn cache_bytes(&self) -> usize {
        self.processors.iter().filter_map(|it| it.cache_bytes).min().unwrap_or(16 << 20)
    }

    /// Numbers of threads that tell something: powers of two, one cache full, one package full, all cores, and all
    /// processors.
    pub fn counts(&self) -> Vec<usize> {
        let (all, cores) = (self.processors.len(), self.cores());
        let alike = |of: fn(&Processor) -> usize| {
            let first = self.processors.iter().take(cores).map(of);
            first.clone().take_while(|it| Some(*it) == first.clone().next()).count()
        };
        let powers = (0..).map(|power| 1 << power).take_while(|power| *power < cores);
        let full = [alike(|it| it.cache), alike(|it| it.package), cores, all];
        BTreeSet::from_iter(powers.chain(full)).into_iter().filter(|count| *count > 0).collect()
    }

    /// How far two of the processors are apart.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        let (a, b) = (&self.processors[a], &self.processors[b]);
        match () {
            () if a.core == b.core => Distance::Core,
            () if a.package != b.package => Distance::Packages,
            () if a.cache != b.cache => Distance::Package,
            () => Distance::Cache,
        }
    }

    /// Two processors at this distance.
    pub fn pair(&self, distance: Distance) -> Option<[usize; 2]> {
        let others = 1..self.processors.len();
        others.map(|other| [0, other]).find(|[a, b]| self.distance(*a, *b) == distance)
    }

    /// Which part of the pairs of the first `count` processors has each distance.
    pub fn distances(&self, count: usize) -> [f64; 4] {
        let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut found = [0.0; 4];
        pairs.for_each(|(a, b)| found[self.distance(a, b) as usize] += 1.0);
        let all = (count * count.saturating_sub(1) / 2).max(1) as f64;
        found.map(|of_it| of_it / all)
    }

    /// Lets the calling thread run on this processor only.
    pub fn pin(&self, at: usize) {
        pin(self.processors[at % self.processors.len()].number);
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |count: usize, one: &str, more: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {more}"),
        };
        let different =
            |of: fn(&Processor) -> usize| BTreeSet::from_iter(self.processors.iter().map(of)).len();
        let parts = [
            some(self.processors.len(), "processor", "processors"),
            some(self.cores(), "core", "cores"),
            some(different(|it| it.cache), "cache of the last level", "caches of the last level"),
            some(different(|it| it.package), "package", "packages"),
            some(different(|it| it.node), "node of memory", "nodes of memory"),
        ];
        write!(f, "{}: {}", self.model, parts.join(", "))
    }
}

/// Reads what Linux says of these processors.
fn processors_in(devices: &Path, allowed: &[usize]) -> Vec<Processor> {
    let read = |path: &str| fs::read_to_string(devices.join(path)).ok();
    let number = |path: &str| read(path)?.trim().parse::<usize>().ok();
    let first = |path: &str| list(&read(path)?).first().copied();
    // Machines have at most some dozens of nodes, but their numbers may have gaps.
    let nodes: Vec<(usize, Vec<usize>)> = (0..256)
        .filter_map(|node| Some((node, list(&read(&format!("node/node{node}/cpulist"))?))))
        .collect();
    let node_of =
        |cpu| nodes.iter().find(|(_, all)| all.contains(&cpu)).map_or(0, |(node, _)| *node);
    let last_cache = |cpu| {
        let caches = (0..8).map(|index| format!("cpu/cpu{cpu}/cache/index{index}"));
        caches.max_by_key(|path| number(&format!("{path}/level"))).unwrap_or_default()
    };
    // Linux tells it as `32768K`.
    let kibibytes = |path: &str| read(path)?.trim().strip_suffix('K')?.parse::<usize>().ok();
    let mut found: Vec<Processor> = allowed
        .iter()
        .map(|&cpu| {
            let topology = format!("cpu/cpu{cpu}/topology");
            let siblings = read(&format!("{topology}/thread_siblings_list"));
            let siblings = siblings.map_or(vec![cpu], |text| list(&text));
            // Only the siblings that this process may use count.
            let before = |it: &&usize| **it < cpu && allowed.contains(it);
            let package = number(&format!("{topology}/physical_package_id")).unwrap_or(0);
            let cache = last_cache(cpu);
            Processor {
                number: cpu,
                package,
                node: node_of(cpu),
                cache: first(&format!("{cache}/shared_cpu_list")).unwrap_or(0),
                cache_bytes: kibibytes(&format!("{cache}/size")).map(|size| size << 10),
                core: siblings.first().copied().unwrap_or(cpu),
                sibling: siblings.iter().filter(before).count(),
            }
        })
        .collect();
    found.sort_by_key(|it| (it.sibling, it.package, it.node, it.cache, it.number));
    found
}

/// Reads a list like `0-3,8,10-11`.
fn list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// The bits of a word of a set of processors.
#[cfg(target_os = "linux")]
const BITS: usize = usize::BITS as usize;

/// The processors that this process may use.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    // The system refuses a set with fewer bits than it may have processors: 1,024 of them, or twice as many, and so on.
    let set = (4..12).find_map(|power| {
        let mut set = vec![0_usize; 1 << power];
        // SAFETY: the system writes at most as many bytes as it is told.
        let told =
            unsafe { libc::sched_getaffinity(0, size_of_val(&*set), set.as_mut_ptr().cast()) };
        (told == 0).then_some(set)
    });
    match set {
        Some(set) => {
            let is_in = |cpu: &usize| set[cpu / BITS] >> (cpu % BITS) & 1 == 1;
            (0..set.len() * BITS).filter(is_in).collect()
        }
        None => as_many_as_there_are(),
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    as_many_as_there_are()
}

fn as_many_as_there_are() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    let mut set = vec![0_usize; cpu / BITS + 1];
    set[cpu / BITS] = 1 << (cpu % BITS);
    // SAFETY: the system reads as many bytes as the set has. If it refuses the set, the thread runs where it did.
    unsafe { libc::sched_setaffinity(0, size_of_val(&*set), set.as_ptr().cast()) };
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two caches of two cores of two siblings, numbered as Linux numbers them.
    fn large() -> Machine {
        let folder = std::env::temp_dir().join(format!("koel-cores-{}", std::process::id()));
        let write = |path: String, text: String| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        for cpu in 0..16 {
            let core = cpu % 8;
            let topology = format!("cpu/cpu{cpu}/topology");
            write(format!("{topology}/thread_siblings_list"), format!("{core},{}\n", core + 8));
            write(format!("{topology}/physical_package_id"), format!("{}\n", core / 4));
            for (index, level) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
                let cache = format!("cpu/cpu{cpu}/cache/index{index}");
                write(format!("{cache}/level"), format!("{level}\n"));
                write(format!("{cache}/size"), format!("{}K\n", 1024 * level));
                let first = core / 2 * 2;
                let shared = match level {
                    3 => format!("{first}-{},{}-{}\n", first + 1, first + 8, first + 9),
                    _ => format!("{core},{}\n", core + 8),
                };
                write(format!("{cache}/shared_cpu_list"), shared);
            }
        }
        write("node/node0/cpulist".into(), "0-3,8-11\n".into());
        write("node/node2/cpulist".into(), "4-7,12-15\n".into());
        let all: Vec<usize> = (0..16).collect();
        let processors = processors_in(&folder, &all);
        fs::remove_dir_all(&folder).expect("a folder");
        Machine { model: "A model".into(), processors }
    }

    #[test]
    fn a_machine_is_filled_cache_by_cache_and_siblings_come_last() {
        let machine = large();
        let numbers: Vec<usize> = machine.processors.iter().map(|it| it.number).collect();
        assert_eq!(numbers, (0..16).collect::<Vec<_>>());
        assert_eq!((machine.cores(), machine.counts()), (8, vec![1, 2, 4, 8, 16]));
        assert_eq!(machine.cache_bytes(), 3 << 20);
        assert_eq!(
            machine.to_string(),
            "A model: 16 processors, 8 cores, 4 caches of the last level, 2 packages, 2 nodes of memory"
        );
        let pairs = Distance::ALL.map(|distance| machine.pair(distance));
        assert_eq!(pairs, [Some([0, 8]), Some([0, 1]), Some([0, 2]), Some([0, 4])]);
        assert_eq!(machine.distances(1), [0.0; 4]);
        assert_eq!(machine.distances(2), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(machine.distances(4).map(|it| it * 6.0), [0.0, 2.0, 4.0, 0.0]);
        assert_eq!(machine.distances(16).iter().sum::<f64>(), 1.0);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_cores_side_by_side() {
        let processors = processors_in(Path::new("/nowhere"), &[0, 1, 2]);
        let machine = Machine { model: String::new(), processors };
        assert_eq!((machine.cores(), machine.counts()), (3, vec![1, 2, 3]));
        assert_eq!((machine.distance(0, 2), machine.cache_bytes()), (Distance::Cache, 16 << 20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_bound_to_one_processor() {
        let last = *allowed().last().expect("a processor");
        let bound = std::thread::spawn(move || {
            pin(last);
            allowed()
        });
        assert_eq!(bound.join().expect("no panic"), [last]);
    }

    #[test]
    fn lists_have_numbers_and_ranges() {
        assert_eq!(list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list("\n"), [0usize; 0]);
    }
}
