//! The operations on one item, and ticks.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::{Key, Prehashed};
use crate::layout::geometry::Mixed;
use crate::table::ticking::Ticking;
use crate::window::Window;
use std::hash::BuildHasher;

impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Returns the item's hash in this filter, which can be passed to it in place of the item.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let hash = filter.hash_of("an item");
    /// if !filter.contains(&hash) {
    ///     filter.insert(&hash)?;
    /// }
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        Prehashed(item.hash_with(&self.hasher))
    }

    /// Prefetches the memory that an operation on this item reads, and returns the item's hash, which the operation
    /// takes in its place. In a table beyond the caches, an operation mostly waits for memory: a caller that knows its
    /// next item early lets that wait pass beside other work. [Batches](crate::guide::batches) do this by themselves.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let next = seen.prefetch("https://a.example/");
    /// // Meanwhile, the page before it is parsed.
    /// assert!(seen.insert_if_absent(&next)?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn prefetch<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        let hash = self.hash_of(item);
        self.backend.prefetch(Mixed::of(hash.0));
        hash
    }

    #[inline]
    pub(crate) fn mixed<K: Key + ?Sized>(&self, item: &K) -> Mixed {
        Mixed::of(item.hash_with(&self.hasher))
    }

    /// Adds a copy of the item, whether or not the filter already contains it. **Unlike a `HashSet`'s `insert`, each
    /// call takes room**: to add an item once, use [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if there is no room for the item, or if the filter has [as many copies of
    /// it](crate::FullKind::TooManyCopies) as it takes. Nothing has changed in that case.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.insert("an item")?;
    /// assert_eq!(filter.count("an item"), 2);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[doc(alias = "add")]
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, item: &K) -> Result<(), Full> {
        self.backend.insert(self.mixed(item))
    }

    /// Adds the item if it is not in the filter yet, and returns `true` if it was new.
    ///
    /// If several threads call this with the same new item, exactly one of them gets `true`.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if the item is not in the filter and there is no room for it. Nothing has changed in that case.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(seen.insert_if_absent("https://a.example/")?);
    /// assert!(!seen.insert_if_absent("https://a.example/")?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<K: Key + ?Sized>(&self, item: &K) -> Result<bool, Full> {
        self.backend.insert_if_absent(self.mixed(item))
    }

    /// Returns `true` if the filter contains the item.
    ///
    /// `false` is always right. `true` is wrong at the false-positive rate that the filter was built for.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.contains("an item"));
    /// assert!(!filter.contains("another"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline(always)] // a call is a large part of a lookup in the cache
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> bool {
        // To look again, the item is hashed again, so that nothing is kept for it.
        self.backend.look(self.mixed(item)).unwrap_or_else(|| self.contains_slow(item))
    }

    #[cold]
    #[inline(never)]
    fn contains_slow<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.backend.contains_slow(self.mixed(item))
    }

    /// Returns the number of copies of the item in the filter.
    ///
    /// The number may be too high, at the filter's false-positive rate, but is never too low.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.count("an item"), 0);
    /// for _ in 0..3 {
    ///     filter.insert("an item")?;
    /// }
    /// assert_eq!(filter.count("an item"), 3);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> usize {
        self.backend.count(self.mixed(item))
    }

    /// Removes one copy of the item, and returns `true` if there was one.
    ///
    /// In a filter that has grown beyond its [expected growth](crate::Builder::expected_growth), this returns `false`
    /// for an item whose fingerprint [has no bits left](crate::guide::growth#beyond-the-expected-growth), and leaves it.
    ///
    /// [Remove only what you inserted](Self#remove-only-what-you-inserted). Otherwise another item may be lost.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.remove("an item"));
    /// assert!(!filter.remove("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[doc(alias = "delete")]
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.backend.remove(self.mixed(item))
    }

    /// Returns which of `parts` equal parts of all hashes this item's hash is in: from 0 to `parts - 1`, or 0 if there
    /// are no parts. Items of different parts are in different shards of the table, except at the borders of a part. So
    /// threads that take one part each do not contend for cache lines.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut parts = [const { Vec::new() }; 4];
    /// for item in 0..1_000 {
    ///     parts[filter.part_of(&item, 4)].push(item);
    /// }
    /// assert!(parts.iter().all(|part| part.len() > 100)); // 250, give or take a few
    /// assert_eq!(filter.part_of(&17, 0), 0);
    /// ```
    #[inline]
    #[must_use]
    pub fn part_of<K: Key + ?Sized>(&self, item: &K, parts: usize) -> usize {
        self.mixed(item).scaled(parts).0
    }
}

