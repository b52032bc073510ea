//! Filters, and their figures, in the data formats of `serde`: a filter as the bytes of a file, figures as fields.

use crate::filter::ConcurrentCuckooFilter;
use crate::hash::PersistentHasher;
use crate::snapshot::SnapshotInfo;
use crate::stats::Stats;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// The most bytes that are allocated because a sequence claims to be that long.
const MOST_CLAIMED: usize = 1 << 20;

/// # serde
///
/// With the feature `serde`, a filter that can be saved can also be a field of what is serialised. It is written as
/// bytes: those of [`write_to`](ConcurrentCuckooFilter::write_to), with their checksums. All of them are in memory
/// at once, and formats without bytes, such as JSON, write a number for each: for large filters, use a file.
impl<S: PersistentHasher> Serialize for ConcurrentCuckooFilter<S> {
    fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).map_err(F::Error::custom)?;
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de, S: PersistentHasher> Deserialize<'de> for ConcurrentCuckooFilter<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes(PhantomData))
    }
}

struct Bytes<S>(PhantomData<S>);

impl<'de, S: PersistentHasher> Visitor<'de> for Bytes<S> {
    type Value = ConcurrentCuckooFilter<S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a saved filter")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        ConcurrentCuckooFilter::read_from(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Self::Value, A::Error> {
        let claimed = numbers.size_hint().unwrap_or(0);
        let mut bytes = Vec::with_capacity(claimed.min(MOST_CLAIMED));
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        ConcurrentCuckooFilter::read_from(&bytes[..]).map_err(A::Error::custom)
    }
}

/// Writes a struct as its public fields. The derive macros of `serde` would be one more dependency.
macro_rules! serialize_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        /// With the feature `serde`, as a struct of its public fields.
        impl Serialize for $type {
            fn serialize<F: Serializer>(&self, serializer: F) -> Result<F::Ok, F::Error> {
                let $type { $($field),* } = self;
                let count = [$(stringify!($field)),*].len();
                let mut fields = serializer.serialize_struct(stringify!($type), count)?;
                $(fields.serialize_field(stringify!($field), $field)?;)*
                fields.end()
            }
        }
    };
}

serialize_fields! {
    Stats {
        grows, items, capacity, slots, fingerprint_bits, slots_per_bucket, shards, segments, size_in_bytes,
        false_positive_rate, false_positive_rate_at_capacity, max_bytes, splits, directory_depth, growth,
        expected_growth,
    }
}

serialize_fields! { SnapshotInfo { stats, hasher, remembers, present_tick, journal_bytes } }
