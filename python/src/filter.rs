//! The class `Filter`.

use crate::fork::{attached, detached};
use crate::kept::Kept;
use crate::open::{Asked, check_refresh, claim, seconds};
use crate::place::{Place, absolute};
use crate::{bulk, errors, items};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// In seconds: some thirty years, instead of for ever.
const LONGEST_WAIT: f64 = 1e9;

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
/// for itself until the filter is closed. Without a path, the filter is only in memory.
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
#[pyclass(module = "pykoel", frozen, weakref)]
pub struct Filter {
    kept: Kept,
    place: Option<Arc<Place>>,
    refresh: bool,
    /// `Relaxed`: it publishes nothing. The interpreter's lock orders it with operations on one item; without such a
    /// lock, an item that is added while another thread closes the filter may be answered, and not saved.
    closed: AtomicBool,
}

impl Filter {
    fn new(kept: Kept, place: Option<Arc<Place>>, refresh: bool) -> Self {
        Filter { kept, place, refresh, closed: AtomicBool::new(false) }
    }

    /// The filter, if it is not closed.
    #[inline]
    fn kept(&self) -> PyResult<&Kept> {
        if self.closed.load(Relaxed) { Err(errors::closed()) } else { Ok(&self.kept) }
    }

    /// The filter, for an operation at this time.
    #[inline]
    fn now(&self, py: Python<'_>) -> PyResult<&Kept> {
        let kept = self.kept()?;
        if kept.is_late() {
            detached(py, || kept.keep_up());
        }
        Ok(kept)
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (path=None, *, rate=None, capacity=None, remembers=None, refresh=false, max_bytes=None, seed=None, create=true, wait=0.0))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        rate: Option<f64>,
        capacity: Option<usize>,
        remembers: Option<&Bound<'_, PyAny>>,
        refresh: bool,
        max_bytes: Option<usize>,
        seed: Option<u64>,
        create: bool,
        wait: f64,
    ) -> PyResult<Self> {
        let asked = Asked {
            rate,
            capacity,
            remembers: remembers.map(seconds).transpose()?,
            refresh,
            max_bytes: max_bytes.unwrap_or(usize::MAX),
            seed,
            create,
        };
        let Some(path) = path else {
            let kept = detached(py, || asked.build())?;
            return Ok(Self::new(kept, None, refresh));
        };
        if wait.is_nan() || wait < 0.0 {
            return Err(PyValueError::new_err("wait must be a number of seconds, from 0 on"));
        }
        let wait = Duration::from_secs_f64(wait.min(LONGEST_WAIT));
        let place = claim(py, &path, wait)?;
        let kept = detached(py, || asked.load_or_build(&place))?;
        Ok(Self::new(kept, Some(place), refresh))
    }

    /// Adds an item, and returns True if it was new. Of threads that add one item at once, one gets True.
    #[inline]
    fn add(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let kept = self.now(py)?;
        let (hash, _) = items::hash(kept, item)?;
        attached(py, || kept.add(hash, self.refresh)).map_err(errors::of_full)
    }

    /// Whether the item was added.
    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let kept = self.now(py)?;
        let (hash, _) = items::hash(kept, item)?;
        Ok(attached(py, || kept.filter.contains(&hash)))
    }

    /// Removes an item if it is there, and returns whether it was.
    ///
    /// Remove only what was added, that is, for which `add` returned True. Removing anything else may, as rarely
    /// as `rate`, remove another item.
    fn discard(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let kept = self.now(py)?;
        let (hash, _) = items::hash(kept, item)?;
        Ok(attached(py, || kept.filter.remove(&hash)))
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
        bulk::answer(py, items, || self.kept(), |kept, hashes| kept.add_many(hashes, self.refresh))
    }

    /// Looks up many items, and returns a list of True and False. It takes what `add_many` takes.
    fn contains_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        bulk::answer(
            py,
            items,
            || self.kept(),
            |kept, hashes| kept.filter.contains_many(hashes).into_iter().map(Ok).collect(),
        )
    }

    /// Removes many items, as `discard` removes one, and returns a list of True and False.
    fn discard_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        bulk::answer(
            py,
            items,
            || self.kept(),
            |kept, hashes| kept.filter.remove_many(hashes).into_iter().map(Ok).collect(),
        )
    }

    /// The hash of an item in this filter, from 0 to 2**64 - 1: the XXH3 of its bytes, with the filter's seed.
    fn hash_of(&self, item: &Bound<'_, PyAny>) -> PyResult<u64> {
        items::hash(self.kept()?, item).map(|(hash, _)| hash.0)
    }

    /// Removes all items. The filter keeps the memory that it has.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let kept = self.kept()?;
        detached(py, || kept.filter.clear());
        Ok(())
    }

    /// Adds what another filter knows, and returns how many items came. Both must have been made with one seed,
    /// for one capacity, and be alike in everything else: it raises ValueError otherwise, and nothing has changed.
    /// If it raises MemoryError, a part has come.
    fn merge(&self, py: Python<'_>, other: &Filter) -> PyResult<usize> {
        let (kept, other) = (self.now(py)?, other.now(py)?);
        if kept.window != other.window {
            return Err(PyValueError::new_err("these filters remember items for different times"));
        }
        // koel would tell of their seeds first, which are mostly different, too.
        if kept.filter.grows() != other.filter.grows() {
            return Err(PyValueError::new_err(
                "one of these filters grows, and the other does not",
            ));
        }
        detached(py, || kept.filter.union(&other.filter)).map_err(|error| match error.full() {
            Some(full) => errors::of_full(full),
            None => PyValueError::new_err(error.to_string()),
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let kept = self.now(py)?;
        Ok(attached(py, || kept.filter.len()))
    }

    /// Saves the filter to its file, or a copy to another path. Other threads go on meanwhile.
    ///
    /// The file is replaced as a whole or not at all, and has a checksum. What was added before the call is in it.
    #[pyo3(signature = (path=None))]
    fn save(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<()> {
        let kept = self.now(py)?;
        match (&self.place, path) {
            (Some(place), None) => detached(py, || place.save(kept)),
            (Some(place), Some(path)) if absolute(&path) == place.path() => {
                detached(py, || place.save(kept))
            }
            (_, Some(path)) => {
                let place = claim(py, &path, Duration::ZERO)?;
                detached(py, || place.save(kept))
            }
            (None, None) => Err(PyTypeError::new_err(
                "this filter has no file: name a path, here or when it is made",
            )),
        }
    }

    /// Saves the filter if it has a file, leaves the file to others, and ends all use of the filter.
    ///
    /// In a child that was forked it does not save: the file is the parent's.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Closed first: what is added from here on is refused, and not lost.
        if self.closed.swap(true, Relaxed) {
            return Ok(());
        }
        let Some(place) = &self.place else { return Ok(()) };
        let closed = detached(py, || {
            if !place.is_of_parent() {
                self.kept.keep_up();
                place.save(&self.kept)?;
            }
            place.leave();
            Ok(())
        });
        if closed.is_err() {
            self.closed.store(false, Relaxed);
        }
        closed
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// Whether the filter is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// The path of its file, or None.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|place| place.path().to_path_buf())
    }

    /// For how many seconds items are remembered at least (rounded up), or None if for ever.
    #[getter]
    fn remembers(&self) -> Option<u64> {
        self.kept.window.map(|window| window.seconds())
    }

    /// The figures of the filter.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let kept = self.now(py)?;
        let stats = detached(py, || kept.filter.stats());
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
        let kept = self.now(py)?;
        let copy = detached(py, || kept.copy()).map_err(|error| errors::of_build(&error))?;
        Ok(Self::new(copy, None, self.refresh))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    /// The bytes that `save` would write.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let kept = self.now(py)?;
        let mut bytes = Vec::new();
        detached(py, || kept.filter.write_to(&mut bytes))
            .map_err(|error| errors::of_snapshot(&error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A filter in memory, of bytes that `to_bytes` returned, or of those of a file.
    #[classmethod]
    #[pyo3(signature = (data, *, refresh=false))]
    fn from_bytes(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &[u8],
        refresh: bool,
    ) -> PyResult<Self> {
        let kept = detached(py, || Kept::read(data))?;
        check_refresh(&kept, refresh)?;
        Ok(Self::new(kept, None, refresh))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("pykoel._pykoel")?.getattr("_restored")?;
        let contents = (self.to_bytes(py)?, self.refresh).into_pyobject(py)?;
        (restore, contents).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let path = match self.path() {
            Some(path) => format!("{:?}, ", path),
            None => String::new(),
        };
        if self.closed.load(Relaxed) {
            return Ok(format!("<pykoel.Filter {path}closed>"));
        }
        let bytes = attached(py, || self.kept.filter.size_in_bytes());
        Ok(format!("<pykoel.Filter {path}{} items, {bytes} bytes>", self.__len__(py)?))
    }
}

/// A filter that was pickled.
#[pyfunction]
pub fn _restored(py: Python<'_>, data: &[u8], refresh: bool) -> PyResult<Filter> {
    let kept = detached(py, || Kept::read(data))?;
    Ok(Filter::new(kept, None, refresh))
}
