//! The union of two filters: merges the entries of another filter into this one.
//!
//! The other filter's shards are copied one after the other. Each copy is merged bucket by bucket into the shards here
//! that own its hashes: entries that are not here already are added. No lock of a shard of one filter is held while a
//! shard of the other is locked, so two filters may be merged into each other at the same time. In a fixed filter, a
//! copy belongs to one shard. In a growing filter, copies and shards are split until their depths agree (see
//! `backend/growing/sharded/merge.rs`). Filters that divide the hashes at different places are refused. No shard of the
//! other filter is joined meanwhile, so that each copy begins where the one before it ended, and no shard here while a
//! copy is merged, so that each entry is merged once.
//!
//! Each copy has its time, and an entry is added with the age that it has then. Where both filters number their
//! ticks, the difference of the numbers is added to its age here; a filter that is behind the other catches up first.

use crate::backend::Backend;
use crate::backend::incoming::{Ages, Clocks, IncomingShard, MergeReport};
use crate::error::{UnionError, UnionErrorKind, zeros};
use crate::layout::sizing::Layout;
use crate::table::ticking::Ticking;
use crate::window::Window;

/// Merges the entries of another filter into this one. Returns the number of entries added. The hashers have
/// to be the same, and the filters have to be [alike](check).
pub(crate) fn union_with(backend: &Backend, other: &Backend) -> Result<usize, UnionError> {
    let layout = other.layout();
    let mut report = MergeReport::default();
    merge_shards(backend, other, &layout, &mut report)?;
    report.result().map(|()| report.added)
}

/// Checks that the filters have the same kind, window, size and layout.
pub(crate) fn check(backend: &Backend, other: &Backend) -> Result<(), UnionError> {
    let windows = [backend, other].map(|it| {
        let number = it.ticking().and_then(Ticking::number);
        Window::of_ticks(it.lanes().remembers().into(), number)
    });
    let [one, other] = [backend.layout(), other.layout()];
    let are_lanes_alike = one.lanes() == other.lanes();
    let (is_one_size, is_one_layout) = if one.grows {
        let [mine, theirs] = [&one, &other].map(|layout| layout.shrinking().suffix_bits());
        // Different roots divide the hashes at different places, so the entries of one filter fit no shard of
        // the other.
        (one.roots() == other.roots(), are_lanes_alike && mine == theirs)
    } else {
        let size = |layout: &Layout| (layout.geometry.shards(), layout.geometry.buckets());
        (!are_lanes_alike || size(&one) == size(&other), are_lanes_alike)
    };
    let (kind, text) = if one.grows != other.grows {
        let text = "one of the filters grows and the other does not: build both with .growing(), or neither";
        (UnionErrorKind::DifferentKind, text)
    } else if one.lanes().remembers() != other.lanes().remembers() {
        let text = "the filters remember items for different numbers of ticks: build both with one \
                    .remembers(ticks)";
        (UnionErrorKind::DifferentWindow, text)
    } else if windows[0].is_some() && windows[1].is_some() && windows[0] != windows[1] {
        // As many ticks of other lengths would be taken for times long after each other.
        let text = "the filters forget items after different times: build both with one .forgets_after(time)";
        (UnionErrorKind::DifferentWindow, text)
    } else if !is_one_size {
        let text = "the filters have different sizes, or began with different numbers of shards if they \
                    grow: build both for one capacity";
        (UnionErrorKind::DifferentSize, text)
    } else if !is_one_layout {
        let text = "the filters have fingerprints of different sizes: build both for one \
                    false-positive rate, and one expected growth if they grow";
        (UnionErrorKind::DifferentLayout, text)
    } else {
        return Ok(());
    };
    Err(UnionError::new(kind, text))
}

/// Merges all shards of another filter.
fn merge_shards(
    backend: &Backend,
    other: &Backend,
    layout: &Layout,
    report: &mut MergeReport,
) -> Result<(), UnionError> {
    let lanes = layout.lanes();
    let mut words = zeros(layout.geometry.words())?;
    let _no_joins = other.keep_shards();
    let clocks = backend.ticking().zip(other.ticking());
    let clocks = clocks.map(|(here, there)| Clocks::of(here, there));
    let mut next = Some(0);
    while let Some(start) = next {
        let Some(copied) = other.copy_shard(&mut next, &mut words) else { break };
        // After the copy: if there is none now, no void lane of the copy stands for an item.
        report.void_there = other.void_items();
        let ages = clocks.zip(copied.time).map(|(clocks, there)| {
            // What has expired there expires here, too, and no entry comes from a later tick.
            if let Some(number) = there.number {
                backend.tick_to(number);
            }
            let ages = Ages::of(there, clocks);
            ages.erase_expired(&mut words, lanes);
            ages
        });
        let (start, depth) = (other.hash_in(start), copied.depth);
        let incoming = IncomingShard { start, depth, words: &words, lanes, ages };
        backend.merge_shard(&incoming, report)?;
    }
    Ok(())
}
