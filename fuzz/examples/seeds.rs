//! Writes the files of small filters to a folder, as the fuzzer's initial corpus:
//! `cargo run --example seeds -- found`.

use koel_small::{ConcurrentCuckooFilter, StableHash};
use std::path::Path;

fn main() {
    let folder = std::env::args_os().nth(1).expect("the name of a folder");
    let folder = Path::new(&folder);
    let rates = [0.07, 0.03, 0.012, 0.0025, 0.000_12, 3e-6, 1e-9, 6e-5, 1.2e-5, 6e-7, 2e-9];
    for (layout, rate) in rates.into_iter().enumerate() {
        for items in [0, 5, 40, 150] {
            let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(1));
            let fixed = builder.clone().capacity(1 + items as usize).false_positive_rate(rate);
            let growing = |factor: f64| {
                let builder = builder.clone().capacity(1).growing().expected_growth(16.0);
                builder.false_positive_rate((factor * rate).min(0.9))
            };
            for (kind, builder) in [("fixed", fixed.clone()), ("growing", growing(20.0))] {
                let name = format!("{kind}-{layout}-{items}");
                save(&builder.build().expect("a filter"), items, &folder.join(name));
            }
            for ticks in [1, 6] {
                for (kind, builder) in [("fixed", fixed.clone()), ("growing", growing(80.0))] {
                    let name = format!("{kind}-{layout}-{items}-{ticks}");
                    // With stamps, no fingerprint is long enough for some rates.
                    if let Ok(filter) = builder.remembers(ticks).build() {
                        save(&filter, items, &folder.join(name));
                    }
                }
            }
        }
    }
}

fn save(filter: &ConcurrentCuckooFilter<StableHash>, items: u64, path: &Path) {
    for item in 0..items {
        if item % 20 == 19 {
            filter.tick();
        }
        let _ = filter.insert(&item);
    }
    filter.save(path).expect("a file");
}
