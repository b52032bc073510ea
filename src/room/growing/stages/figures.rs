//! Figures of a growing filter, in either stage.

use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::grown::Grown;
use crate::room::growing::stages::Stages;
use crate::room::growing::stages::list::List;
use crate::room::shards::Shards;
use crate::table::ticking::Ticking;

impl Stages {
    pub fn items(&self) -> usize {
        self.ask(List::len).unwrap_or_else(|| self.shards().map_or(0, Grown::items))
    }

    pub fn heap_bytes(&self) -> usize {
        let time = if self.ticking.is_some() { Ticking::SHARED_BYTES } else { 0 };
        let of_shards = || self.shards().map(Grown::heap_bytes);
        let of_list = || self.ask(List::heap_bytes);
        time + of_shards().or_else(of_list).or_else(of_shards).unwrap_or(0)
    }

    /// The number of items with each stamp.
    pub fn items_by_stamp(&self) -> ByStamp {
        let of_list = self.ask(|list| {
            let mut items = ByStamp::default();
            list.items().for_each(|(_, stamp)| items.add(stamp.into(), 1));
            items
        });
        let of_shards = || self.shards().map_or_else(ByStamp::default, Grown::items_by_stamp);
        of_list.unwrap_or_else(of_shards)
    }

    /// The false-positive rate of a list, which tells all items apart, or of shards.
    pub fn rate(&self) -> f64 {
        match self.ask(|_| ()) {
            Some(()) => 0.0,
            None => self.shards().map_or(0.0, Grown::rate),
        }
    }
}
