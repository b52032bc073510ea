//! The class `Filter`.

use crate::asked::Asked;
use crate::open;
use crate::own::Own;
use crate::reader::Reader;
use crate::set::{Answers, Set, Table};
use crate::{bulk, errors, items, process};
use koel::disk::Claim;
use koel::{DurableError, Full, Prehashed, StableHash, SyncPolicy, Window};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An approximate set that grows, of `str` and `bytes`, shared by threads and kept in a file.
///
/// ```python
/// with Filter("seen.koel", rate=1e-6) as seen:  # opens it, or begins
///     if seen.add(url):                         # True: it was new
///         fetch(url)
/// ```
///
/// What was added is always found. Of what was not added, the fraction `rate` is taken for seen. An item
/// takes five to seven bytes, however long it is. A `str` equals its UTF-8 bytes.
///
/// `path`: where the filter is kept. It is loaded if it is there, and made at once if not; the process has it
/// for itself until the filter is closed: by `close` or `with`, when nothing refers to it any more, or when the program
/// ends. What a call has answered survives a kill, too: it is in a journal beside the file until the filter is saved or
/// closed. Without a path, the filter is only in memory.
///
/// `sync`, of a filter with a path, is for power failures: every how many seconds (or which `timedelta`) changes are
/// written to the disk. With 0, before a call returns that has changed something; threads share that. With `None`, when
/// the system does.
///
/// The rest is for a new filter, and is checked if the file is there:
///
/// * `rate`: the fraction of new items that may be taken for seen (one in a million if it is `None`). It holds
///   while the filter grows.
/// * `capacity`: how many items are expected, if it is known. The filter begins with room for them.
/// * `remembers`: for how many seconds (or which `timedelta`) items are remembered, at least; the filter then
///   stops growing when they are forgotten as fast as they come. With `refresh=True`, an item is forgotten so long
///   after it was last added, and not first.
/// * `max_bytes`: the most memory to take. What does not fit is a `MemoryError`.
/// * `seed`: of the hash, which is random otherwise. Filters with one seed can be merged.
///
/// `create=False` raises `FileNotFoundError` if there is no file. `wait` is for how many seconds to wait for
/// another process that has it, before `BlockingIOError`.
///
/// With `readonly=True` the file is not loaded, and not claimed: any number of processes ask it at once, of which one
/// may be changing it, and all have one copy in memory, the system's cache of the file. It shows the last `save` or
/// `close`, and what had expired by then is gone. Later ones are seen by opening it again. If a journal beside the file
/// has changes, it issues a `RuntimeWarning` that says how many bytes. Whatever would change it, or load it unasked,
/// raises `io.UnsupportedOperation`; `copy` loads it, into a filter that can be changed.
///
/// A child that is forked may use the filters of its parent that were opened with `readonly=True`. Any other one raises
/// a `RuntimeError`: open or build it in the child, or pass it pickled, which makes a copy in memory.
#[pyclass(module = "pykoel", frozen, weakref)]
pub struct Filter {
    kind: Kind,
    /// In full, so that it stays the same when the process goes to another folder.
    path: Option<PathBuf>,
    hasher: StableHash,
    window: Option<Window>,
    refresh: bool,
    /// Whether each change waits for the disk.
    waits: bool,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each filter")]
enum Kind {
    Own(Own),
    Reader(Reader),
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl Filter {
    fn new(own: Own, refresh: bool) -> Self {
        let (hasher, window) = (own.hasher, own.window);
        Filter { kind: Kind::Own(own), path: None, hasher, window, refresh, waits: false }
    }

    /// The filter, if it can be changed.
    #[inline]
    fn own(&self) -> PyResult<&Own> {
        match &self.kind {
            Kind::Own(own) => Ok(own),
            Kind::Reader(reader) => {
                Err(reader.file().map_or_else(|closed| closed, |_| errors::read_only()))
            }
        }
    }

    /// Makes a change that is short, unless it waits for the disk.
    #[inline]
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&dyn Set) -> Result<T, DurableError> + Send,
    ) -> PyResult<T> {
        let change = |set: &dyn Set| change(set).map_err(self.failed());
        match self.own()? {
            own if self.waits => own.without_gil(py, change),
            own => own.with_gil(py, change),
        }
    }

