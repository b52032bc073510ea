//! Opening a filter: what was asked for, and whether a filter that is there is like that.

use crate::asked::Asked;
use crate::errors;
use crate::own::Own;
use crate::set::{self, Durable};
use koel::{
    DurableError, DurableErrorKind, DurableFilter, DurableOptions, PersistentHasher, SnapshotFile,
    StableHash, SyncPolicy, Window,
};
use libc::ENOENT;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDelta;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often one who waits for a file looks whether it is free.
const PERIOD: Duration = Duration::from_millis(50);

/// In seconds: some thirty years, instead of for ever.
const LONGEST: f64 = 1e9;

impl Asked {
    /// Builds a filter in memory.
    pub fn build(&self, py: Python<'_>) -> PyResult<Own> {
        check_refresh(self.remembers.is_some(), self.refresh)?;
        let built = py.detach(|| self.new_filter()).map(Own::in_memory);
        built.map_err(|error| errors::of_build(error.kind(), error.least_rate(), self))
    }

    /// Opens the filter of a file, or makes it if it is not there. Waits so long for another process.
    pub fn open(
        &self,
        py: Python<'_>,
        path: &Path,
        policy: SyncPolicy,
        wait: Duration,
    ) -> PyResult<Own> {
        let until = Instant::now() + wait;
        loop {
            match py.detach(|| self.try_open(path, policy))? {
                Ok(durable) => return py.detach(|| self.check(durable, path)).map(Own::with_file),
                Err(error) if error.kind() == DurableErrorKind::InUse && Instant::now() < until => {
                    py.detach(|| std::thread::sleep(PERIOD));
                    py.check_signals()?;
                }
                Err(error) => {
                    return Err(match error.kind() {
                        DurableErrorKind::Build(kind) => {
                            errors::of_build(kind, error.least_rate(), self)
                        }
                        _ => errors::of_durable(&error, Some(path)),
                    });
                }
            }
        }
    }

    fn try_open(&self, path: &Path, policy: SyncPolicy) -> PyResult<Result<Durable, DurableError>> {
        // If nobody can tell, opening tells why.
        if path.try_exists().unwrap_or(true) {
            // Opening a pipe would wait for its other end.
            if path.metadata().is_ok_and(|there| !there.is_file()) {
                return Err(errors::not_a_file(Some(path)));
            }
        } else if !self.create {
            return Err(errors::missing(path));
        } else {
            check_refresh(self.remembers.is_some(), self.refresh)?;
        }
        // The caller waits, and looks for signals meanwhile.
        let options = DurableOptions::default().sync(policy).wait(Duration::ZERO);
        Ok(DurableFilter::open_or_make(path, options, || self.new_filter()))
    }

    /// Opens a file to read it, without loading it. Returns it with its window, if its ticks are counted here.
    pub fn read(
        &self,
        py: Python<'_>,
        path: &Path,
    ) -> PyResult<(SnapshotFile<StableHash>, Option<Window>)> {
        py.detach(|| {
            let file = SnapshotFile::open(path).map_err(|error| errors::of_snapshot(&error))?;
            let info = file.info();
            let window = info.remembers.and_then(|it| Window::of_ticks(it, info.present_tick));
            let planned = info.stats.false_positive_rate_at_capacity;
            self.compare(planned, window, *file.hasher())
                .map_err(|why| errors::named(path, why))?;
            Ok((file, window))
        })
    }

    /// Checks that a filter that was opened is what was asked for.
    fn check(&self, durable: Durable, path: &Path) -> PyResult<Durable> {
        let planned = durable.stats().false_positive_rate_at_capacity;
        let checked = set::window_of(&durable)
            .and_then(|window| self.compare(planned, window, *durable.hasher()).map(|()| window))
            .map_err(|why| errors::named(path, why))
            .and_then(|window| check_refresh(window.is_some(), self.refresh));
        match checked {
            Ok(()) => {
                durable.set_max_bytes(self.most_bytes());
                Ok(durable)
            }
            // Its files are as they were, or one is.
            Err(error) => durable.close().map_or_else(
                |failed| Err(errors::of_durable(&failed, Some(path))),
                |()| Err(error),
            ),
        }
    }

