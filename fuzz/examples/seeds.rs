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
            let builder = builder.capacity(1 + items as usize);
            let fixed = builder.clone().false_positive_rate(rate).build().expect("a filter");
            save(&fixed, items, &folder.join(format!("fixed-{layout}-{items}")));
            let growing =
                builder.clone().capacity(1).false_positive_rate((20.0 * rate).min(0.9)).growing();
            let growing = growing.expected_growth(16.0).build().expect("a filter");
            save(&growing, items, &folder.join(format!("growing-{layout}-{items}")));
            for ticks in [1, 6] {
                let builder = builder.clone().remembers(ticks);
                let name = format!("{layout}-{items}-{ticks}");
                if let Ok(fixed) = builder.clone().false_positive_rate(rate).build() {
                    save(&fixed, items, &folder.join(format!("fixed-{name}")));
                }
                let growing = builder.capacity(1).growing();
                let growing = growing.false_positive_rate((80.0 * rate).min(0.9));
                if let Ok(growing) = growing.expected_growth(16.0).build() {
                    save(&growing, items, &folder.join(format!("growing-{name}")));
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