    /// What a change that was not made says.
    fn failed(&self) -> impl Fn(DurableError) -> PyErr + '_ {
        |error| errors::of_durable(&error, self.path.as_deref())
    }
}

/// A filter that nothing refers to any more is closed.
impl Drop for Filter {
    fn drop(&mut self) {
        Python::attach(|py| {
            let raised = PyErr::take(py);
            if let Err(error) = self.close(py) {
                errors::of_end(py, error);
            }
            raised.inspect(|error| error.clone_ref(py).restore(py));
        });
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(
        signature = (path=None, *, rate=None, capacity=None, remembers=None, refresh=false, max_bytes=None, seed=None, create=true, wait=Duration::ZERO, sync=None, readonly=false),
        text_signature = "(path=None, *, rate=None, capacity=None, remembers=None, refresh=False, max_bytes=None, seed=None, create=True, wait=0.0, sync=1.0, readonly=False)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn open<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = open::path)] path: Option<PathBuf>,
        #[pyo3(from_py_with = open::rate)] rate: Option<f64>,
        #[pyo3(from_py_with = open::whole)] capacity: Option<usize>,
        #[pyo3(from_py_with = open::remembers)] remembers: Option<u64>,
        #[pyo3(from_py_with = open::truth)] refresh: bool,
        #[pyo3(from_py_with = open::whole)] max_bytes: Option<usize>,
        #[pyo3(from_py_with = open::whole)] seed: Option<u64>,
        #[pyo3(from_py_with = open::truth)] create: bool,
        #[pyo3(from_py_with = open::wait)] wait: Duration,
        #[pyo3(from_py_with = open::sync)] sync: Option<SyncPolicy>,
        #[pyo3(from_py_with = open::truth)] readonly: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let asked = Asked { rate, capacity, remembers, refresh, max_bytes, seed, create };
        let is_to_change = refresh || max_bytes.is_some() || sync.is_some() || !wait.is_zero();
        let Some(path) = path else {
            if sync.is_some() || !wait.is_zero() || !create || readonly {
                return Err(PyValueError::new_err(
                    "create, wait, sync and readonly are for a filter with a file: pass path, too",
                ));
            }
            return Bound::new(py, Self::new(asked.build(py)?, refresh));
        };
        if readonly {
            if is_to_change {
                return Err(PyValueError::new_err(
                    "refresh, max_bytes, wait and sync are for a filter that is changed: leave them out with readonly=True",
                ));
            }
            return Bound::new(py, Self::read(py, &asked, &path)?);
        }
        let policy = sync.unwrap_or_default();
        let mut filter = Self::new(asked.open(py, &path, policy, wait)?, refresh);
        filter.path = Some(absolute(&path));
        filter.waits = policy == SyncPolicy::Each;
        let filter = Bound::new(py, filter)?;
        process::close_at_end(&filter)?;
        Ok(filter)
    }

    /// Adds an item, and returns True if it was new. One that is there is not added a second time, as in a `set`. Of
    /// threads that add one item at once, one gets True.
    #[inline]
    fn add(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (hash, _) = items::hash(self.hasher, item)?;
        self.change(py, |set| set.add(hash, self.refresh))
    }

    /// Whether the item was added.
    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (hash, _) = items::hash(self.hasher, item)?;
        match &self.kind {
            Kind::Own(own) => own.with_gil(py, |set| Ok(set.contains(hash))),
            Kind::Reader(reader) => reader.contains(py, hash),
        }
    }

    /// Removes an item if it is there, and returns whether it was.
    ///
    /// Remove only what was added, that is, for which `add` returned True. Removing anything else may, as rarely
    /// as `rate`, remove another item.
    fn discard(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (hash, _) = items::hash(self.hasher, item)?;
        self.change(py, |set| set.discard(hash))
    }

