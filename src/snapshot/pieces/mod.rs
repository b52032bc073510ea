//! A filter in pieces: for a server that sends it bit by bit, and keeps nothing between two of them.
//!
//! A [`Piece`](dump::Piece) has the shards from one [place](crate::snapshot::coverage) to another. The
//! place where it ends is the cursor for the next one. Shards are only ever halved, so a place where
//! a shard begins stays one for as long as the filter lives, and the pieces of a dump fit together
//! however many shards are split meanwhile.
//!
//! * [`format`](mod@format) is the specification of a piece, and parses what comes before its blocks.
//! * [`origin`] tells the pieces of one filter from those of others, and later ones from earlier ones.
//! * [`dump`] makes a piece.
//! * [`load`] checks pieces as they come, and
//! * [`gather`] keeps their shards until all are there.

pub mod dump;
pub mod format;
pub mod gather;
pub mod load;
pub mod origin;