/// # Forgetting
///
/// A filter that [remembers](crate::Builder::remembers) items for some ticks forgets them after that. A tick is what
/// you make it, a minute or a day: the filter has no clock of its own and counts the calls of [`tick`](Self::tick), or
/// takes the time from [`tick_to`](Self::tick_to). A filter that [forgets after a time](crate::Builder::forgets_after)
/// takes it from the system's clock, by [`keep_up`](Self::keep_up). In a filter that does not forget, these do nothing.
///
/// An item is found from its insert on until as many more ticks have passed, and with the next tick it goes, as if it
/// had been removed: so do not remove it after that. Ticks may pass while other threads use the filter. Until `tick`
/// returns, an item that expires may still be found.
///
/// Files and [pieces](Self::piece_at) keep the ages: a filter that is loaded ticks on from the tick in which it was
/// saved. Let the time since then pass with [`tick_to`](Self::tick_to) or `keep_up`.
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let seen = ConcurrentCuckooFilter::builder().capacity(1_000_000).remembers(7).build()?;
/// seen.insert("https://a.example/").expect("room for a million");
/// for _day in 0..7 {
///     seen.tick();
/// }
/// assert!(seen.contains("https://a.example/"));
/// seen.tick();
/// assert!(!seen.contains("https://a.example/") && seen.is_empty());
/// # Ok::<(), koel::BuildError>(())
/// ```
impl<S> ConcurrentCuckooFilter<S> {
    /// Returns for how many ticks the filter [remembers](crate::Builder::remembers) items, or `None` if for ever.
    #[must_use]
    pub fn remembers(&self) -> Option<u32> {
        let lanes = self.backend().lanes();
        lanes.forgets().then(|| lanes.remembers().into())
    }

