//! What a key has: a set of items, whatever the server.
//!
//! * [`about`] is what it was made of.
//! * [`few`] has a few items; from there on it is a filter of koel.
//! * [`chunk`] is the format in which it is saved, and
//! * [`assembly`] makes it of that.

pub mod about;
pub mod assembly;
pub mod chunk;
pub mod few;

use crate::set::about::About;
use crate::set::assembly::{Assembly, Trouble};
use crate::set::few::Few;
use koel::{AnyCuckooFilter, BuildError, Full, SnapshotError, StableHash};
use std::hash::BuildHasher;

/// The set of a key.
pub struct Set {
    about: About,
    body: Body,
}

enum Body {
    Few(Few),
    /// In a box: a filter is large, and most keys may have few items.
    Filter(Box<AnyCuckooFilter<StableHash>>),
    /// A set that a client is loading, chunk by chunk.
    Half(Box<Assembly>),
}

/// Does the same to a filter of either kind.
macro_rules! filter {
    ($any:expr, $filter:ident => $what:expr) => {
        match $any {
            AnyCuckooFilter::Fixed($filter) => $what,
            AnyCuckooFilter::Growing($filter) => $what,
        }
    };
}

/// Up to this capacity, a growing set begins with few items. A larger one takes its memory at once.
const SMALL_CAPACITY: u64 = 16_384;

/// Up to this capacity, a set of fixed size never is a filter.
const SMALL_FIXED: u64 = 32;

/// The bytes in a piece, unless a shard has more.
const PIECE_BYTES: usize = 1 << 20;

/// Where a dump goes on. These are larger than any cursor of a filter, and numbers that every client can hold.
const AT_ABOUT: u64 = (1 << 53) - 2;
const AT_END: u64 = (1 << 53) - 1;

/// Why there is no such part of a dump.
pub enum NoPart {
    /// The cursor is not one of this set.
    NoSuchCursor,
    Koel(SnapshotError),
}

/// What became of a chunk.
pub enum Pushed {
    Taken,
    /// Nothing has changed.
    Refused(Trouble),
    /// It was the last one, and all together are no set. Half a set without chunks is left.
    Spoilt(Trouble),
}

/// Why two sets cannot be merged.
pub enum Apart {
    Seed,
    Half,
    Kind,
    Koel(String),
}

impl Set {
    pub fn new(about: About) -> Result<Self, BuildError> {
        let small = match about.grows() {
            true => about.capacity < SMALL_CAPACITY,
            false => about.capacity <= SMALL_FIXED,
        };
        // Also a set of few items has to be able to become a filter.
        let filter = about.build()?;
        let body = match small && about.forget_after == 0 {
            true => Body::Few(Few::default()),
            false => Body::Filter(Box::new(filter)),
        };
        Ok(Set { about, body })
    }

