//! The journals of `koel dedup --state`: what a run has added since its state was saved, so that a kill takes nothing.
//!
//! A run hands out its lines in *batches*, one for each chunk. Each batch has a record: the hashes that it adds to the
//! state, and which bytes of the output are its lines, by their place, length and hash. A run that follows a killed one
//! [takes in](taking_in) the batches whose lines are out, and no others. It then reads its input from the beginning,
//! and writes the rest. So the output becomes that of a run that nobody disturbed.
//!
//! # Which comes first, the record or the lines?
//!
//! If the output is a regular file, the record. A kill may come before, in the middle of, or after the write of the
//! lines, and the file tells which: the batch counts only if the file has all of its bytes, and a part of them at the
//! end of the file is cut off. Other processes may append to the same file, so a part is cut off only if its lines
//! are those of the batch. A second, short record after the write says where the lines are, since others may have
//! come in between, and that they are all there, should the file have moved away by then.
//!
//! What was written to a pipe cannot be read again. There, the record comes after the lines. A kill in between has
//! the next run write this one batch again.
//!
//! # What may a new state have?
//!
//! It is copied while lines go on, shard by shard, so it has all of the chunks that were written before, and parts of
//! some that were not. That is no harm, as long as these are written before the state takes the place of the old one:
//! replaying the record of a batch again changes nothing. So a save goes like this:
//!
//! ```text
//! S1  begin the next journal: from now on, records go there
//! S2  copy the filter to a new file
//! S3  find the last chunk that was in any part of the filter, and wait until it is written
//! S4  sync the output
//! S5  write into the next journal that it belongs to the new state, and sync it
//! S6  rename the new state
//! S7  remove the journals before
//! ```
//!
//! After a kill before S6, the old state is there with both journals, and the second says that it follows the first.
//! After S6, the new state is there, and the second journal belongs to it. If a save is given up, the journals stay
//! as they are then, one following the other.
//!
//! # A power failure
//!
//! The output and then the journal are synced once a second. The system may have written a record that is younger than
//! that, and not the lines, or the other way round. In the first case, the bytes of the output have another hash, and
//! the batch does not count. In the second case, its lines are written again.

pub mod journaling;
pub mod place;
pub mod record;
pub mod replay;
pub mod saving;
pub mod taking_in;