    /// Returns the window of time for which the filter remembers items, or `None` if it remembers them for ever, or by
    /// ticks that do not follow the system's clock.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        Window::of_ticks(self.remembers()?, self.present_tick())
    }

    /// Lets the ticks pass that are due by the system's clock, in a filter that [forgets after a
    /// time](crate::Builder::forgets_after), and returns how many passed. In other filters, this does nothing.
    ///
    /// **Call it before each insert or refresh**: the time of an item begins with the last `keep_up` before that. In a
    /// filter that was not kept up, such as one that was just loaded, the item is forgotten too early, by the time that
    /// was left out. Call it before lookups, too, or they find items for longer.
    ///
    /// While no tick is due, this takes as long as reading the clock. If the clock is set back, nothing is forgotten
    /// until it has caught up.
    ///
    /// ```no_run
    /// use koel::ConcurrentCuckooFilter;
    /// use std::time::Duration;
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000_000);
    /// let seen = builder.forgets_after(Duration::from_secs(24 * 3_600)).build()?;
    /// for request in ["/a", "/b", "/a"] {
    ///     seen.keep_up();
    ///     if seen.insert_if_absent(request).expect("room for the requests of a day") {
    ///         println!("{request} is the first of its kind in a day");
    ///     }
    /// }
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[doc(alias = "expire")]
    pub fn keep_up(&self) -> u64 {
        self.window().map_or(0, |window| self.tick_to(window.number_now()))
    }

    /// Lets a tick pass, and removes what expires. This goes through all segments. If a tick is passing already, in
    /// another thread or in [parts](Self::tick_in_parts), it helps that one to its end first. So if two threads call
    /// this, two ticks pass.
    ///
    /// Before that, a filter that grows [shrinks](Self::shrink), by what it has then: what expires with a tick is given
    /// back by the next ones. After a burst this takes seconds for each gigabyte that is given back. Where that is too
    /// long, use [`shrink_part`](Self::shrink_part) until it returns `None`, then [`begin_tick`](Self::begin_tick), and
    /// then [`tick_in_parts`](Self::tick_in_parts): together they do what this does.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// filter.tick();
    /// assert!(filter.contains("an item"));
    /// filter.tick();
    /// assert!(!filter.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn tick(&self) {
        if self.backend().ticking().is_some() {
            self.backend().join_all_if_alone();
            self.backend().tick();
        }
    }

    /// Lets ticks pass until the present one has this number, and returns how many passed.
    ///
    /// The numbers are yours: minutes since the epoch, say. Those from 2^36 on may be taken for numbers of a
    /// [`Window`]. The first call only gives the present tick its number. A number that is not larger than the present
    /// one changes nothing, so a clock that goes backwards makes nothing expire. However many ticks are made up for,
    /// this takes no longer than as many as the filter remembers; if they are more, the filter is empty afterwards. The
    /// present tick keeps `u64::MAX`, whatever ticks follow, and only [`tick`](Self::tick) passes more.
    ///
    /// As by [`tick`](Self::tick), a filter that grows first [shrinks](Self::shrink). Many threads may call this. One
    /// of them begins a tick; those that come while the last tick is passing return at once.
    ///
    /// ```
    /// let tokens = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(60).build()?;
    /// tokens.tick_to(29_720_000);
    /// tokens.insert("token").expect("room for a hundred");
    /// assert_eq!(tokens.tick_to(29_720_060), 60);
    /// assert!(tokens.contains("token"));
    /// assert_eq!(tokens.tick_to(29_720_059), 0);
    /// assert_eq!(tokens.tick_to(29_800_000), 79_940);
    /// assert!(tokens.is_empty());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn tick_to(&self, number: u64) -> u64 {
        let Some(ticking) = self.backend().ticking() else { return 0 };
        if ticking.number().is_some_and(|present| present < number) {
            self.backend().join_all_if_alone();
        }
        self.backend().tick_to(number)
    }

    /// Returns the number of the present tick, if [`tick_to`](Self::tick_to) gave numbers to ticks.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(3).build()?;
    /// assert_eq!(filter.present_tick(), None);
    /// filter.tick_to(2026);
    /// filter.tick();
    /// assert_eq!(filter.present_tick(), Some(2027));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn present_tick(&self) -> Option<u64> {
        self.backend().ticking().and_then(Ticking::number)
    }

    /// Returns how many items expire with each of the next ticks, if nothing refreshes or removes them: first those
    /// that go with the next one, last those of the present tick. There are none if the filter does not forget. This
    /// reads the stamp of every item, which takes about two milliseconds for a million of them.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(2).build()?;
    /// filter.insert("a").expect("room for a hundred");
    /// filter.tick();
    /// filter.insert("b").expect("room for a hundred");
    /// filter.insert("c").expect("room for a hundred");
    /// assert_eq!(filter.expiring(), [0, 1, 2]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn expiring(&self) -> Vec<usize> {
        self.backend().expiring()
    }

    /// Begins a tick, unless one is passing, and leaves the work to [`tick_in_parts`](Self::tick_in_parts). Returns
    /// whether it began one.
    ///
    /// From now on, what is inserted belongs to the new tick, and whatever changes the filter, or counts or dates an
    /// item, does what it would do if the tick had passed, however far its parts have come: two filters to which the
    /// same is done in the same order are equal. Until it has passed, [`contains`](Self::contains) and figures of the
    /// whole filter, such as [`len`](Self::len), may still count items that have expired. So may decisions that depend
    /// on these figures, in a growing filter that is far larger than planned or has items with all the copies that they
    /// may have.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// filter.tick();
    /// assert!(filter.begin_tick());
    /// assert_eq!(filter.insert_if_absent("an item"), Ok(true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_tick(&self) -> bool {
        self.backend().begin_tick()
    }

    /// Begins a tick toward the one with this number, like [`tick_to`](Self::tick_to), unless one is passing, and
    /// leaves the work to [`tick_in_parts`](Self::tick_in_parts). Returns how many ticks it makes up for: 0 if it began
    /// none. It makes up for several only if nothing is remembered for that long. So call this again when the tick has
    /// passed.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(3).build()?;
    /// filter.tick_to(2024);
    /// filter.insert("an item").expect("room for a hundred");
    /// assert_eq!(filter.begin_tick_to(2026), 1);
    /// assert_eq!(filter.begin_tick_to(2026), 0); // That tick is passing.
    /// while !filter.tick_in_parts(100) {}
    /// assert_eq!(filter.begin_tick_to(2026), 1);
    /// while !filter.tick_in_parts(100) {}
    /// assert_eq!((filter.begin_tick_to(2026), filter.present_tick()), (0, Some(2026)));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn begin_tick_to(&self, number: u64) -> u64 {
        self.backend().begin_tick_toward(number).unwrap_or(0)
    }

    /// Goes on with a tick that is passing, through at most `most_segments` segments. Returns `true` if none is passing
    /// any more. This is for event loops: a segment takes about a microsecond. Several threads may call this. No memory
    /// is given back: [`shrink_part`](Self::shrink_part) does that, best before a tick begins.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// for _ in 0..2 {
    ///     assert!(filter.begin_tick());
    ///     while !filter.tick_in_parts(100) {
    ///         // Serve a request.
    ///     }
    /// }
    /// assert!(!filter.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn tick_in_parts(&self, most_segments: usize) -> bool {
        self.backend().work_on_tick(most_segments)
    }
}