    /// Removes an item like `discard`, and raises KeyError if it is not there.
    fn remove(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.discard(py, item)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(item.clone().unbind())),
        }
    }

    /// Adds many items, and returns a list that has True for those that were new.
    ///
    /// `items` is an iterable of str and bytes, or a buffer of uint64 (an `array.array("Q")`, a NumPy array), which
    /// are taken for hashes, as `hash_of` returns them. Other threads run meanwhile. If an item cannot be added,
    /// the items of earlier pieces (of some thousand) have been.
    fn add_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        self.of_many(py, items, |set, hashes| set.add_many(hashes, self.refresh))
    }

    /// Looks up many items, and returns a list of True and False. It takes what `add_many` takes.
    fn contains_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        let answers = PyList::empty(py);
        let ask = |hashes: &[Prehashed]| {
            let found = match &self.kind {
                Kind::Own(own) => own.without_gil(py, |set| Ok(set.contains_many(hashes))),
                Kind::Reader(reader) => reader.contains_many(py, hashes),
            };
            found.map(all_answered)
        };
        // Also if there are no items.
        ask(&[])?;
        bulk::answer(py, items, self.hasher, ask, |answer| answers.append(answer))?;
        Ok(answers.unbind())
    }

    /// Removes many items, as `discard` removes one, and returns a list of True and False.
    fn discard_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        self.of_many(py, items, |set, hashes| set.discard_many(hashes).map(all_answered))
    }

    /// The hash of an item in this filter, from 0 to 2**64 - 1: the XXH3 of its bytes, with the filter's seed.
    fn hash_of(&self, item: &Bound<'_, PyAny>) -> PyResult<u64> {
        items::hash(self.hasher, item).map(|(hash, _)| hash.0)
    }

    /// Removes all items. The filter keeps the memory that it has; `compact` gives it back.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.own()?.without_gil(py, |set| set.clear().map_err(self.failed()))
    }

    /// Gives back the memory that the filter has grown to and does not need any more, and returns how many bytes.
    ///
    /// This is for a filter from which most items were removed. All others stay in it. Other threads go on meanwhile.
    /// While one of them copies the filter (saves, copies or pickles it, or merges it with another one), and during a
    /// checkpoint, nothing is given back. Its file gets smaller with the next `save`.
    fn compact(&self, py: Python<'_>) -> PyResult<usize> {
        self.own()?.without_gil(py, |set| Ok(set.compact()))
    }

    /// Adds what another filter knows, and returns how many items came. Both must have been made with one seed,
    /// for one capacity, and be alike in everything else: it raises ValueError otherwise, and nothing has changed.
    /// If it raises MemoryError, a part has come. Another filter that has a file is copied in memory first.
    ///
    /// A filter in a file is saved then, and other threads that use it wait for that. A kill before `merge` returns may
    /// leave none of what came. If it raises OSError, what came is lost in a kill, until a save succeeds.
    fn merge(&self, py: Python<'_>, other: &Filter) -> PyResult<usize> {
        self.own()?.merge(py, other.own()?, self.path.as_deref())
    }

    /// Adds many items, like `add_many`, and returns nothing. Several iterables or buffers may be passed, and other
    /// filters, which are merged.
    #[pyo3(signature = (*others))]
    fn update(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.own()?.with_gil(py, |_| Ok(()))?;
        for items in others {
            match items.cast::<Filter>() {
                Ok(other) => {
                    self.merge(py, other.get())?;
                }
                Err(_) => {
                    let ask =
                        |set: &dyn Set, hashes: &[Prehashed]| set.add_many(hashes, self.refresh);
                    self.many(py, &items, ask, |_| Ok(()))?;
                }
            }
        }
        Ok(())
    }

    /// A filter in memory that has the items of both, which must have been made with one seed, for one capacity.
    fn __or__(&self, py: Python<'_>, other: &Filter) -> PyResult<Self> {
        let union = Self::new(Own::in_memory(self.own()?.copy(py)?), self.refresh);
        union.merge(py, other)?;
        Ok(union)
    }

    fn __ior__(&self, py: Python<'_>, other: &Filter) -> PyResult<()> {
        self.merge(py, other).map(|_| ())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match &self.kind {
            Kind::Own(own) => own.with_gil(py, |set| Ok(set.len())),
            Kind::Reader(reader) => reader.len(),
        }
    }

    /// Saves a copy to another path. Without one, makes a checkpoint: the file then has all changes, and the journal
    /// beside it none. Other threads go on meanwhile.
    ///
    /// A file is replaced as a whole or not at all, and has a checksum. What was added before the call is in it. To
    /// replace another file whose journal has changes raises FileExistsError. A copy of a filter with a file is made in
    /// memory first.
    #[pyo3(signature = (path=None))]
    fn save(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = open::path)] path: Option<PathBuf>,
    ) -> PyResult<()> {
        let own = self.own()?;
        match path.filter(|path| self.path.as_ref() != Some(&absolute(path))) {
            None if own.checkpoint(py, self.path.as_deref())? => Ok(()),
            None => Err(PyTypeError::new_err(
                "this filter has no file: name a path, here or when it is made",
            )),
            Some(path) => own.lend(py, |table| {
                let claim = Claim::lay(&path, Duration::ZERO);
                let _claim = claim.map_err(|error| errors::of_claim(&error.into(), &path))?;
                match table.save(&path) {
                    Err(error) if !error.is_in_place() => Err(errors::of_snapshot(&error)),
                    _ => Ok(()),
                }
            }),
        }
    }

    /// Ends all use of the filter. One with a file leaves it to others, with all changes and without a journal.
    ///
    /// If it raises OSError, the filter is closed as well, and nothing is lost: what the file does not have is in the
    /// journal beside it. In a child that was forked, the file stays as it is: it is the parent's.
    ///
    /// A filter is closed by itself when nothing refers to it any more, and when the program ends, also by an
    /// exception: daemon threads that still use it get a ValueError then. A kill does not close it, nor does
    /// `os._exit`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match &self.kind {
            Kind::Own(own) => own.close(py).map_err(self.failed()),
            Kind::Reader(reader) => {
                reader.close();
                Ok(())
            }
        }
    }

    fn __enter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if this.get().closed() { Err(errors::closed()) } else { Ok(this) }
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// Whether the filter is closed.
    #[getter]
    fn closed(&self) -> bool {
        match &self.kind {
            Kind::Own(own) => own.is_closed(),
            Kind::Reader(reader) => reader.is_closed(),
        }
    }

    /// Whether it was opened with `readonly=True`.
    #[getter]
    fn readonly(&self) -> bool {
        matches!(self.kind, Kind::Reader(_))
    }

    /// The path of its file, or None.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// For how many seconds items are remembered at least (rounded up), or None if for ever.
    #[getter]
    fn remembers(&self) -> Option<u64> {
        self.window.map(|window| window.seconds())
    }

    /// The figures of the filter.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let stats = match &self.kind {
            Kind::Own(own) => own.without_gil(py, |set| Ok(set.stats()))?,
            Kind::Reader(reader) => reader.stats()?,
        };
        let fields = PyDict::new(py);
        fields.set_item("items", stats.items)?;
        fields.set_item("size_in_bytes", stats.size_in_bytes)?;
        fields.set_item("rate", stats.false_positive_rate)?;
        fields.set_item("rate_at_capacity", stats.false_positive_rate_at_capacity)?;
        fields.set_item("load", stats.load())?;
        fields.set_item("growth", stats.growth)?;
        fields.set_item("fingerprint_bits", stats.fingerprint_bits)?;
        fields.set_item("max_bytes", stats.max_bytes)?;
        fields.set_item("remembers", self.remembers())?;
        Ok(py.import("pykoel._stats")?.getattr("Stats")?.call((), Some(&fields))?.unbind())
    }

    /// A copy in memory, without a file.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        match &self.kind {
            Kind::Own(own) => Ok(Self::new(Own::in_memory(own.copy(py)?), self.refresh)),
            Kind::Reader(reader) => loaded(reader.load(py)?, false),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    /// The bytes that `save` would write.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.own()?.without_gil(py, |set| {
            set.write_to(&mut bytes).map_err(|error| errors::of_snapshot(&error))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A filter in memory, of bytes that `to_bytes` returned, or of those of a file: a `bytes`, `bytearray`, `mmap` or
    /// another buffer.
    #[classmethod]
    #[pyo3(signature = (data, *, refresh=false))]
    fn from_bytes(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = open::truth)] refresh: bool,
    ) -> PyResult<Self> {
        let table = match data.cast::<PyBytes>() {
            Ok(data) => read(py, data.as_bytes())?,
            // Others may change a buffer meanwhile, so it is copied.
            Err(_) => read(py, &PyBuffer::<u8>::get(data)?.to_vec(py)?)?,
        };
        open::check_refresh(table.remembers().is_some(), refresh)?;
        loaded(table, refresh)
    }

    /// A filter that is only read is pickled as its path, and opened again there, so that processes share its file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let module = py.import("pykoel._pykoel")?;
        if let Kind::Reader(reader) = &self.kind {
            reader.file()?;
            let path = (self.path(),).into_pyobject(py)?;
            return (module.getattr("_reopened")?, path).into_pyobject(py);
        }
        let restore = module.getattr("_restored")?;
        let contents = (self.to_bytes(py)?, self.refresh).into_pyobject(py)?;
        (restore, contents).into_pyobject(py)
    }

    /// The memory that it takes, for `sys.getsizeof`. What the system caches of its files is not counted.
    fn __sizeof__(&self, py: Python<'_>) -> PyResult<usize> {
        let object: usize = py.get_type::<Filter>().getattr("__basicsize__")?.extract()?;
        Ok(object
            + match &self.kind {
                Kind::Own(own) => own.heap_bytes(py),
                Kind::Reader(reader) => reader.heap_bytes(),
            })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let path = self.path.as_ref().map_or(String::new(), |path| format!("{path:?}, "));
        let what = match &self.kind {
            _ if self.closed() => String::from("closed"),
            Kind::Own(own) => match own.without_gil(py, |set| Ok(set.stats())) {
                Ok(stats) => format!("{} items, {} bytes", stats.items, stats.size_in_bytes),
                Err(_) => String::from("opened before a fork"),
            },
            Kind::Reader(reader) => format!("readonly, {} items", reader.len().unwrap_or(0)),
        };
        format!("<pykoel.Filter {path}{what}>")
    }
}