    /// Compares what is there with what was asked for.
    fn compare(&self, planned: f64, is: Option<Window>, hasher: StableHash) -> Result<(), String> {
        if self.rate.is_some_and(|rate| rate < planned) {
            return Err(format!(
                "it is planned for a rate of {planned:.1e}, which cannot be lowered"
            ));
        }
        match self.remembers.map(Window::of_seconds) {
            Some(asked) if is != Some(asked) => Err(match is {
                Some(is) => format!("it remembers items for {is}, which cannot be changed"),
                None => String::from("it remembers items for ever, which cannot be changed"),
            }),
            _ if self.seed.is_some_and(|seed| hasher.seed() != u128::from(seed)) => {
                Err(String::from("it has another seed, which cannot be changed"))
            }
            _ => Ok(()),
        }
    }
}

pub fn check_refresh(forgets: bool, refresh: bool) -> PyResult<()> {
    if refresh && !forgets {
        return Err(PyValueError::new_err(
            "refresh=True is for a filter that forgets: pass remembers, too",
        ));
    }
    Ok(())
}

/// A path, as `open` takes it: a `str`, `bytes` or `os.PathLike`.
pub fn path(path: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if path.is_none() {
        return Ok(None);
    }
    let decoded: PathBuf = path.py().import("os")?.call_method1("fsdecode", (path,))?.extract()?;
    match decoded.as_os_str().as_encoded_bytes() {
        [] => Err(errors::of_system(ENOENT, "the path is empty", Some(&decoded))),
        bytes if bytes.contains(&0) => Err(PyValueError::new_err("embedded null byte")),
        _ => Ok(Some(decoded)),
    }
}

/// Whether something is true in Python's sense.
pub fn truth(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_truthy()
}

/// A whole number from 0 to 2**64 - 1, or `None`. Python names the argument in a note to an error.
pub fn whole<'py, T>(number: &Bound<'py, PyAny>) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    if number.is_none() {
        return Ok(None);
    }
    number.extract().map(Some).map_err(|error: PyErr| {
        match error.is_instance_of::<PyOverflowError>(number.py()) {
            true => PyValueError::new_err(format!(
                "it must be a whole number from 0 to 2**64 - 1, not {number}"
            )),
            false => error,
        }
    })
}

/// A number, or not a number if it is too large for a float.
fn number(number: &Bound<'_, PyAny>) -> PyResult<f64> {
    match number.extract::<f64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Ok(f64::NAN),
        extracted => extracted,
    }
}

/// A number of seconds, or a `timedelta`.
fn seconds(period: &Bound<'_, PyAny>) -> PyResult<f64> {
    match period.cast::<PyDelta>() {
        Ok(delta) => delta.call_method0("total_seconds")?.extract(),
        Err(_) => number(period),
    }
}

/// The fraction of new items that may be taken for seen.
pub fn rate(rate: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if rate.is_none() {
        return Ok(None);
    }
    let number = number(rate)?;
    if !(number > 0.0 && number < 1.0) {
        return Err(PyValueError::new_err(format!(
            "rate must be more than 0 and less than 1, not {rate} (1 % is 0.01)"
        )));
    }
    Ok(Some(number))
}

/// For how long items are to be remembered, in seconds.
pub fn remembers(period: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if period.is_none() {
        return Ok(None);
    }
    let seconds = seconds(period)?;
    if !(seconds > 0.0 && seconds <= Window::MAX_SECONDS as f64) {
        return Err(PyValueError::new_err(
            "remembers must be more than no time, and at most a hundred years, in seconds",
        ));
    }
    Ok(Some(seconds.ceil() as u64))
}

/// When changes are to be synced.
pub fn sync(period: &Bound<'_, PyAny>) -> PyResult<Option<SyncPolicy>> {
    if period.is_none() {
        return Ok(Some(SyncPolicy::Never));
    }
    match seconds(period)? {
        0.0 => Ok(Some(SyncPolicy::Each)),
        seconds if seconds > 0.0 => {
            Ok(Some(SyncPolicy::Every(Duration::from_secs_f64(seconds.min(LONGEST)))))
        }
        _ => Err(PyValueError::new_err(
            "sync must be a number of seconds from 0 on, or None for when the system writes",
        )),
    }
}

/// For how long to wait for another process.
pub fn wait(period: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = seconds(period)?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err("wait must be a number of seconds, from 0 on"));
    }
    Ok(Duration::from_secs_f64(seconds.min(LONGEST)))
}