/// # Items that are seen again
///
/// [`insert_if_absent`](Self::insert_if_absent) leaves an item that it finds as it is: the item expires some ticks after
/// it was *first* seen. These let it expire some ticks after it was *last* seen. In a filter that does not forget, they
/// are `contains` and `insert_if_absent`.
///
/// In a growing filter that is far larger than planned, some entries are in two shards, or stand for several items.
/// There, `len` may count an item after it has expired, until the others have, too.
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Returns how many ticks ago the item was inserted, or refreshed last. Of several copies, this is the age of the
    /// oldest, which [`remove`](Self::remove) would take. `None` if the filter does not contain it, or does not forget.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(7).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// filter.tick();
    /// filter.insert("an item").expect("room for a hundred");
    /// assert_eq!((filter.age("an item"), filter.age("another")), (Some(1), None));
    /// assert!(filter.remove("an item"));
    /// assert_eq!(filter.age("an item"), Some(0));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn age<K: Key + ?Sized>(&self, item: &K) -> Option<u64> {
        self.backend.age(self.mixed(item))
    }

    /// Keeps the item from expiring, as if it had been inserted now, and returns `true`, if the filter contains it.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// filter.tick();
    /// assert!(filter.refresh("an item") && !filter.refresh("another"));
    /// filter.tick();
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn refresh<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.backend.refresh(self.mixed(item))
    }

    /// [Adds the item if it is absent](Self::insert_if_absent), and [refreshes](Self::refresh) it otherwise.
    ///
    /// # Errors
    ///
    /// As `insert_if_absent`.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// for _ in 0..5 {
    ///     filter.insert_or_refresh("an item").expect("room for a hundred");
    ///     filter.tick();
    /// }
    /// assert_eq!(filter.count("an item"), 1);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn insert_or_refresh<K: Key + ?Sized>(&self, item: &K) -> Result<bool, Full> {
        self.backend.insert_or_refresh(self.mixed(item))
    }
}