impl Filter {
    /// Opens a file that is only read.
    fn read(py: Python<'_>, asked: &Asked, path: &Path) -> PyResult<Self> {
        let (file, window) = asked.read(py, path)?;
        if file.info().journal_bytes > 0 {
            errors::warn_of_journal(py, path, file.info().journal_bytes)?;
        }
        let hasher = *file.hasher();
        let (kind, path) = (Kind::Reader(Reader::new(file)), Some(absolute(path)));
        Ok(Filter { kind, path, hasher, window, refresh: false, waits: false })
    }

    /// Changes many items, and returns the answers in a list.
    fn of_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        ask: impl Fn(&dyn Set, &[Prehashed]) -> Answers + Sync,
    ) -> PyResult<Py<PyList>> {
        let answers = PyList::empty(py);
        self.many(py, items, ask, |answer| answers.append(answer))?;
        Ok(answers.unbind())
    }

    /// Changes many items, piece by piece, and passes each answer on.
    fn many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        ask: impl Fn(&dyn Set, &[Prehashed]) -> Answers + Sync,
        take: impl Fn(bool) -> PyResult<()>,
    ) -> PyResult<()> {
        let own = self.own()?;
        // Also if there are no items.
        own.with_gil(py, |_| Ok(()))?;
        let ask = |hashes: &[Prehashed]| {
            own.without_gil(py, |set| ask(set, hashes).map_err(self.failed()))
        };
        bulk::answer(py, items, self.hasher, ask, take)
    }
}

fn all_answered(answers: Vec<bool>) -> Vec<Result<bool, Full>> {
    answers.into_iter().map(Ok).collect()
}

/// Reads a filter from the bytes of a file.
fn read(py: Python<'_>, bytes: &[u8]) -> PyResult<Table> {
    let mut rest = bytes;
    let table = py.detach(|| Table::read_from(&mut rest));
    let table = table.map_err(|error| errors::of_snapshot(&error))?;
    match rest.is_empty() {
        true => Ok(table),
        false => Err(PyValueError::new_err("there are more bytes than those of a filter")),
    }
}

fn loaded(table: Table, refresh: bool) -> PyResult<Filter> {
    let own = Own::loaded(table).map_err(PyValueError::new_err)?;
    Ok(Filter::new(own, refresh))
}

/// A filter that was pickled.
#[pyfunction]
pub fn _restored(py: Python<'_>, data: &[u8], refresh: bool) -> PyResult<Filter> {
    loaded(read(py, data)?, refresh)
}

/// A filter that was opened to be read, and pickled.
#[pyfunction]
pub fn _reopened(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Filter> {
    let path = open::path(path)?.ok_or_else(|| PyTypeError::new_err("there is no path"))?;
    Filter::read(py, &Asked::default(), &path)
}
