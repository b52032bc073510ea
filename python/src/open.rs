//! Opening a filter: what was asked for, and whether a filter that is there is like that.

use crate::errors;
use crate::fork::detached;
use crate::kept::{DEFAULT_RATE, Kept, Plan};
use crate::place::Place;
use koel::{BuildError, PersistentHasher};
use koel_state::window::Window;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often one who waits for a file looks whether it is free.
const PERIOD: Duration = Duration::from_millis(50);

/// The arguments of `Filter`, as far as they are of the filter.
pub struct Asked {
    pub rate: Option<f64>,
    pub capacity: Option<usize>,
    /// In seconds.
    pub remembers: Option<u64>,
    pub refresh: bool,
    pub max_bytes: usize,
    pub seed: Option<u64>,
    pub create: bool,
}

impl Asked {
    /// Builds a new filter.
    pub fn build(&self) -> PyResult<Kept> {
        let Asked { capacity, remembers, max_bytes, seed, .. } = *self;
        let rate = self.rate.unwrap_or(DEFAULT_RATE);
        let kept = Kept::build(Plan { rate, capacity, remembers, max_bytes, seed })
            .map_err(|error: BuildError| errors::of_build(&error))?;
        check_refresh(&kept, self.refresh)?;
        Ok(kept)
    }

    /// Loads the filter of a place, or builds it if it is not there.
    pub fn load_or_build(&self, place: &Place) -> PyResult<Kept> {
        let path = place.path();
        // If nobody can tell, loading tells why.
        if path.try_exists().unwrap_or(true) {
            // Opening a pipe would wait for its other end.
            if path.metadata().is_ok_and(|there| !there.is_file()) {
                return Err(errors::not_a_file(path));
            }
            let kept = Kept::load(path)?;
            self.check(&kept)
                .map_err(|why| PyValueError::new_err(format!("{}: {why}", path.display())))?;
            check_refresh(&kept, self.refresh)?;
            kept.filter.set_max_bytes(self.max_bytes);
            return Ok(kept);
        }
        if !self.create {
            return Err(errors::missing(path));
        }
        let kept = self.build()?;
        // A filter that cannot be saved is reported before anything is added.
        place.save(&kept)?;
        Ok(kept)
    }

    /// Checks that a filter that is there is what was asked for.
    fn check(&self, kept: &Kept) -> Result<(), String> {
        let planned = kept.filter.false_positive_rate_at_capacity();
        if self.rate.is_some_and(|rate| rate.is_nan() || rate < planned) {
            return Err(format!(
                "it is planned for a rate of {planned:.1e}, which cannot be lowered"
            ));
        }
        let is = kept.window;
        match self.remembers.map(Window::of_seconds) {
            Some(asked) if is != Some(asked) => Err(match is {
                Some(is) => {
                    format!(
                        "it remembers items for {} seconds, which cannot be changed",
                        is.seconds()
                    )
                }
                None => String::from("it remembers items for ever, which cannot be changed"),
            }),
            _ if self.seed.is_some_and(|seed| kept.filter.hasher().seed() != u128::from(seed)) => {
                Err(String::from("it has another seed, which cannot be changed"))
            }
            _ => Ok(()),
        }
    }
}

/// Claims a path, and waits so long for another process.
pub fn claim(py: Python<'_>, path: &Path, wait: Duration) -> PyResult<Arc<Place>> {
    let until = Instant::now() + wait;
    loop {
        match detached(py, || Place::claim(path)) {
            Ok(place) => return Ok(place),
            Err(error) if error.is_taken() && Instant::now() < until => {
                py.detach(|| std::thread::sleep(PERIOD));
                py.check_signals()?;
            }
            Err(error) => return Err(errors::of_claim(&error, path)),
        }
    }
}

pub fn check_refresh(kept: &Kept, refresh: bool) -> PyResult<()> {
    match kept.window {
        None if refresh => Err(PyValueError::new_err(
            "refresh=True is for a filter that forgets: pass remembers, too",
        )),
        _ => Ok(()),
    }
}

/// A number of seconds, or a `timedelta`.
pub fn seconds(period: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = match period.hasattr("total_seconds")? {
        true => period.call_method0("total_seconds")?,
        false => period.clone(),
    };
    let seconds: f64 = number.extract()?;
    let most = Window::MAX_SECONDS as f64;
    if !(seconds > 0.0 && seconds <= most) {
        return Err(PyValueError::new_err(
            "remembers must be more than no time, and at most a hundred years, in seconds",
        ));
    }
    Ok(seconds.ceil() as u64)
}