    /// A set of which no chunk has come.
    pub fn half() -> Self {
        let assembly = Assembly::keeping();
        Set { about: About::new(1, 0.5), body: Body::Half(Box::new(assembly)) }
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether a client is loading it, so that nobody can use it.
    pub fn is_half(&self) -> bool {
        matches!(self.body, Body::Half(_))
    }

    /// Takes over what another one says that it was made of, and returns whether that can be.
    pub fn describe(&mut self, about: About) -> bool {
        let same = about.seed() == self.about.seed()
            && about.capacity == self.about.capacity
            && about.grows() == self.about.grows()
            && !self.is_half();
        if same {
            self.about = About { hasher: self.about.hasher, ..about };
        }
        same
    }

    #[inline]
    pub fn hash(&self, item: &[u8]) -> u64 {
        self.about.hasher.hash_one(item)
    }

    pub fn len(&self) -> usize {
        match &self.body {
            Body::Few(few) => few.hashes().len(),
            Body::Filter(filter) => filter!(&**filter, filter => filter.len()),
            Body::Half(_) => 0,
        }
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        let body = match &self.body {
            Body::Few(few) => few.bytes(),
            Body::Filter(filter) => filter!(&**filter, filter => filter.size_in_bytes()),
            Body::Half(assembly) => assembly.bytes(),
        };
        size_of::<Self>() + body
    }

    pub fn buckets(&self) -> usize {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => {
                let stats = filter.stats();
                stats.slots() / stats.slots_per_bucket().max(1)
            }),
            _ => 1,
        }
    }

    /// The rate at which it errs now.
    pub fn present_rate(&self) -> f64 {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.false_positive_rate()),
            _ => 0.0,
        }
    }

    /// Whether a set of fixed size has as many items as it was made for.
    fn is_full(&self) -> bool {
        !self.about.grows() && self.len() as u64 >= self.about.capacity
    }

    /// The filter, into which a few items go now if that is what there is. `None` for half a set, or if
    /// there is no memory for a filter.
    fn filter(&mut self) -> Option<&AnyCuckooFilter<StableHash>> {
        if let Body::Few(few) = &self.body {
            let filter = filter_of(&self.about, few).ok()?;
            self.body = Body::Filter(Box::new(filter));
        }
        match &self.body {
            Body::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// Adds a copy of the item, and returns whether there was room.
    pub fn add(&mut self, hash: u64) -> bool {
        if self.is_full() {
            return false;
        }
        if let Body::Few(few) = &mut self.body
            && few.takes(hash)
        {
            few.add(hash);
            return true;
        }
        self.filter()
            .is_some_and(|filter| filter!(filter, filter => filter.insert_hash(hash)).is_ok())
    }

    /// Adds the item if it is not there, and returns whether it was not, or `None` if there was no room.
    pub fn add_if_absent(&mut self, hash: u64) -> Option<bool> {
        if self.contains(hash) {
            return Some(false);
        }
        if self.is_full() {
            return None;
        }
        match &mut self.body {
            Body::Few(few) if few.takes(hash) => {
                few.add(hash);
                Some(true)
            }
            _ => filter!(self.filter()?, filter => filter.insert_hash_if_absent(hash)).ok(),
        }
    }

    /// Adds a copy of each item, and tells for each whether there was room.
    pub fn add_many(&mut self, hashes: &[u64], answers: &mut [bool]) {
        let room = (self.about.capacity as usize).saturating_sub(self.len());
        let (Body::Filter(filter), true) = (&self.body, self.about.grows() || room >= hashes.len())
        else {
            return hashes.iter().zip(answers).for_each(|(hash, answer)| *answer = self.add(*hash));
        };
        batches(
            hashes,
            answers,
            Ok(()),
            |hashes, answers: &mut [Result<(), Full>]| {
                filter!(&**filter, filter => filter.insert_hash_many_into(hashes, answers));
            },
            |answer| answer.is_ok(),
        );
    }

    /// Adds each item that is not there, and tells for each whether it was not, or `None` if there was no
    /// room.
    pub fn add_many_if_absent(&mut self, hashes: &[u64], answers: &mut [Option<bool>]) {
        let room = (self.about.capacity as usize).saturating_sub(self.len());
        let (Body::Filter(filter), true) = (&self.body, self.about.grows() || room >= hashes.len())
        else {
            let each = hashes.iter().zip(answers);
            return each.for_each(|(hash, answer)| *answer = self.add_if_absent(*hash));
        };
        batches(
            hashes,
            answers,
            Ok(false),
            |hashes, answers: &mut [Result<bool, Full>]| {
                filter!(&**filter, filter => filter.insert_hash_if_absent_many_into(hashes, answers));
            },
            |answer| answer.ok(),
        );
    }

    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.contains_hash(hash)),
            Body::Few(few) => few.contains(hash),
            Body::Half(_) => false,
        }
    }

    pub fn contains_many(&self, hashes: &[u64], answers: &mut [bool]) {
        match &self.body {
            Body::Filter(filter) => {
                filter!(&**filter, filter => filter.contains_hash_many_into(hashes, answers));
            }
            _ => {
                let each = hashes.iter().zip(answers);
                each.for_each(|(hash, answer)| *answer = self.contains(*hash));
            }
        }
    }

    pub fn count(&self, hash: u64) -> usize {
        match &self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.count_hash(hash)),
            Body::Few(few) => few.count(hash),
            Body::Half(_) => 0,
        }
    }

    /// Removes a copy of the item, and returns whether there was one.
    pub fn remove(&mut self, hash: u64) -> bool {
        let removed = match &mut self.body {
            Body::Filter(filter) => filter!(&**filter, filter => filter.remove_hash(hash)),
            Body::Few(few) => few.remove(hash),
            Body::Half(_) => false,
        };
        self.about.deleted += u64::from(removed);
        removed
    }

    /// Forgets how many items were deleted. If none are left, gives back the memory that it grew to.
    pub fn compact(&mut self) -> Result<(), BuildError> {
        self.about.deleted = 0;
        if self.len() == 0 && !self.is_half() && self.about.forget_after == 0 {
            *self = Set::new(self.about)?;
        }
        Ok(())
    }

    /// Adds what the other set has, and returns how many items that were.
    pub fn merge(&mut self, other: &Set) -> Result<usize, Apart> {
        if self.is_half() || other.is_half() {
            return Err(Apart::Half);
        }
        if self.about.hasher != other.about.hasher {
            return Err(Apart::Seed);
        }
        if let Body::Few(few) = &other.body {
            let added = few.hashes().iter().map(|hash| self.add_if_absent(*hash));
            let added: Option<Vec<bool>> = added.collect();
            let added =
                added.ok_or_else(|| Apart::Koel("there is no room for all items".into()))?;
            return Ok(added.iter().filter(|new| **new).count());
        }
        let Body::Filter(other) = &other.body else { return Err(Apart::Half) };
        let Some(own) = self.filter() else { return Err(Apart::Koel("no memory".into())) };
        let added = match (own, &**other) {
            (AnyCuckooFilter::Fixed(own), AnyCuckooFilter::Fixed(other)) => own.union(other),
            (AnyCuckooFilter::Growing(own), AnyCuckooFilter::Growing(other)) => own.union(other),
            _ => return Err(Apart::Kind),
        };
        added.map_err(|error| Apart::Koel(error.to_string()))
    }

    /// The part of a dump at this cursor, and the cursor of the next one. `None` at the end.
    pub fn part_at(&self, cursor: u64) -> Result<Option<(u64, Vec<u8>)>, NoPart> {
        let built;
        let filter = match (&self.body, cursor) {
            (Body::Half(_), _) => return Err(NoPart::NoSuchCursor),
            (_, AT_END) => return Ok(None),
            (_, AT_ABOUT) => return Ok(Some((AT_END, chunk::of_about(&self.about)))),
            (Body::Filter(filter), _) => &**filter,
            (Body::Few(few), _) => {
                built = filter_of(&self.about, few).map_err(|_| NoPart::NoSuchCursor)?;
                &built
            }
        };
        let piece = filter!(filter, filter => filter.piece_at(cursor, PIECE_BYTES));
        let piece = piece.map_err(|error| match error.kind() {
            koel::SnapshotErrorKind::NoSuchPiece => NoPart::NoSuchCursor,
            _ => NoPart::Koel(error),
        })?;
        Ok(Some((piece.next().unwrap_or(AT_ABOUT), piece.as_bytes().to_vec())))
    }

    /// Visits all chunks that a file needs.
    pub fn each_chunk(&self, mut visit: impl FnMut(&[u8])) -> Result<(), SnapshotError> {
        match &self.body {
            Body::Few(few) => visit(&chunk::of_few(&self.about, few)),
            Body::Half(assembly) => assembly.each_chunk(visit),
            Body::Filter(filter) => {
                let mut cursor = Some(0);
                while let Some(place) = cursor {
                    let piece = filter!(&**filter, filter => filter.piece_at(place, PIECE_BYTES))?;
                    visit(piece.as_bytes());
                    cursor = piece.next();
                }
                visit(&chunk::of_about(&self.about));
            }
        }
        Ok(())
    }

    /// Visits bytes that are equal in sets with equal tables, and in no others.
    pub fn each_digested(&self, mut visit: impl FnMut(&[u8])) {
        let built;
        let filter = match &self.body {
            Body::Half(assembly) => return assembly.each_chunk(visit),
            Body::Filter(filter) => Some(&**filter),
            // It does not matter when a few items become a filter.
            Body::Few(few) => {
                built = filter_of(&self.about, few);
                built.as_ref().ok()
            }
        };
        visit(&chunk::of_about(&self.about));
        if let Some(filter) = filter {
            // A visitor does not fail.
            let _ = filter!(filter, filter => filter.write_to(Visited(&mut visit)));
        }
    }

    pub fn try_clone(&self) -> Result<Self, String> {
        let body = match &self.body {
            Body::Few(few) => Body::Few(few.clone()),
            Body::Half(half) => {
                Body::Half(Box::new(half.again().map_err(|error| error.to_string())?))
            }
            Body::Filter(filter) => {
                let again = match &**filter {
                    AnyCuckooFilter::Fixed(filter) => {
                        filter.try_clone().map(AnyCuckooFilter::Fixed)
                    }
                    AnyCuckooFilter::Growing(filter) => {
                        filter.try_clone().map(AnyCuckooFilter::Growing)
                    }
                };
                Body::Filter(Box::new(again.map_err(|error| error.to_string())?))
            }
        };
        Ok(Set { about: self.about, body })
    }

    /// Allocates anew what is small, so that the allocator can put it where there is less waste.
    pub fn renew_what_is_small(&mut self) {
        if let Body::Few(few) = &mut self.body {
            *few = few.clone();
        }
    }

    /// Takes a chunk of half a set, and makes it whole if that was the last one.
    pub fn push(&mut self, chunk: &[u8]) -> Pushed {
        let Body::Half(assembly) = &mut self.body else {
            return Pushed::Refused(Trouble::Misplaced);
        };
        if let Err(trouble) = assembly.push(chunk) {
            return Pushed::Refused(trouble);
        }
        if assembly.is_complete() {
            match std::mem::replace(&mut **assembly, Assembly::keeping()).finish() {
                Ok(set) => *self = set,
                Err(trouble) => return Pushed::Spoilt(trouble),
            }
        }
        Pushed::Taken
    }
}

/// Puts a few items into a filter.
fn filter_of(about: &About, few: &Few) -> Result<AnyCuckooFilter<StableHash>, BuildError> {
    let filter = about.build()?;
    for hash in few.hashes() {
        // Every filter has room for a few items.
        let _ = filter!(&filter, filter => filter.insert_hash(*hash));
    }
    Ok(filter)
}

/// The items that are passed to a filter at once, with answers on the stack.
const BATCH: usize = 128;

/// Passes items to a filter in batches, and answers in the words of a set.
fn batches<A: Copy, B>(
    hashes: &[u64],
    answers: &mut [B],
    unanswered: A,
    mut act: impl FnMut(&[u64], &mut [A]),
    answer: impl Fn(A) -> B,
) {
    for (hashes, answers) in hashes.chunks(BATCH).zip(answers.chunks_mut(BATCH)) {
        let mut batch = [unanswered; BATCH];
        act(hashes, &mut batch[..hashes.len()]);
        answers.iter_mut().zip(batch).for_each(|(to, from)| *to = answer(from));
    }
}

/// Writes to a visitor.
struct Visited<F>(F);

impl<F: FnMut(&[u8])> std::io::Write for Visited<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
