//! A filter as a field of what `serde` writes and reads.

#![cfg(not(shuttle))]

use koel::{ConcurrentCuckooFilter, SnapshotInfo, StableHash};
use serde::de::value::{BytesDeserializer, Error};
use serde::de::{Deserialize, IntoDeserializer};

type Filter = ConcurrentCuckooFilter<StableHash>;

fn filters() -> [Filter; 3] {
    let builder =
        || ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::with_seed(3));
    let builders =
        [builder(), builder().growing(), builder().false_positive_rate(1e-6).remembers(3)];
    builders.map(|builder| {
        let filter = builder.build().expect("memory");
        (0..80).for_each(|item| filter.insert(&item).expect("room"));
        filter
    })
}

#[test]
fn a_filter_comes_back_from_numbers_and_from_bytes() {
    for filter in filters() {
        let text = serde_json::to_string(&("seen", &filter)).expect("text");
        let (_, again): (String, Filter) = serde_json::from_str(&text).expect("a filter");
        let bytes: Vec<u8> =
            serde_json::from_value(serde_json::to_value(&filter).unwrap()).unwrap();
        let deserializer: BytesDeserializer<Error> = bytes[..].into_deserializer();
        for again in [again, Filter::deserialize(deserializer).expect("a filter")] {
            assert_eq!((again.len(), again.capacity()), (filter.len(), filter.capacity()));
            assert!((0..80).all(|item| again.contains(&item)));
            assert_eq!(again.remembers(), filter.remembers());
        }
    }
}

#[test]
fn what_is_not_a_filter_is_an_error() {
    let filter = &filters()[0];
    let mut bytes: Vec<u8> = serde_json::from_value(serde_json::to_value(filter).unwrap()).unwrap();
    let error =
        |text: &str| serde_json::from_str::<Filter>(text).map(|_| ()).unwrap_err().to_string();
    assert!(error("17").contains("expected the bytes of a saved filter"), "{}", error("17"));
    assert!(error("[1, 2, 300]").contains("u8"), "{}", error("[1, 2, 300]"));
    for (at, what) in [(0, "magic"), (90, "header"), (400, "shard")] {
        bytes[at] ^= 4;
        let deserializer: BytesDeserializer<Error> = bytes[..].into_deserializer();
        let error = Filter::deserialize(deserializer).map(|_| ()).unwrap_err();
        assert!(!error.to_string().is_empty(), "{what}");
        bytes[at] ^= 4;
    }
    bytes.pop();
    let deserializer: BytesDeserializer<Error> = bytes[..].into_deserializer();
    assert!(Filter::deserialize(deserializer).is_err());
}

#[test]
fn figures_are_written_as_their_fields() {
    let filter = &filters()[2];
    let figures = serde_json::to_value(filter.stats()).expect("figures");
    assert_eq!(figures["items"], 80);
    assert_eq!(figures["capacity"], 100);
    assert_eq!(figures["grows"], false);
    assert!(figures["max_bytes"].is_null());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("figures.koel");
    filter.save(&path).expect("a file");
    let info = serde_json::to_value(SnapshotInfo::read(&path).expect("a file")).expect("figures");
    assert_eq!((&info["stats"]["items"], &info["hasher"]), (&80.into(), &"XXH3-64".into()));
    assert_eq!(info["remembers"], 3);
}
